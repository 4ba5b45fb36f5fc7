import HTTPCore
public import HTTPTypes

extension HTTPRequest {
    /// A request for a URL.
    ///
    /// - Parameters:
    ///   - method: GET by default.
    ///   - url: Absolute, `http` or `https`. What may not stand in a URL, such as a space or a
    ///     character outside of ASCII, is percent-encoded, and in the name of the host put in
    ///     A-labels (`xn--`, IDNA 2008); a fragment is left out.
    ///   - fields: Header fields. Host, Content-Length and Transfer-Encoding are written by the
    ///     client and need not be among them; a Host other than the URL's is refused when the
    ///     request is sent (``ClientError/Reason/invalidRequest``).
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` for any other text.
    public init(
        _ method: HTTPRequest.Method = .get, _ url: String, fields: HTTPFields = [:]
    ) throws(ClientError) {
        guard let reference = URIReference(url),
            let request = HTTPRequest(method, reference, fields)
        else {
            throw ClientError(
                .invalidRequest, "the URL is not an absolute http or https URL", url: url)
        }
        self = request
    }

    /// A request for an absolute URI of one of the two schemes; nil for any other.
    init?(_ method: HTTPRequest.Method, _ reference: URIReference, _ fields: HTTPFields) {
        guard let scheme = reference.scheme, scheme == "http" || scheme == "https",
            let authority = reference.authority, !authority.isEmpty, !authority.contains("@")
        else { return nil }
        self.init(method, whatever: reference, fields)
    }

    /// A request for a URI of any scheme, be there an authority or not.
    init(_ method: HTTPRequest.Method, whatever reference: URIReference, _ fields: HTTPFields) {
        var path = reference.path
        if path.isEmpty, reference.authority != nil { path = "/" }
        if let query = reference.query { path += "?\(query)" }
        self.init(
            method: method, scheme: reference.scheme, authority: reference.authority, path: path,
            headerFields: fields)
    }

    /// It is for an http or https URL without credentials.
    var canBeAsked: Bool {
        guard let origin, origin.scheme == "http" || origin.scheme == "https" else { return false }
        return !origin.host.isEmpty && !origin.host.contains("@")
    }

    /// What it is for, as a URI.
    var reference: URIReference? {
        guard let scheme, let authority else { return nil }
        return URIReference("\(scheme)://\(authority)\(path ?? "/")")
    }

    /// The URL that it is for; empty where it does not say.
    package var url: String { Self.url(scheme: scheme, authority: authority, path: path) }

    /// The same for the parts of a request.
    static func url(scheme: String?, authority: String?, path: String?) -> String {
        guard let scheme, let authority else { return path ?? "" }
        var text = scheme
        text += "://"
        text += authority
        text += path ?? "/"
        if scheme == "http" || scheme == "https", URIReference.isEncoded(text) { return text }
        return URIReference(text)?.description ?? path ?? ""
    }

    /// Scheme, host in lower case, and port: what RFC 6454 calls the origin.
    var origin: RequestOrigin? {
        guard let scheme = scheme?.lowercasedASCII, let authority else { return nil }
        return RequestOrigin(scheme: scheme, authority: authority.lowercasedASCII)
    }
}

/// Where a request goes: requests of one origin share connections, credentials are of one.
struct RequestOrigin: Hashable, Sendable {
    var scheme: String
    /// In lower case, an address in brackets if it is one of IPv6.
    let host: String
    let port: UInt16

    /// As in a URL, without the scheme's usual port.
    var text: String {
        let isSecure = scheme == "https" || scheme == "wss"
        return "\(scheme)://\(host)" + (port == (isSecure ? 443 : 80) ? "" : ":\(port)")
    }

    /// Nil for an authority with a port that is none, and for one that is not in ASCII.
    init?(scheme: String, authority: String) {
        self.scheme = scheme
        let usual: UInt16 = scheme == "https" ? 443 : 80
        var text = authority
        let (colon, port) = text.withUTF8 { Self.port(in: $0, usual) }
        guard let port else { return nil }
        self.port = port
        host = colon.map { String(decoding: authority.utf8.prefix($0), as: UTF8.self) } ?? authority
    }

    /// Where the colon before a port is, nil without one; and the port, nil if it is none.
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
