import HTTPCore
public import HTTPTypes

/// Determines what a session does with redirects.
public struct RedirectRule: Sendable {
    /// A redirect that is about to be followed.
    public struct Proposal: Sendable {
        /// The request that was sent.
        public let request: HTTPRequest
        /// The redirect response.
        public let response: HTTPResponse
        /// The proposed next request. If the response leads to another scheme, or to a URL with
        /// credentials, this request cannot be sent: if the hook returns it, or there is no hook,
        /// the task fails with ``ClientError/Reason/redirectRefused``.
        public let next: HTTPRequest
        /// The number of redirects so far, including this one.
        public let count: Int
    }

    /// Returns the request to send instead of the proposed one, or `nil` to send none, so that the
    /// redirect itself is the response.
    public typealias Hook = @Sendable (Proposal) async -> HTTPRequest?

    let maximum: Int
    let hook: Hook?
    /// Whether redirects are followed. Otherwise each redirect is the response, wherever it leads.
    var followsAny = true

    /// Follows redirects.
    ///
    /// - Parameters:
    ///   - maximum: The maximum number of redirects. More are an error,
    ///     ``ClientError/Reason/tooManyRedirects``.
    ///   - hook: Receives each redirect, and may change or reject it. It runs in a task that is
    ///     cancelled together with the request's task, which then waits for it.
    public static func follow(maximum: Int = 20, hook: Hook? = nil) -> RedirectRule {
        RedirectRule(maximum: max(0, maximum), hook: hook)
    }

    /// Treats redirects like any other response.
    public static let none = RedirectRule(maximum: 0, hook: nil, followsAny: false)

    /// The target of a redirect.
    struct Target: Sendable {
        /// The next request; ``HTTPRequest/hasHTTPURL`` says whether it can be sent.
        var request: HTTPRequest
        /// Whether the content is sent again.
        var keepsContent: Bool
    }

    /// Returns the target of a redirect (RFC 9110 section 15.4), or `nil` for any other response.
    ///
    /// - After 303, the method becomes GET, or stays HEAD; after 301 and 302, POST becomes GET, as
    ///   in browsers; after 307 and 308, method and content are kept.
    /// - The target is resolved against the URL of the request.
    /// - Host is removed, as it follows from the URL. If the origin is different, Authorization,
    ///   Cookie and Proxy-Authorization are removed; no other field is known to be a secret. If the
    ///   content is not kept, the fields that describe it are removed.
    ///
    /// - Throws: ``ConflictingFieldLinesError`` if there are several different Location fields:
    ///   following any of them would be a guess.
    static func target(
        of response: HTTPResponse, after request: HTTPRequest
    ) throws(ConflictingFieldLinesError) -> Target? {
        let method: HTTPRequest.Method
        switch response.status.code {
        case 301, 302: method = request.method == .post ? .get : request.method
        case 303: method = request.method == .head ? .head : .get
        case 307, 308: method = request.method
        default: return nil
        }
        guard let location = try response.headerFields.singleBytes(.location) else { return nil }
        let reference = request.reference.flatMap { base in
            URIReference(encoding: location)?.resolved(against: base)
        }
        var next =
            reference.map { HTTPRequest(method, whatever: $0, request.headerFields) }
            ?? HTTPRequest(
                method: method, scheme: nil, authority: nil,
                path: String(decoding: location, as: UTF8.self),
                headerFields: request.headerFields)
        // It named the host of the previous URL.
        if let host = HTTPField.Name.host { next.headerFields[host] = nil }
        let keepsContent = method == request.method && response.status.code != 303
        if !keepsContent {
            for name in contentFields { next.headerFields[name] = nil }
        }
        if next.origin != request.origin {
            for name in credentials { next.headerFields[name] = nil }
        }
        return Target(request: next, keepsContent: keepsContent)
    }

    private static let contentFields: [HTTPField.Name] = [
        .contentType, .contentEncoding, .contentLanguage, .contentLocation, .contentLength,
    ]
    private static let credentials: [HTTPField.Name] = [
        .authorization, .cookie, .proxyAuthorization,
    ]
}
