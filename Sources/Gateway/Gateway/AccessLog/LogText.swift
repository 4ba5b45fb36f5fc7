import HTTPCore

/// Bytes between quotation marks in Apache's formats: non-printable and non-ASCII bytes become
/// `\xhh`, with C's short escapes if there are any (Apache 2.4, mod_log_config).
enum ApacheText {
    /// Appends arbitrary bytes.
    static func append(_ bytes: UnsafeRawBufferPointer, to output: inout LineBuffer) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""): output.append("\\\"")
            case UInt8(ascii: "\\"): output.append("\\\\")
            case 0x08: output.append("\\b")
            case UInt8(ascii: "\n"): output.append("\\n")
            case UInt8(ascii: "\r"): output.append("\\r")
            case UInt8(ascii: "\t"): output.append("\\t")
            case 0x0b: output.append("\\v")
            case 0x20..<0x7f: output.append(byte)
            default:
                output.append("\\x")
                output.append(ASCII.hexDigit(byte >> 4))
                output.append(ASCII.hexDigit(byte))
            }
        }
    }
}

/// The userinfo of a target or referer: `user:password@` (RFC 3986 section 3.2.1).
enum Userinfo {
    /// Passes the bytes to `body` piece by piece, with `***` in place of userinfo. Requests with
    /// userinfo are refused, but refusals are logged too.
    static func redacting(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        guard let secret = range(bytes) else { return body(bytes) }
        body(UnsafeRawBufferPointer(rebasing: bytes[..<secret.lowerBound]))
        ("***" as StaticString).withUTF8Buffer { body(UnsafeRawBufferPointer($0)) }
        body(UnsafeRawBufferPointer(rebasing: bytes[secret.upperBound...]))
    }

    /// The length from which on a text may have been cut: logs keep more of each (``FlowQueue``).
    private static let cutBytes = 1024

    /// The range of the userinfo: from the authority's start to its last `@`. Where a text is cut
    /// within its authority, that may be all of it.
    private static func range(_ bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        guard let first = bytes.first, first != UInt8(ascii: "/") else { return nil }
        var start = 0
        var at: Int?
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: ":")
            where start == 0 && isSlash(bytes, index + 1) && isSlash(bytes, index + 2):
                start = index + 3
                index = start
                at = nil
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"):
                return at.map { start..<$0 }
            case UInt8(ascii: "@"):
                at = index
                index += 1
            default:
                index += 1
            }
        }
        if bytes.count >= cutBytes { return start..<bytes.count }
        return at.map { start..<$0 }
    }

    private static func isSlash(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
        index < bytes.count && bytes[index] == UInt8(ascii: "/")
    }
}
