import HTTPCore
import HTTPTypes

/// A transport's response in the form in which a server sends it.
enum TransportHead {
    /// The head of a response, with the fields that mark the end of its content.
    ///
    /// - Parameter length: The length of the content, or `nil` if it is not known.
    static func bytes(_ head: HTTPResponse, length: Int?, method: Method) -> [UInt8] {
        let phrase = head.status.reasonPhrase.utf8.filter { $0 >= 0x20 && $0 != 0x7F }
        var bytes = Array("HTTP/1.1 \(head.status.code) ".utf8) + phrase + Array("\r\n".utf8)
        append(head.headerFields, to: &bytes)
        let hasContent = method != .head && ![204, 304].contains(head.status.code)
        if hasContent, !head.headerFields.contains(.contentLength) {
            let field = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
            bytes += Array("\(field)\r\n".utf8)
        }
        return bytes + Array("\r\n".utf8)
    }

    /// The trailers of a response, or `nil` if there are none.
    static func trailers(_ fields: HTTPFields) -> TrailerSection? {
        guard !fields.isEmpty else { return nil }
        var bytes: [UInt8] = []
        append(fields, to: &bytes)
        bytes += Array("\r\n".utf8)
        return try? TrailerSection(parsing: bytes.span, limits: ChunkedLimits())
    }

    /// Appends the lines of fields, without those of a connection.
    private static func append(_ fields: HTTPFields, to bytes: inout [UInt8]) {
        for field in fields
        where !["transfer-encoding", "connection"].contains(field.name.canonicalName) {
            bytes += Array("\(field.name.rawName): ".utf8)
            field.withUnsafeBytesOfValue { bytes += $0 }
            bytes += Array("\r\n".utf8)
        }
    }
}
