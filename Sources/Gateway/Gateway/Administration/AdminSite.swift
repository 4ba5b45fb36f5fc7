import ContentCoding
import Documents
import HTTPCore
import PinfoldMetrics

/// The published state that the admin listener serves. The closures are called on the thread that
/// calls `AdminSite.respond`, once per response that needs them; for metrics, on that of ``work``.
package struct AdminSource: Sendable {
    /// Everything shown by a metrics scrape.
    package var metrics: @Sendable () -> MetricsSnapshot
    /// Whether the gateway accepts new work.
    package var readiness: @Sendable () -> ServiceReadiness
    /// The state of everything.
    package var status: @Sendable () -> StatusReport
    /// Begins to read the configuration again.
    package var reload: @Sendable (@escaping @Sendable (ReloadOutcome) -> Void) -> Void
    /// Reads the configuration, and says what a reload would change; takes as long as that.
    package var tryReload: @Sendable () -> ReloadOutcome = { .draining }
    /// Begins to start a successor.
    package var upgrade: @Sendable (@escaping @Sendable (UpgradeOutcome) -> Void) -> Void
    /// Has something done on another thread; returns `false`, and does nothing, if too much is
    /// waiting. By default it is done at once.
    package var work: @Sendable (@escaping @Sendable () -> Void) -> Bool = { work in
        work()
        return true
    }
    /// What is stored, and purging it; `nil` if nothing is stored.
    package var cache: CacheAdministration?
    /// The gateways that share a cache with this one; `nil` if it shares none.
    package var fleet: FleetAdministration?
    /// The exchanges that are held; `nil` if none are.
    package var flows: FlowAdministration?
    /// The same as ``work`` for reports of the API, which must not hold up the metrics.
    package var reports: @Sendable (@escaping @Sendable () -> Void) -> Bool = { work in
        work()
        return true
    }
    /// The configuration in force and its files; `nil` if there is none to show.
    var configuration: ConfigurationSource?
    /// What explanations are made of; `nil` if there are none.
    var explanations: ExplanationSource?
    /// What is observed; `nil` if nothing is.
    var overview: OverviewSource?

    /// Creates a source from these closures.
    package init(
        metrics: @escaping @Sendable () -> MetricsSnapshot,
        readiness: @escaping @Sendable () -> ServiceReadiness,
        status: @escaping @Sendable () -> StatusReport,
        reload: @escaping @Sendable (@escaping @Sendable (ReloadOutcome) -> Void) -> Void,
        upgrade: @escaping @Sendable (@escaping @Sendable (UpgradeOutcome) -> Void) -> Void
    ) {
        self.metrics = metrics
        self.readiness = readiness
        self.status = status
        self.reload = reload
        self.upgrade = upgrade
    }
}

/// The admin listener's pages and its API: takes a request and returns an answer, without a socket.
///
/// Every page is read-only; resources of the API (``AdminAPI``) may change things. A request for
/// another host is refused: otherwise a web page could make a browser read these under the page's
/// own name, by letting that name resolve to this address (DNS rebinding).
package struct AdminSite: Sendable {
    private let source: AdminSource
    private let version: String
    private let api: AdminAPI

    /// A site that serves published state; `version` is shown in the list of pages.
    package init(source: AdminSource, version: String) {
        self.source = source
        self.version = version
        api = AdminAPI(source: source, version: version)
    }

    /// The pages.
    enum Page: CaseIterable, Sendable {
        case index, metrics, health, readiness
        case setup, proxyConfiguration, authorityPEM, authorityDER

        init?(path: Substring) {
            switch path {
            case "/", "": self = .index
            case "/metrics": self = .metrics
            case "/healthz": self = .health
            case "/readyz": self = .readiness
            case "/setup": self = .setup
            case "/proxy.pac": self = .proxyConfiguration
            case "/ca.pem": self = .authorityPEM
            case "/ca.der": self = .authorityDER
            default: return nil
            }
        }

        var path: String {
            switch self {
            case .index: "/"
            case .metrics: "/metrics"
            case .health: "/healthz"
            case .readiness: "/readyz"
            case .setup: "/setup"
            case .proxyConfiguration: "/proxy.pac"
            case .authorityPEM: "/ca.pem"
            case .authorityDER: "/ca.der"
            }
        }

        var summary: String {
            switch self {
            case .index: "this list; for browsers, the live page"
            case .metrics: "metrics, in the Prometheus text or OpenMetrics format (by Accept)"
            case .health: "200 while the process is serving"
            case .readiness: "200 while new work is accepted, 503 while starting or draining"
            case .setup: "how to set up clients to use the gateway"
            case .proxyConfiguration: "proxy auto-configuration file for browsers and devices"
            case .authorityPEM: "the certificate that clients of intercepted hosts must trust"
            case .authorityDER: "the same certificate in DER"
            }
        }
    }

    /// Answers a request.
    package func answer(to request: AdminRequest) -> AdminAnswer {
        guard request.path.hasPrefix(AdminAPI.prefix) else { return answerPage(request) }
        guard !request.isMisdirected else {
            return .problem(421, "misdirected-request", "Misdirected request", Self.misdirected)
        }
        return api.answer(to: request)
    }

    private static let misdirected =
        "the request is for another host; add it to admin.hosts to allow it"

    /// The metrics of a thousand host entries take some ten milliseconds to write and to compress:
    /// a worker's clients do not wait for that.
    private func answerPage(_ request: AdminRequest) -> AdminAnswer {
        guard refusal(of: request) == nil, Page(path: request.path) == .metrics else {
            return .now(respond(to: request))
        }
        return .later { [self] reply in
            if source.work({ reply(respond(to: request)) }) { return }
            var response = message(
                503, "busy", "too many other requests for metrics are waiting", request,
                [Self.noStore, AdminResponse.Field("Retry-After", "1")])
            response.sendsBody = request.method != .head
            reply(response)
        }
    }

    /// Responds to a request for a page.
    func respond(to request: AdminRequest) -> AdminResponse {
        var response = page(for: request)
        response.sendsBody = request.method != .head
        return response
    }

    /// Why a request for a page is refused; `nil` if it is not.
    private func refusal(of request: AdminRequest) -> AdminResponse? {
        guard !request.isMisdirected else {
            return message(421, "misdirected_request", Self.misdirected, request)
        }
        let page = Page(path: request.path)
        guard let path = page?.path ?? LivePage.file(at: request.path)?.path else {
            return message(404, "not_found", "no such page; see /", request)
        }
        guard request.method == .get || request.method == .head else {
            let allow = AdminResponse.Field("Allow", "GET, HEAD")
            return message(
                405, "method_not_allowed", "\(path) allows GET and HEAD", request, [allow])
        }
        guard page.map({ request.access.allows($0, request.authorization) }) ?? true else {
            let challenge = AdminResponse.Field("WWW-Authenticate", "Bearer realm=pinfold")
            return message(
                401, "unauthorized", "\(path) requires the token in admin.tokenFile", request,
                [challenge, Self.noStore])
        }
        return nil
    }

    private func page(for request: AdminRequest) -> AdminResponse {
        if let refusal = refusal(of: request) { return refusal }
        if let file = LivePage.file(at: request.path) { return file.response }
        let page = Page(path: request.path) ?? .index
        switch page {
        case .index: return index(request)
        case .metrics: return metrics(request)
        case .health: return message(200, "ok", "ok", request, [Self.noStore])
        case .readiness: return readiness(request)
        case .setup, .proxyConfiguration, .authorityPEM, .authorityDER:
            return setup(page, request)
        }
    }

    static let noStore = AdminResponse.Field("Cache-Control", "no-store")
    static let varyAccept = AdminResponse.Field("Vary", "Accept")

    private func metrics(_ request: AdminRequest) -> AdminResponse {
        let format = ExpositionFormat(accept: request.accept)
        var response = AdminResponse(
            status: 200, contentType: format.contentType,
            fields: [Self.noStore, AdminResponse.Field("Vary", "Accept, Accept-Encoding")],
            body: source.metrics().exposition(format))
        let accepted = request.acceptEncoding.map { AcceptedCodings([Array($0.utf8)]) }
        // The lowest level compresses such a text to a twentieth, too.
        if accepted?.best(of: [.gzip, .identity]) == .gzip,
            let compressed = try? ContentCodings.encode(response.body, as: .gzip, effort: .least)
        {
            response.body = compressed
            response.fields.append(AdminResponse.Field("Content-Encoding", "gzip"))
        }
        return response
    }

    private func readiness(_ request: AdminRequest) -> AdminResponse {
        let readiness = source.readiness()
        return message(
            readiness.isReady ? 200 : 503, readiness.label, readiness.explanation, request,
            [Self.noStore])
    }

    /// A short response: a line of text, or a JSON object if the request prefers that.
    func message(
        _ status: UInt16, _ token: StaticString, _ text: String, _ request: AdminRequest,
        _ fields: [AdminResponse.Field] = []
    ) -> AdminResponse {
        let prefersJSON = AcceptedMediaTypes(request.accept).prefersJSON
        // Neither text contains anything that JSON escapes: both are written in this file.
        let body = prefersJSON ? "{\"status\":\"\(token)\",\"message\":\"\(text)\"}\n" : text + "\n"
        return AdminResponse(
            status: status,
            contentType: prefersJSON ? "application/json" : "text/plain; charset=utf-8",
            fields: fields + [Self.varyAccept], body: Array(body.utf8))
    }

    /// The paths that can be read, and what is there.
    private var contents: [(path: String, summary: String)] {
        Page.allCases.map { ($0.path, $0.summary) }
            + api.resources.filter { $0.method == .get && !$0.path.hasSuffix("}") }
            .map { ($0.path, $0.summary) }
    }

    /// The live page for browsers, and for everybody else what can be read.
    private func index(_ request: AdminRequest) -> AdminResponse {
        let accepted = AcceptedMediaTypes(request.accept)
        if accepted.weight(of: "text/html") > accepted.weight(of: "text/plain") {
            var page = LivePage.shell
            page.fields.append(Self.varyAccept)
            return page
        }
        var text = "Pinfold \(version)\n\n"
        for (path, summary) in contents { text += "\(path)\t\(summary)\n" }
        return AdminResponse(
            status: 200, contentType: "text/plain; charset=utf-8", fields: [Self.varyAccept],
            body: Array(text.utf8))
    }
}
