import HTTPTypes

/// A request's head in the form in which the engine takes it in: HTTP/1.1, absolute-form
/// (RFC 9112 section 3.2.2).
enum RequestHeadText {
    /// How the end of a request's content is told.
    enum Framing: Equatable {
        case none
        case length(Int64)
        case chunked
    }

    /// - Parameter asksForUpgrade: Upgrade, which the request has, is meant for the server that it
    ///   is sent to (RFC 9110 section 7.8).
    static func make(
        of request: HTTPRequest, framing: Framing, asksForUpgrade: Bool = false
    ) throws(ClientError) -> [UInt8] {
        guard let scheme = request.scheme, let authority = request.authority, !authority.isEmpty
        else {
            throw ClientError(
                .invalidRequest, "the request has no scheme or no authority", of: request)
        }
        let path = request.path ?? "/"
        guard request.method != .connect, path.hasPrefix("/") else {
            throw ClientError(
                .invalidRequest, "\(request.method) \(path) cannot be asked for by a URL",
                of: request)
        }
        var text: [UInt8] = []
        text.reserveCapacity(
            512 + path.utf8.count + request.headerFields.count * bytesOfUsualField)
        append(request.method.rawValue, to: &text)
        append(" ", to: &text)
        append(scheme, to: &text)
        append("://", to: &text)
        append(authority, to: &text)
        append(path, to: &text)
        append(" HTTP/1.1\r\nHost: ", to: &text)
        append(authority, to: &text)
        append("\r\n", to: &text)
        append(request.headerFields, to: &text)
        if asksForUpgrade { append("Connection: Upgrade\r\n", to: &text) }
        switch framing {
        case .none: break
        case .length(let count): append("Content-Length: \(count)\r\n", to: &text)
        case .chunked: append("Transfer-Encoding: chunked\r\n", to: &text)
        }
        append("\r\n", to: &text)
        return text
    }

    private static let bytesOfUsualField = 48

    /// One copy of memory: an array takes in the UTF-8 view of a string several times as slowly.
    private static func append(_ string: String, to text: inout [UInt8]) {
        var string = string
        string.withUTF8 { text.append(contentsOf: $0) }
    }

    private static func append(_ fields: HTTPFields, to text: inout [UInt8]) {
        // HTTP types have one field for each cookie; a request has one for all (RFC 6265 section
        // 5.4).
        if fields.contains(.cookie), let cookies = fields[.cookie] {
            append("Cookie: \(cookies)\r\n", to: &text)
        }
        for field in fields where !isWritten(field.name.canonicalName) {
            append(field.name.rawName, to: &text)
            append(": ", to: &text)
            append(field.value, to: &text)
            append("\r\n", to: &text)
        }
    }

    /// Fields that belong to the connection or to the content's framing, and are written anew.
    private static func isWritten(_ name: String) -> Bool {
        switch name {
        case "content-length", "transfer-encoding", "connection", "cookie", "host": true
        default: false
        }
    }
}
