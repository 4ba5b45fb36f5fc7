import HTTPTypes

/// A request's head in the form in which the engine takes it in: HTTP/1.1, absolute-form
/// (RFC 9112 section 3.2.2).
enum RequestHeadText {
    /// Fields that belong to the connection or to the content's framing, and are written anew.
    private static let written: Set<HTTPField.Name> = [
        .contentLength, .transferEncoding, .connection, .cookie,
    ]

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
        var text = "\(request.method.rawValue) \(scheme)://\(authority)\(path) HTTP/1.1\r\n"
        text += "Host: \(authority)\r\n"
        append(request.headerFields, to: &text)
        if asksForUpgrade { text += "Connection: Upgrade\r\n" }
        switch framing {
        case .none: break
        case .length(let count): text += "Content-Length: \(count)\r\n"
        case .chunked: text += "Transfer-Encoding: chunked\r\n"
        }
        text += "\r\n"
        return Array(text.utf8)
    }

    private static func append(_ fields: HTTPFields, to text: inout String) {
        // HTTP types have one field for each cookie; a request has one for all (RFC 6265 section
        // 5.4).
        if let cookies = fields[.cookie] { text += "Cookie: \(cookies)\r\n" }
        for field in fields {
            guard !written.contains(field.name), field.name.canonicalName != "host" else {
                continue
            }
            text += "\(field.name.rawName): \(field.value)\r\n"
        }
    }
}
