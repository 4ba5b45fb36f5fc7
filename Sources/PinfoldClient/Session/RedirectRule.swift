public import HTTPTypes

/// What a session does with responses that say that something is elsewhere.
public struct RedirectRule: Sendable {
    /// A redirect that is about to be followed.
    public struct Proposal: Sendable {
        /// What was asked.
        public let request: HTTPRequest
        /// The response that redirects.
        public let response: HTTPResponse
        /// What would be asked next.
        public let next: HTTPRequest
        /// Redirects so far, this one included.
        public let count: Int
    }

    /// What is to be asked in place of the proposal's; nil: nothing, and the redirect itself is the
    /// response.
    public typealias Hook = @Sendable (Proposal) async -> HTTPRequest?

    let maximum: Int
    let hook: Hook?
    /// Else each one is the response, wherever it leads.
    var followsAny = true

    /// Redirects are followed.
    ///
    /// - Parameters:
    ///   - maximum: One more is an error, ``ClientError/Reason/tooManyRedirects``.
    ///   - hook: Sees each one, and may change or refuse it.
    public static func follow(maximum: Int = 20, hook: Hook? = nil) -> RedirectRule {
        RedirectRule(maximum: max(0, maximum), hook: hook)
    }

    /// Redirects are responses like others.
    public static let none = RedirectRule(maximum: 0, hook: nil, followsAny: false)

    /// What a redirect asks for (RFC 9110 section 15.4).
    ///
    /// - 303 becomes GET, or stays HEAD; 301 and 302 turn POST into GET, as browsers do; 307 and
    ///   308 keep method and content.
    /// - The target is resolved against what was asked.
    /// - Where it is of another origin, Authorization, Cookie and Proxy-Authorization are left out;
    ///   with the content, what describes it.
    static func next(
        after request: HTTPRequest, _ response: HTTPResponse
    ) throws(ClientError) -> (request: HTTPRequest, keepsContent: Bool)? {
        let method: HTTPRequest.Method
        switch response.status.code {
        case 301, 302: method = request.method == .post ? .get : request.method
        case 303: method = request.method == .head ? .head : .get
        case 307, 308: method = request.method
        default: return nil
        }
        guard let location = response.headerFields[.location] else { return nil }
        guard let base = request.reference,
            let target = URIReference(location)?.resolved(against: base),
            var next = HTTPRequest(method, target, request.headerFields)
        else {
            throw ClientError(
                .redirectRefused,
                "the redirect to \(URIReference.withoutCredentials(location)) leads to no http or "
                    + "https URL without credentials", of: request)
        }
        let keepsContent = method == request.method && response.status.code != 303
        if !keepsContent {
            for name in contentFields { next.headerFields[name] = nil }
        }
        if next.origin != request.origin {
            for name in credentials { next.headerFields[name] = nil }
        }
        return (next, keepsContent)
    }

    private static let contentFields: [HTTPField.Name] = [
        .contentType, .contentEncoding, .contentLanguage, .contentLocation, .contentLength,
    ]
    private static let credentials: [HTTPField.Name] = [
        .authorization, .cookie, .proxyAuthorization,
    ]
}
