import HTTPCore

/// Which protocols a connection may carry: what a client offers by ALPN, and what a server selects
/// from (RFC 7301), most preferred first.
package enum ProtocolOffer: UInt8, Hashable, Sendable, CaseIterable {
    /// `http/1.1`.
    case http1
    /// `h2`, and otherwise `http/1.1`.
    case either
    /// `h2` and nothing else.
    case http2

    /// The names that ALPN uses.
    package var names: [String] {
        switch self {
        case .http1: ["http/1.1"]
        case .either: ["h2", "http/1.1"]
        case .http2: ["h2"]
        }
    }

    /// The names as encoded for ALPN, each preceded by its length. The memory is the program's own,
    /// so that the library may refer to it.
    private var encoded: StaticString {
        switch self {
        case .http1: "\u{8}http/1.1"
        case .either: "\u{2}h2\u{8}http/1.1"
        case .http2: "\u{2}h2"
        }
    }

    /// The same as bytes.
    var wire: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: encoded.utf8Start, count: encoded.utf8CodeUnitCount)
    }
}
