import HTTPCore
import HTTPTypes

/// A request's head in the form that the engine expects: HTTP/1.1 with the target in absolute-form
/// (RFC 9112 section 3.2.2).
enum RequestHeadText {
    /// How the end of the content is marked.
    enum Framing: Equatable {
        case none
        case length(Int64)
        case chunked
    }

    /// Creates the head.
    ///
    /// If the caller sets a Host field, it must match the URL's authority: connection, trust,
    /// cookies and the cache depend on the URL, and a server would respond for the host that is
    /// named in the field.
    ///
    /// - Parameters:
    ///   - asksForUpgrade: Whether the request has an Upgrade field that is meant for the server
    ///     (RFC 9110 section 7.8).
    ///   - expectsContinue: Whether the content is sent on request only.
    static func make(
        of request: HTTPRequest, framing: Framing, asksForUpgrade: Bool = false,
        expectsContinue: Bool = false
    ) throws(ClientError) -> [UInt8] {
        guard let scheme = request.scheme, let authority = request.authority, !authority.isEmpty
        else {
            throw ClientError(
                .invalidRequest, "the request has no scheme or no authority", of: request)
        }
        for host in HTTPField.Name.host.map({ request.headerFields[values: $0] }) ?? []
        where host.lowercasedASCII != authority.lowercasedASCII && !isAuthority(host, of: request) {
            throw ClientError(
                .invalidRequest,
                "Host: \(host.prefix(200)) does not match the host of the URL, \(authority)",
                of: request)
        }
        let path = request.path ?? "/"
        guard request.method != .connect, path.hasPrefix("/") else {
            throw ClientError(
                .invalidRequest, "\(request.method) \(path) cannot be requested by a URL",
                of: request)
        }
        var text = Text(
            room: 512 + path.utf8.count + request.headerFields.count * bytesOfUsualField)
        text.append(request.method.rawValue)
        text.append(" ")
        text.append(scheme)
        text.append("://")
        text.append(authority)
        text.append(path)
        text.append(" HTTP/1.1\r\nHost: ")
        text.append(authority)
        text.append("\r\n")
        append(request.headerFields, to: &text)
        if asksForUpgrade { text.append("Connection: Upgrade\r\n") }
        if expectsContinue, !request.headerFields.contains(.expect) {
            text.append("Expect: 100-continue\r\n")
        }
        switch framing {
        case .none: break
        case .length(let count): text.append("Content-Length: \(count)\r\n")
        case .chunked: text.append("Transfer-Encoding: chunked\r\n")
        }
        text.append("\r\n")
        return text.finished()
    }

    /// Whether a Host field is another spelling of a request's origin: with or without the scheme's
    /// default port, or an internationalized name in Unicode or in A-labels.
    private static func isAuthority(_ host: String, of request: HTTPRequest) -> Bool {
        guard let scheme = request.scheme, let origin = request.origin,
            // These would end an authority, or separate the host from what precedes it.
            !host.utf8.contains(where: { "/?#@\\".utf8.contains($0) }),
            let reference = URIReference(encoding: "\(scheme)://\(host)"),
            let named = HTTPRequest(request.method, reference, [:])
        else { return false }
        return named.origin == origin
    }

    private static let bytesOfUsualField = 48

    /// Assembles bytes from strings. Appending the strings to an array one by one is several times
    /// slower.
    private struct Text {
        private var bytes: [UInt8]
        private var count = 0

        init(room: Int) { bytes = Array(repeating: 0, count: room) }

        mutating func append(_ string: String) {
            var string = string
            string.withUTF8 { append($0) }
        }

        mutating func append(_ part: UnsafeBufferPointer<UInt8>) {
            guard let source = part.baseAddress else { return }
            let end = count + part.count
            if end > bytes.count {
                bytes.append(
                    contentsOf: repeatElement(0, count: max(end, 2 * bytes.count) - bytes.count))
            }
            bytes.withUnsafeMutableBytes { room in
                room.baseAddress.map {
                    ($0 + count).copyMemory(from: source, byteCount: part.count)
                }
            }
            count = end
        }

        consuming func finished() -> [UInt8] {
            bytes.removeLast(bytes.count - count)
            return bytes
        }
    }

    private static func append(_ fields: HTTPFields, to text: inout Text) {
        // HTTP types have one field per cookie, but a request has one field for all of them (RFC
        // 6265 section 5.4).
        if fields.contains(.cookie) {
            text.append("Cookie: ")
            for (index, cookie) in fields[fields: .cookie].enumerated() {
                if index > 0 { text.append("; ") }
                cookie.withUnsafeBytesOfValue { text.append($0) }
            }
            text.append("\r\n")
        }
        for field in fields where !isWritten(field.name.canonicalName) {
            text.append(field.name.rawName)
            text.append(": ")
            // The value need not be valid UTF-8.
            field.withUnsafeBytesOfValue { text.append($0) }
            text.append("\r\n")
        }
    }

    /// Whether the client writes this field: it belongs to the connection or to the framing of the
    /// content.
    private static func isWritten(_ name: String) -> Bool {
        switch name {
        case "content-length", "transfer-encoding", "connection", "cookie", "host": true
        default: false
        }
    }
}

extension HTTPField.Name {
    static let host = HTTPField.Name("Host")
}
