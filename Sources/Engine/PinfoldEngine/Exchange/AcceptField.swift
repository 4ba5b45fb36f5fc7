import HTTPCore
import PinfoldMetrics

extension AcceptedMediaTypes {
    /// What a request accepts according to all of its Accept fields.
    init(of request: borrowing RequestHead, in bytes: Span<UInt8>) {
        var values: [String] = []
        for field in request.fields where field.id == .accept {
            values.append(bytes.text(at: field.value))
        }
        self.init(values.isEmpty ? nil : values.joined(separator: ","))
    }

    /// What the Accept lines say in the received part of a head that could not be parsed. Its lines
    /// end with LF or CRLF, and an empty line ends it.
    init(unreadHead bytes: Span<UInt8>) {
        var values: [String] = []
        var start = 0
        var hasBegun = false
        while start < bytes.count {
            let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start)
            var line = bytes.extracting(start..<end)
            if !line.isEmpty, line[line.count - 1] == UInt8(ascii: "\r") {
                line = line.extracting(0..<(line.count - 1))
            }
            if line.isEmpty, hasBegun { break }
            hasBegun = hasBegun || !line.isEmpty
            if let value = Self.value(line) { values.append(value) }
            start = end + 1
        }
        self.init(values.isEmpty ? nil : values.joined(separator: ","))
    }

    /// The value of an Accept line; `nil` for any other line.
    private static func value(_ line: Span<UInt8>) -> String? {
        guard line.starts(withLowercase: "accept:") else { return nil }
        return line.text(at: ByteRange(from: "accept:".utf8.count, to: line.count))
    }
}
