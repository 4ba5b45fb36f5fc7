import Clocks
import HTTPCore
import HTTPTypes

/// A strong validator (RFC 9110 section 8.8.1) for If-Range. It shows whether later bytes belong to
/// the same representation, byte for byte.
public enum RangeValidator: Sendable, Hashable {
    /// A strong entity tag, including its quotation marks.
    case entityTag(String)
    /// A last modification date, as the server wrote it.
    case lastModified(String)

    /// How many seconds Last-Modified must precede Date to count as a strong validator.
    ///
    /// RFC 9110 section 8.8.2.2 requires one second if both come from the same clock, and otherwise
    /// a sufficient difference; RFC 7232 required a minute. A client cannot know whether both come
    /// from the same clock.
    static let secondsBeforeDate: Int64 = 60

    /// Returns the strong validator of a response, or `nil` if it has none. If there is an entity
    /// tag, only the tag counts, even if it is weak: it then says that the bytes may differ. If one
    /// of the fields has several lines that differ, it proves nothing.
    ///
    /// - Parameters:
    ///   - isStored: Whether the response comes from the session's cache. If the server sent no
    ///     Date, the cache uses the time of arrival (RFC 9110 section 6.6.1), so only an entity tag
    ///     counts.
    ///   - now: The current time in seconds since 1970, for years with two digits.
    init?(
        _ response: HTTPResponse, isStored: Bool = false, now: Int64 = Clock.wallSeconds()
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

    /// Whether the fields of a response to a request with this validator show that it may be
    /// another representation.
    func isContradicted(by response: HTTPResponse) -> Bool {
        switch self {
        case .entityTag(let tag):
            response.headerFields.bytes(of: .eTag).contains { $0 != Array(tag.utf8) }
        case .lastModified(let date):
            response.headerFields.bytes(of: .lastModified).contains { $0 != Array(date.utf8) }
        }
    }

    /// Whether a text matches `DQUOTE *etagc DQUOTE` (RFC 9110 section 8.8.3), without the weakness
    /// prefix.
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

    /// Whether a text is a valid HTTP date.
    static func isDate(_ text: String) -> Bool { seconds(text, 0) != nil }
}
