import Documents
import HTTPCore
import PinfoldEngine

/// The resources of the API, and what is the same for all of them: which methods there are, who may
/// call, and that no web page makes a browser call them.
///
/// A resource is one declaration, from which its place in the OpenAPI document follows, too.
package struct AdminAPI: Sendable {
    /// The beginning of every path of the API.
    package static let prefix = "/api/"

    let resources: [AdminResource]
    let version: String

    /// The API of a gateway.
    package init(source: AdminSource, version: String) {
        let described =
            [
                AdminResource.status(source.status),
                AdminResource.reload(source.reload),
                AdminResource.reloadDifferences(source.tryReload, work: source.reports),
                AdminResource.upgrade(source.upgrade),
                AdminResource.configuration(source.configuration),
                AdminResource.explanation(source.explanations),
            ] + AdminResource.ofCache(source.cache)
            + AdminResource.ofFlows(source.flows, work: source.reports)
            + AdminResource.ofOverview(source.overview, source.flows, work: source.reports)
            + AdminResource.ofFleet(source.fleet, work: source.reports)
            + [AdminResource.record(source.overview)]
        self.version = version
        resources = described + [AdminResource.openAPI(describing: described, version: version)]
    }

    /// Answers a request to a path of the API. No web page of another site may use the answer in
    /// any way, such as to find out by its type or size what it is.
    func answer(to request: AdminRequest) -> AdminAnswer { unguarded(request).guarded }

    private func unguarded(_ request: AdminRequest) -> AdminAnswer {
        let here = resources.filter { $0.isAt(request.path) }
        guard !here.isEmpty else {
            return .problem(
                404, "not-found", "Not found",
                "no such resource; \(AdminResource.openAPIPath) lists them")
        }
        let method = request.method == .head ? .get : request.method
        guard let resource = here.first(where: { $0.method == method }) else {
            let allowed = here.map(\.allowed).joined(separator: ", ")
            return .problem(
                405, "method-not-allowed", "Method not allowed",
                "\(request.path) allows \(allowed)", [AdminResponse.Field("Allow", allowed)])
        }
        if let problem = request.access.refusal(of: resource, request) {
            return .now(problem.response)
        }
        // To read would tell a page nothing, but what is read may be much, or take one of few
        // places.
        if resource.caller == .operator, let problem = Self.foreignness(of: request) {
            return .now(problem.response)
        }
        let type = resource.content?.type ?? AdminResource.Content.json
        let most = resource.content?.maximumBytes ?? Self.maximumContentBytes
        if !method.isSafe,
            let problem = Self.mistrust(of: request, expecting: type, maximumBytes: most)
        {
            return .now(problem.response)
        }
        if resource.content != nil, request.content == nil, request.contentBytes != nil {
            return .afterContent(maximumBytes: Int(most))
        }
        return resource.answer(request)
    }

    /// The most bytes of content that a request may announce, where nothing else is said.
    static let maximumContentBytes: UInt64 = 65_536

    /// Why a request may have been caused by a web page of another site; `nil` if there is no
    /// reason. Browsers say so themselves; only old ones do not.
    private static func foreignness(of request: AdminRequest) -> AdminError? {
        let isForeign =
            request.origin.map { !request.isSameOrigin($0) } ?? false
            || request.fetchSite.map { $0 != "same-origin" && $0 != "none" } ?? false
        guard isForeign else { return nil }
        return AdminError(
            403, "cross-origin", "Request of another site",
            "a web page of another site has caused the request")
    }

    /// The same for a request that changes something, which must be one that the API takes.
    ///
    /// A browser sends none with a content type of JSON for another site before it has asked for
    /// permission, which it does not get here.
    private static func mistrust(
        of request: AdminRequest, expecting expected: StaticString, maximumBytes: UInt64
    ) -> AdminError? {
        if let problem = foreignness(of: request) { return problem }
        if request.contentBytes.map({ $0 > maximumBytes }) ?? false {
            return AdminError(
                413, "content-too-large", "Content too large",
                "the content may have \(maximumBytes) bytes at most")
        }
        let type = (request.contentType ?? "").prefix { $0 != ";" }
            .lowercasedASCII.filter { $0 != " " && $0 != "\t" }
        guard type == "\(expected)" else {
            return AdminError(
                415, "unsupported-media-type", "Unsupported media type",
                "the request needs Content-Type: \(expected), even without content")
        }
        return nil
    }
}

/// Who may use a resource.
package enum AdminCaller: Sendable {
    /// Everyone who reaches the address.
    case everyone
    /// Whoever may read the metrics (`admin.metrics`).
    case reader
    /// Who has proved to be an operator (``AdminAccess``).
    case `operator`
}

/// A resource of the API with one method.
package struct AdminResource: Sendable {
    /// One of its responses, for the description.
    struct Response: Sendable {
        var status: UInt16
        var description: String
        var schema: DocumentValue
        /// Its media type; `nil` for JSON, or a problem as JSON.
        var type: String?
    }

    /// A parameter of the query.
    struct Parameter: Sendable {
        var name: String
        var description: String
        var isRequired = false
        /// Whether it is the end of the path, which the resource's has in braces.
        var isInPath = false
        /// Whether it may occur several times.
        var isRepeatable = false
    }

    /// Content that the answer depends on.
    struct Content: Sendable {
        static let json: StaticString = "application/json"
        static let bytes: StaticString = "application/octet-stream"

        var description: String
        var type = Self.json
        var schema: DocumentValue
        /// The most bytes that it may have.
        var maximumBytes = AdminAPI.maximumContentBytes
    }

    let method: Method
    let path: String
    let caller: AdminCaller
    /// Its name among the operations of the API.
    let name: String
    let summary: String
    /// The responses besides the problems that every resource may answer with.
    let responses: [Response]
    /// The parameters of its query.
    var parameters: [Parameter] = []
    /// `nil` if it takes no content.
    var content: Content?
    let answer: @Sendable (AdminRequest) -> AdminAnswer

    /// Whether a path is its own: the one that it has, or one that has a value in place of the name
    /// in braces at its end.
    func isAt(_ asked: Substring) -> Bool {
        guard path.hasSuffix("}") else { return asked == path }
        let start = path.prefix { $0 != "{" }
        let end = asked.dropFirst(start.count)
        return asked.hasPrefix(start) && !end.isEmpty && !end.contains("/")
    }

    /// The methods by which it may be called.
    var allowed: String { method == .get ? "GET, HEAD" : "\(method)".uppercased() }
}

/// What the administrative address answers.
package enum AdminAnswer: Sendable {
    /// A response.
    case now(AdminResponse)
    /// Not before the content of the request has been collected (``AdminRequest/content``), which
    /// may have so many bytes.
    case afterContent(maximumBytes: Int)
    /// A response that is not there yet. The closure begins what it takes, and does not wait; what
    /// it is given is to be called once, on any thread.
    case later(@Sendable (_ reply: @escaping @Sendable (AdminResponse) -> Void) -> Void)
    /// A response whose content comes piece by piece (``LocalAnswer/stream(_:next:)``).
    case stream(AdminResponse, LocalPieces)

    static func problem(
        _ status: UInt16, _ kind: String, _ title: String, _ detail: String,
        _ fields: [AdminResponse.Field] = []
    ) -> AdminAnswer {
        .now(AdminError(status, kind, title, detail, fields: fields).response)
    }

    /// A value as JSON.
    static func json<Value>(
        _ value: Value, as shape: ObjectShape<Value>, status: UInt16 = 200
    ) -> AdminAnswer {
        .now(.json(value, as: shape, status: status))
    }
}

extension AdminAnswer {
    /// The same, of no use to a web page of another site.
    fileprivate var guarded: AdminAnswer {
        switch self {
        case .now(let response): .now(response.guarded)
        case .afterContent(let most): .afterContent(maximumBytes: most)
        case .later(let begin): .later { reply in begin { reply($0.guarded) } }
        case .stream(let response, let pieces): .stream(response.guarded, pieces)
        }
    }
}

extension AdminResponse {
    fileprivate var guarded: AdminResponse {
        var response = self
        response.fields += [
            Field("X-Content-Type-Options", "nosniff"),
            Field("Cross-Origin-Resource-Policy", "same-origin"),
        ]
        return response
    }

    static func json<Value>(
        _ value: Value, as shape: ObjectShape<Value>, status: UInt16 = 200
    ) -> AdminResponse {
        AdminResponse(
            status: status, contentType: "application/json", fields: [AdminSite.noStore],
            body: shape.json(value).jsonLine)
    }
}
