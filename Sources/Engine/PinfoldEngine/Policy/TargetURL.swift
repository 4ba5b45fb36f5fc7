import HTTPCore

/// What a URL asks for, as the gateway reads it in a request.
package struct TargetURL: Sendable, Hashable {
    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16
    /// Whether the URL's scheme is https.
    package let isSecure: Bool

    package init(host: String, port: UInt16, isSecure: Bool) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
    }

    /// Reads a URL by the parser of requests. A fragment is left out, as clients do.
    ///
    /// - Throws: what a request with this URL is refused for.
    package init(url: String, limits: HeadLimits) throws(WireError) {
        let text = url.prefix { $0 != "#" }
        // What would end the target early, and be read as something else.
        guard text.utf8.allSatisfy({ $0 > 0x20 }) else { throw .malformedTarget }
        let bytes = Array("GET \(text) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        var parser = RequestHeadParser(limits: limits)
        var head = RequestHead()
        let progress = try parser.parse(bytes.span, into: &head)
        guard progress == .complete(headBytes: bytes.count), head.form == .absolute else {
            throw .malformedTarget
        }
        host = bytes.span.text(at: head.host).lowercasedASCII
        port = head.port
        isSecure = head.scheme == .https
    }
}
