import HTTPCore
public import HTTPTypes

/// A builder of `multipart/form-data` content (RFC 7578). The length is known before the content is
/// sent; files and streams are read only while it is sent.
public struct MultipartForm: Sendable {
    /// The boundary between parts, without the leading `--`.
    public let boundary: String
    /// The maximum size of a part, in bytes.
    private static let maximumLength: Int64 = 1 << 50
    private(set) var parts: [Part] = []

    /// Creates an empty form. Returns `nil` if the boundary is not valid.
    ///
    /// - Parameter boundary: 1 to 70 characters that need no quoting (RFC 2046, section 5.1.1).
    public init?(boundary: String) {
        let isBoundary = boundary.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."), UInt8(ascii: "+"), UInt8(ascii: "'"):
                true
            default: false
            }
        }
        guard isBoundary, (1...70).contains(boundary.utf8.count) else { return nil }
        self.boundary = boundary
    }

    /// Creates an empty form with a random boundary.
    public init() {
        boundary =
            "Boundary+"
            + String(
                hexadecimal: UInt128.random(in: 0 ... .max), digits: 32, uppercase: true)
    }

    /// The value of Content-Type.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Appends a form field.
    public mutating func append(_ data: [UInt8], name: String) {
        parts.append(
            Part(head: Self.head([Self.disposition(name: name)]), source: .bytes(data)))
    }

    /// Appends a form field encoded as UTF-8.
    public mutating func append(_ text: String, name: String) {
        append(Array(text.utf8), name: name)
    }

    /// Appends a file whose content is in memory.
    public mutating func append(
        _ data: [UInt8], name: String, fileName: String, contentType: String
    ) {
        parts.append(
            Part(
                head: Self.fileHead(name: name, fileName: fileName, contentType: contentType),
                source: .bytes(data)))
    }

    /// Appends a file on disk. It is read while the form is sent, and must not change its length
    /// until then.
    ///
    /// - Parameters:
    ///   - fileName: The file name to send. By default, the last component of the path.
    ///   - contentType: The media type. By default, it follows from the file name's extension.
    /// - Throws: ``MultipartError`` if there is no such file, or it is not a regular file.
    public mutating func append(
        file path: String, name: String, fileName: String? = nil, contentType: String? = nil
    ) throws(MultipartError) {
        let length = try FileSource.length(of: path)
        let fileName = fileName ?? String(path.split(separator: "/").last ?? "")
        parts.append(
            Part(
                head: Self.fileHead(
                    name: name, fileName: fileName,
                    contentType: contentType ?? FileTypes.contentType(of: fileName)),
                source: .file(path: path, length: length)))
    }

    /// Appends content that is generated while the form is sent.
    ///
    /// - Parameters:
    ///   - length: The length in bytes, not negative. The stream must have exactly this length.
    ///   - open: Opens the stream at its beginning. It is called each time the form is sent.
    public mutating func append(
        length: Int64, name: String, fileName: String, contentType: String,
        open: @escaping @Sendable () throws -> any ByteSource
    ) throws(MultipartError) {
        guard (0...Self.maximumLength).contains(length) else {
            throw .length(expected: length, found: 0)
        }
        parts.append(
            Part(
                head: Self.fileHead(name: name, fileName: fileName, contentType: contentType),
                source: .stream(length: length, open: open)))
    }

    /// Appends a part with custom fields.
    public mutating func append(_ data: [UInt8], fields: HTTPFields) {
        parts.append(
            Part(
                head: Self.head(fields.map { "\($0.name.rawName): \($0.value)" }),
                source: .bytes(data)))
    }

    /// Returns the content, which can be sent any number of times.
    public func body(throttle: Throttle? = nil) -> MultipartBody {
        MultipartBody(boundary: boundary, parts: parts, throttle: throttle)
    }

    private static func fileHead(
        name: String, fileName: String, contentType: String
    ) -> [UInt8] {
        head([
            disposition(name: name) + "; filename=\"\(escape(fileName))\"",
            "Content-Type: \(withoutLineBreaks(contentType))",
        ])
    }

    private static func disposition(name: String) -> String {
        "Content-Disposition: form-data; name=\"\(escape(name))\""
    }

    private static func head(_ lines: [String]) -> [UInt8] {
        Array((lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)
    }

    /// Escapes a name as browsers do: quotation marks and line breaks are escaped, and everything
    /// else is left unchanged (the HTML standard, "multipart/form-data encoding algorithm"). In
    /// addition, a backslash at the end is escaped, because some parsers would take it as escaping
    /// the closing quotation mark.
    private static func escape(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): escaped += "%22".utf8
            case 0x0D: escaped += "%0D".utf8
            case 0x0A: escaped += "%0A".utf8
            default: escaped.append(byte)
            }
        }
        if escaped.last == UInt8(ascii: "\\") {
            escaped.replaceSubrange((escaped.count - 1)..., with: "%5C".utf8)
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static func withoutLineBreaks(_ text: String) -> String {
        String(decoding: text.utf8.filter { $0 != 0x0D && $0 != 0x0A }, as: UTF8.self)
    }
}

/// Limits the rate at which content is sent: by the size of a packet, and by a pause after each
/// packet.
public struct Throttle: Sendable, Equatable {
    /// The maximum size of a packet in bytes, at least 1.
    public private(set) var packetSize: Int
    /// The pause after each packet.
    public var delay: Duration

    /// Creates a throttle. A packet size below 1 becomes 1.
    public init(packetSize: Int, delay: Duration) {
        self.packetSize = max(1, packetSize)
        self.delay = delay
    }

    /// For slow mobile networks: 16 KiB every 0.2 seconds.
    public static let slowNetwork = Throttle(packetSize: 16 << 10, delay: .milliseconds(200))
}

/// An error in creating multipart content.
public enum MultipartError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A file could not be opened, read or written, with this error number.
    case file(path: String, errno: Int32)
    /// The path is a directory, a device or another kind of file without a length.
    case notAFile(path: String)
    /// A part does not have the length that was promised.
    case length(expected: Int64, found: Int64)
    /// A stream provided by the caller failed.
    case stream(String)

    public var description: String {
        switch self {
        case .file(let path, let errno): "\(path): \(SystemErrorText.text(errno))"
        case .notAFile(let path): "\(path) is not a regular file"
        case .length(let expected, let found):
            "a part has \(found) bytes, expected \(expected)"
        case .stream(let text): "a part could not be read: \(text)"
        }
    }
}

extension MultipartForm {
    struct Part: Sendable {
        enum Source: Sendable {
            case bytes([UInt8])
            case file(path: String, length: Int64)
            case stream(length: Int64, open: @Sendable () throws -> any ByteSource)

            var length: Int64 {
                switch self {
                case .bytes(let bytes): Int64(bytes.count)
                case .file(_, let length), .stream(let length, _): length
                }
            }
        }

        /// The part's header: its field lines and the empty line after them.
        var head: [UInt8]
        var source: Source
    }
}
