public import HTTPTypes
import Notation

extension HTTPRequest {
    /// A request for a URL.
    ///
    /// - Parameters:
    ///   - method: GET by default.
    ///   - url: Absolute, `http` or `https`. What may not stand in a URL, such as a space or a
    ///     character outside of ASCII, is percent-encoded; a fragment is left out.
    ///   - fields: Header fields. Host, Content-Length and Transfer-Encoding are written by the
    ///     client and need not be among them.
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
    package var url: String {
        guard let scheme, let authority else { return path ?? "" }
        let text = "\(scheme)://\(authority)\(path ?? "/")"
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

    /// Nil for an authority with a port that is none.
    init?(scheme: String, authority: String) {
        self.scheme = scheme
        let isSecure = scheme == "https"
        let text = authority.utf8
        let hasPort = text.lastIndex(of: UInt8(ascii: ":")).flatMap { colon in
            text[colon...].contains(UInt8(ascii: "]")) ? nil : colon
        }
        guard let colon = hasPort else {
            host = authority
            port = isSecure ? 443 : 80
            return
        }
        host = String(authority[..<colon])
        let digits = authority[text.index(after: colon)...]
        guard let port = digits.isEmpty ? (isSecure ? 443 : 80) : UInt16(digits) else {
            return nil
        }
        self.port = port
    }
}
