import HTTPCore
public import HTTPTypes

extension HTTPRequest {
    /// Creates a request for a URL.
    ///
    /// - Parameters:
    ///   - method: The method; GET by default.
    ///   - url: An absolute `http` or `https` URL. Characters that are not allowed in a URL, such
    ///     as spaces and characters outside ASCII, are percent-encoded; in the host name they are
    ///     converted to A-labels (`xn--`, IDNA 2008). A fragment is removed.
    ///   - fields: The header fields. The client adds Host, Content-Length and Transfer-Encoding. A
    ///     Host that differs from the URL's is an error when the request is sent
    ///     (``ClientError/Reason/invalidRequest``).
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if the URL is not
    ///   valid.
    public init(
        _ method: HTTPRequest.Method = .get, _ url: String, fields: HTTPFields = [:]
    ) throws(ClientError) {
        guard let reference = URIReference(encoding: url),
            let request = HTTPRequest(method, reference, fields)
        else {
            throw ClientError(
                .invalidRequest, "the URL is not an absolute http or https URL", url: url)
        }
        self = request
    }

    /// Creates a request for an absolute http or https URI. Returns `nil` for any other URI.
    init?(_ method: HTTPRequest.Method, _ reference: URIReference, _ fields: HTTPFields) {
        guard let scheme = reference.scheme, scheme == "http" || scheme == "https",
            let authority = reference.authority, !authority.isEmpty, !authority.contains("@")
        else { return nil }
        self.init(method, whatever: reference, fields)
    }

    /// Creates a request for a URI of any scheme, with or without an authority.
    init(_ method: HTTPRequest.Method, whatever reference: URIReference, _ fields: HTTPFields) {
        var path = reference.path
        if path.isEmpty, reference.authority != nil { path = "/" }
        if let query = reference.query { path += "?\(query)" }
        self.init(
            method: method, scheme: reference.scheme, authority: reference.authority, path: path,
            headerFields: fields)
    }

    /// Whether the request has an http or https URL without credentials.
    var hasHTTPURL: Bool {
        guard let origin, origin.scheme == "http" || origin.scheme == "https" else { return false }
        return !origin.host.isEmpty && !origin.host.contains("@")
    }

    /// The request's URL as a URI reference.
    var reference: URIReference? {
        guard let scheme, let authority else { return nil }
        return URIReference(encoding: "\(scheme)://\(authority)\(path ?? "/")")
    }

    /// The request's URL; empty if it is incomplete.
    package var url: String { Self.url(scheme: scheme, authority: authority, path: path) }

    /// The URL for the parts of a request.
    static func url(scheme: String?, authority: String?, path: String?) -> String {
        guard let scheme, let authority else { return path ?? "" }
        var text = scheme
        text += "://"
        text += authority
        text += path ?? "/"
        if scheme == "http" || scheme == "https", URIReference.isEncoded(text) { return text }
        return URIReference(encoding: text)?.description ?? path ?? ""
    }

    /// The origin according to RFC 6454: scheme, host in lower case, and port.
    package var origin: RequestOrigin? {
        guard let scheme = scheme?.lowercasedASCII, let authority else { return nil }
        return RequestOrigin(scheme: scheme, authority: authority.lowercasedASCII)
    }
}

/// The origin of a request. Requests to the same origin share connections, and credentials belong
/// to an origin.
package struct RequestOrigin: Hashable, Sendable {
    package var scheme: String
    /// The host in lower case. An IPv6 address has brackets.
    package let host: String
    package let port: UInt16

    /// The origin as in a URL, without the scheme's default port.
    var text: String {
        let isSecure = scheme == "https" || scheme == "wss"
        return "\(scheme)://\(host)" + (port == (isSecure ? 443 : 80) ? "" : ":\(port)")
    }

    /// Returns `nil` if the port is not valid or the authority is not ASCII.
    init?(scheme: String, authority: String) {
        self.scheme = scheme
        let usual: UInt16 = scheme == "https" ? 443 : 80
        var text = authority
        let (colon, port) = text.withUTF8 { Self.port(in: $0, usual) }
        guard let port else { return nil }
        self.port = port
        host = colon.map { String(decoding: authority.utf8.prefix($0), as: UTF8.self) } ?? authority
    }

    /// The position of the colon before the port, or `nil` without one; and the port, or `nil` if
    /// it is not valid.
    private static func port(
        in authority: UnsafeBufferPointer<UInt8>, _ usual: UInt16
    ) -> (colon: Int?, port: UInt16?) {
        guard authority.allSatisfy({ $0 < 0x80 }) else { return (nil, nil) }
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            !authority[colon...].contains(UInt8(ascii: "]"))
        else { return (nil, usual) }
        if colon + 1 == authority.count { return (colon, usual) }
        var port: UInt16? = 0
        for byte in authority[(colon + 1)...] {
            guard ASCII.isDigit(byte), let before = port else { return (colon, nil) }
            let (tens, isTooLarge) = before.multipliedReportingOverflow(by: 10)
            let (sum, isStillTooLarge) = tens.addingReportingOverflow(UInt16(byte - 0x30))
            port = isTooLarge || isStillTooLarge ? nil : sum
        }
        return (colon, port)
    }
}
