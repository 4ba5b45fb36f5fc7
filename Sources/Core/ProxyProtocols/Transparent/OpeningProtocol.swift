import HTTPCore

/// Which protocol a connection carries, as far as the client's first bytes say: where a client does
/// not know that it speaks to a gateway, nothing else does.
///
/// The bytes are only looked at. Whoever reads them afterwards decides whether they are valid.
package enum OpeningProtocol: Equatable, Sendable {
    /// More bytes are needed. If none come, the client may be waiting for an answer, in a protocol
    /// of its own.
    case undecided
    /// The beginning of a request line, up to its target, or of a record: nothing else looks like
    /// it, so that the rest is worth waiting for.
    case begun
    /// A request line of HTTP (RFC 9112 §3).
    case http
    /// A record of type handshake (RFC 8446 §5.1).
    case tls
    case other

    /// After how many milliseconds of silence a client no longer counts as about to say more: it
    /// may be waiting for the server to speak.
    package static let silenceMilliseconds: Int64 = 500

    /// The most bytes in which the end of a request line is looked for. A line that is longer, and
    /// begins like one, is taken for one, so that its sender is told what is wrong.
    package static let maximumLineBytes = 8192
    /// The longest method; the registered ones have at most 17 bytes.
    private static let maximumMethodBytes = 32
    /// What empty lines before a request line may take (RFC 9112 §2.2).
    private static let maximumEmptyBytes = 2

    private static let handshake: UInt8 = 22
    private static let majorVersion: UInt8 = 3

    /// - Parameter bytes: what has arrived so far, from the connection's first byte on.
    package init(_ bytes: Span<UInt8>) {
        guard bytes.count > 0, bytes[0] == Self.handshake else {
            self = Self.text(bytes)
            return
        }
        guard bytes.count > 1 else {
            self = .begun
            return
        }
        self = bytes[1] == Self.majorVersion ? .tls : .other
    }

    /// Whether bytes begin with `method SP target SP HTTP/digit.digit`.
    private static func text(_ bytes: Span<UInt8>) -> OpeningProtocol {
        var index = 0
        while index < min(bytes.count, maximumEmptyBytes), isLineEnd(bytes[index]) { index += 1 }
        let method = index
        while index < bytes.count, ASCII.isToken(bytes[index]) {
            index += 1
            guard index - method <= maximumMethodBytes else { return .other }
        }
        guard index < bytes.count else { return .undecided }
        guard index > method, bytes[index] == UInt8(ascii: " ") else { return .other }
        let target = index + 1
        let most = min(bytes.count, maximumLineBytes)
        while index < most, bytes[index] != UInt8(ascii: "\n") {
            guard isText(bytes[index]) else { return .other }
            index += 1
        }
        guard index < most else {
            if most == maximumLineBytes { return .http }
            return isTarget(bytes, from: target) ? .begun : .undecided
        }
        return endsWithVersion(bytes, before: index) ? .http : .other
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
    }

    /// Whether a request line might have the byte, even a malformed one.
    private static func isText(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    }

    /// Whether a request target begins there: a path, an asterisk or an absolute URI
    /// (RFC 9112 §3.2). An authority is for proxies only.
    private static func isTarget(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        guard start < bytes.count else { return false }
        if bytes[start] == UInt8(ascii: "/") || bytes[start] == UInt8(ascii: "*") { return true }
        let scheme: StaticString = "http"
        guard bytes.count - start >= scheme.utf8CodeUnitCount else { return false }
        for offset in 0..<scheme.utf8CodeUnitCount
        where ASCII.lowercased(bytes[start + offset]) != scheme.utf8Start[offset] { return false }
        return true
    }

    /// Whether ` HTTP/digit.digit` stands before the end of a line.
    private static func endsWithVersion(_ bytes: Span<UInt8>, before lineEnd: Int) -> Bool {
        var end = lineEnd
        if end > 0, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        let name: StaticString = " HTTP/"
        let start = end - name.utf8CodeUnitCount - 3
        guard start >= 0 else { return false }
        for offset in 0..<name.utf8CodeUnitCount
        where bytes[start + offset] != name.utf8Start[offset] { return false }
        return ASCII.isDigit(bytes[end - 3]) && bytes[end - 2] == UInt8(ascii: ".")
            && ASCII.isDigit(bytes[end - 1])
    }
}
