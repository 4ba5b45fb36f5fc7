public import HTTPTypes
import Serialization

/// What a session does with responses that say that something is elsewhere.
public struct RedirectRule: Sendable {
    /// A redirect that is about to be followed.
    public struct Proposal: Sendable {
        /// What was asked.
        public let request: HTTPRequest
        /// The response that redirects.
        public let response: HTTPResponse
        /// What would be asked next. Where the response leads to another scheme, or to a URL with
        /// credentials, this cannot be asked for: a hook that returns it makes the task fail with
        /// ``ClientError/Reason/redirectRefused``, as does having no hook.
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
    ///   - hook: Sees each one, and may change or refuse it. It runs in a task that is cancelled
    ///     with the request's, and is then waited for.
    public static func follow(maximum: Int = 20, hook: Hook? = nil) -> RedirectRule {
        RedirectRule(maximum: max(0, maximum), hook: hook)
    }

    /// Redirects are responses like others.
    public static let none = RedirectRule(maximum: 0, hook: nil, followsAny: false)

    /// Where a response leads to.
    struct Target: Sendable {
        /// What is to be asked for; ``HTTPRequest/canBeAsked`` says whether it can.
        var request: HTTPRequest
        /// The content is sent there, too.
        var keepsContent: Bool
    }

    /// What a redirect asks for (RFC 9110 section 15.4); nil for any other response.
    ///
    /// - 303 becomes GET, or stays HEAD; 301 and 302 turn POST into GET, as browsers do; 307 and
    ///   308 keep method and content.
    /// - The target is resolved against what was asked.
    /// - Host is left out, which is that of the URL;
    ///   where it is of another origin, Authorization, Cookie and Proxy-Authorization are left out;
    ///   with the content, what describes it.
    ///
    /// - Throws: ``ConflictingFieldLines`` for Locations that differ: to follow either would be to
    ///   guess.
    static func target(
        of response: HTTPResponse, after request: HTTPRequest
    ) throws(ConflictingFieldLines) -> Target? {
        let method: HTTPRequest.Method
        switch response.status.code {
        case 301, 302: method = request.method == .post ? .get : request.method
        case 303: method = request.method == .head ? .head : .get
        case 307, 308: method = request.method
        default: return nil
        }
        guard let location = try response.headerFields.singleBytes(.location) else { return nil }
        let reference = request.reference.flatMap { base in
            URIReference(location)?.resolved(against: base)
        }
        var next =
            reference.map { HTTPRequest(method, whatever: $0, request.headerFields) }
            ?? HTTPRequest(
                method: method, scheme: nil, authority: nil,
                path: String(decoding: location, as: UTF8.self),
                headerFields: request.headerFields)
        // It named the host of the URL that was asked.
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
