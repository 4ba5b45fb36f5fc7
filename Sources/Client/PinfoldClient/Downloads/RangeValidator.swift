import Clocks
import HTTPCore
import HTTPTypes
import Serialization

/// What tells whether bytes that arrive later are of the same representation, byte for byte: a
/// strong validator (RFC 9110 section 8.8.1), as If-Range takes it.
public enum RangeValidator: Sendable, Hashable {
    /// A strong entity tag, with its quotes.
    case entityTag(String)
    /// A date of last modification, as the server wrote it.
    case lastModified(String)

    /// Seconds that Last-Modified must lie before Date to count as strong.
    ///
    /// RFC 9110 section 8.8.2.2 asks for one second where both are by the same clock, else for
    /// enough of a difference; RFC 7232 had named a minute. Whether a clock is the same is nothing
    /// that a client knows.
    static let secondsBeforeDate: Int64 = 60

    /// The strong validator of a response; nil: it has none. Where there is a tag, it alone counts,
    /// though it be weak: it says that the bytes may differ. Lines of one of these fields that
    /// differ prove nothing.
    ///
    /// - Parameters:
    ///   - isStored: It comes from the session's cache, whose Date may be the time of its arrival
    ///     (RFC 9110 section 6.6.1), where the server had sent none: only a tag counts.
    ///   - now: seconds since 1970, for years that are written with two digits.
    init?(
        _ response: HTTPResponse, isStored: Bool = false, now: Int64 = Clock.coarseWallSeconds()
    ) {
        let fields = response.headerFields
        guard !fields.contains(.eTag) else {
            guard let tag = try? fields.single(.eTag), Self.isStrong(tag) else { return nil }
            self = .entityTag(tag)
            return
        }
        guard !isStored, let modified = try? fields.single(.lastModified),
            let changed = Self.seconds(modified, now),
            let date = try? fields.single(.date), let sent = Self.seconds(date, now),
            sent - changed >= Self.secondsBeforeDate
        else { return nil }
        self = .lastModified(modified)
    }

    /// The value of the If-Range field (RFC 9110 section 13.1.5).
    public var ifRange: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }

    /// Whether a response to a request with this validator may be of another representation, as far
    /// as its fields say.
    func isContradicted(by response: HTTPResponse) -> Bool {
        switch self {
        case .entityTag(let tag):
            response.headerFields.bytes(of: .eTag).contains { $0 != Array(tag.utf8) }
        case .lastModified(let date):
            response.headerFields.bytes(of: .lastModified).contains { $0 != Array(date.utf8) }
        }
    }

    /// `DQUOTE *etagc DQUOTE` (RFC 9110 section 8.8.3), without the mark of weakness.
    static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        let quote = UInt8(ascii: "\"")
        return bytes.count >= 2 && bytes.first == quote && bytes.last == quote
            && bytes[1..<(bytes.count - 1)].allSatisfy {
                $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F
            }
    }

    private static func seconds(_ text: String, _ now: Int64) -> Int64? {
        HTTPDate.parse(Array(text.utf8).span, now: now)
    }

    /// Whether a text is a date by HTTP's rules.
    static func isDate(_ text: String) -> Bool { seconds(text, 0) != nil }
}
