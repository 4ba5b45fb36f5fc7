import HTTPCore
import PinfoldEngine

/// A host and port, and whether it is asked for over TLS.
struct LoggedAuthority {
    var host: String
    var port: UInt16
    var isSecure: Bool
}

/// The authorities of a log that have been read, so that each is parsed once. What is remembered is
/// bounded in number and in bytes: at either bound all is forgotten.
struct AuthorityTable {
    /// What says whether an authority is asked for over TLS.
    enum Scheme {
        /// It has one itself: `http://a.test`.
        case own
        case http, https

        fileprivate var beginning: [UInt8] {
            switch self {
            case .own: []
            case .http: Array("http://".utf8)
            case .https: Array("https://".utf8)
            }
        }
    }

    private struct Key: Hashable {
        let scheme: Scheme
        let text: ArraySlice<UInt8>

        func hash(into hasher: inout Hasher) {
            hasher.combine(scheme)
            text.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    /// The most texts that are remembered.
    static let maximumCount = 65_536
    /// The most bytes of texts, each of which may be kept twice: as it is written, and as the host.
    static let maximumBytes = 8 << 20

    private static let limits = HeadLimits()

    private var known: [Key: LoggedAuthority?] = [:]
    private(set) var byteCount = 0

    var count: Int { known.count }

    /// Reads a host and port by the parser for requests; `nil` if they are none.
    mutating func authority(
        _ text: ArraySlice<UInt8>, _ scheme: Scheme
    ) -> LoggedAuthority? {
        // Longer than any target that is served.
        guard text.count < Self.limits.targetBytes else { return nil }
        if let known = known[Key(scheme: scheme, text: text)] { return known }
        let bytes = scheme.beginning + text + [UInt8(ascii: "/")]
        let target = try? TargetURL(
            url: String(decoding: bytes, as: UTF8.self), limits: Self.limits)
        let found = target.map {
            LoggedAuthority(host: $0.host, port: $0.port, isSecure: $0.isSecure)
        }
        // What is kept must not keep the line.
        keep(found, for: Key(scheme: scheme, text: Array(text)[...]))
        return found
    }

    private mutating func keep(_ authority: LoggedAuthority?, for key: Key) {
        if known.count >= Self.maximumCount || byteCount + key.text.count > Self.maximumBytes {
            known = [:]
            byteCount = 0
        }
        known[key] = .some(authority)
        byteCount += key.text.count
    }
}
