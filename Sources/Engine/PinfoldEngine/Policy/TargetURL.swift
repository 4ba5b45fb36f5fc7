import HTTPCore
import PinfoldConfiguration

/// The target of a URL, as the gateway parses it in a request.
package struct TargetURL: Sendable, Hashable {
    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16
    /// Whether the URL's scheme is https.
    package let isSecure: Bool
    /// The path as sent, without the query; empty means `/`.
    package let path: [UInt8]
    /// The path of the Unix socket in place of a URL; `nil` for a URL.
    package let unixPath: String?

    /// A server on a Unix socket, with the host and port by which it is known.
    package init(unixPath: String) {
        host = UpstreamOrigin.localName
        port = UpstreamOrigin.Scheme.http.defaultPort
        isSecure = false
        path = []
        self.unixPath = unixPath
    }

    package init(host: String, port: UInt16, isSecure: Bool) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        path = []
        unixPath = nil
    }

    /// Parses a URL with the parser for requests. A fragment is left out, as clients do.
    ///
    /// - Throws: the error for which a request with this URL would be refused.
    package init(url: String, limits: HeadLimits) throws(WireError) {
        let text = url.prefix { $0 != "#" }
        // Characters that would end the target early are refused.
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
        unixPath = nil
        path = Array(bytes[head.path.indices].prefix { $0 != UInt8(ascii: "?") })
    }
}
