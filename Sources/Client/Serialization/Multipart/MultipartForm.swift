public import HTTPTypes

/// Content of type `multipart/form-data` (RFC 7578) that is being put together. Its length is known
/// before it is sent, and parts that are files or streams are read only while it is.
public struct MultipartForm: Sendable {
    /// Separates the parts; without the leading `--`.
    public let boundary: String
    /// Bytes of a part.
    private static let maximumLength: Int64 = 1 << 50
    private(set) var parts: [Part] = []

    /// - Parameter boundary: 1 to 70 characters of those that need no quotes (RFC 2046, section
    ///   5.1.1); by default a new random one. Nil for others.
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

    /// A form without parts, and a random boundary.
    public init() {
        boundary =
            "Boundary+" + Self.hex(.random(in: 0...UInt64.max))
            + Self.hex(
                .random(in: 0...UInt64.max))
    }

    private static func hex(_ number: UInt64) -> String {
        let text = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// The value of Content-Type.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// A field of the form.
    public mutating func append(_ data: [UInt8], name: String) {
        parts.append(
            Part(head: Self.head([Self.disposition(name: name)]), source: .bytes(data)))
    }

    /// A field of the form, in UTF-8.
    public mutating func append(_ text: String, name: String) {
        append(Array(text.utf8), name: name)
    }

    /// A file whose content is at hand.
    public mutating func append(
        _ data: [UInt8], name: String, fileName: String, contentType: String
    ) {
        parts.append(
            Part(
                head: Self.fileHead(name: name, fileName: fileName, contentType: contentType),
                source: .bytes(data)))
    }

    /// A file on disk. It is read while the form is sent, and must be as long then as it is now.
    ///
    /// - Parameters:
    ///   - fileName: By default the last component of the path.
    ///   - contentType: By default that of the file name's extension.
    /// - Throws: ``MultipartError`` where there is no such file, or what there is is none.
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

    /// Content that is made while it is sent.
    ///
    /// - Parameters:
    ///   - length: In bytes, not negative: it must come to so many, neither more nor fewer.
    ///   - open: Begins it anew; called each time that the form is sent.
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

    /// A part with fields of the caller's own.
    public mutating func append(_ data: [UInt8], fields: HTTPFields) {
        parts.append(
            Part(
                head: Self.head(fields.map { "\($0.name.rawName): \($0.value)" }),
                source: .bytes(data)))
    }

    /// The content, as it can be sent any number of times.
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

    /// Names as browsers write them: quotes and line breaks are escaped, all else stays (the HTML
    /// standard, "multipart/form-data encoding algorithm"). But a backslash at the end is escaped,
    /// too, for some readers would take the closing quote with it.
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

/// How fast content is sent: no more than so many bytes at once, and a pause after each.
public struct Throttle: Sendable, Equatable {
    /// In bytes, at least 1.
    public private(set) var packetSize: Int
    /// The pause after each packet.
    public var delay: Duration

    /// A packet of fewer than one byte is one of one byte.
    public init(packetSize: Int, delay: Duration) {
        self.packetSize = max(1, packetSize)
        self.delay = delay
    }

    /// For slow mobile networks: 16 KiB every 0.2 seconds.
    public static let slowNetwork = Throttle(packetSize: 16 << 10, delay: .milliseconds(200))
}

/// Why multipart content was not made.
public enum MultipartError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A file could not be opened, read or written; `errno` says why.
    case file(path: String, errno: Int32)
    /// A folder, a device or the like, which has no length.
    case notAFile(path: String)
    /// A part did not come to the length that was promised.
    case length(expected: Int64, found: Int64)
    /// The caller's own stream failed.
    case stream(String)

    public var description: String {
        switch self {
        case .file(let path, let errno): "\(path): \(SystemErrorText.text(errno))"
        case .notAFile(let path): "\(path) is no regular file"
        case .length(let expected, let found):
            "a part came to \(found) bytes, expected \(expected)"
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

        /// The part's field lines, and the empty line after them.
        var head: [UInt8]
        var source: Source
    }
}
