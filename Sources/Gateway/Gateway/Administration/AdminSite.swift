import ContentCoding
import HTTPCore
import PinfoldMetrics

/// The published state that the admin listener answers from. The closures are called on the thread
/// that calls `AdminSite.respond`, once per answer that needs them.
package struct AdminSource: Sendable {
    /// All that a scrape shows.
    package var metrics: @Sendable () -> MetricsSnapshot
    /// Whether the gateway takes new work.
    package var readiness: @Sendable () -> ServiceReadiness

    /// A source of these closures.
    package init(
        metrics: @escaping @Sendable () -> MetricsSnapshot,
        readiness: @escaping @Sendable () -> ServiceReadiness
    ) {
        self.metrics = metrics
        self.readiness = readiness
    }
}

/// The admin listener's pages: a request in, an answer out, without a socket.
///
/// Every page is read-only. A request for another host is refused: a page of the web could else
/// have a browser read them under a name of its own that it lets resolve to this address (DNS
/// rebinding).
package struct AdminSite: Sendable {
    private let source: AdminSource
    private let version: String

    /// A site over published state; `version` is shown on the index page.
    package init(source: AdminSource, version: String) {
        self.source = source
        self.version = version
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
            case .index: "this page"
            case .metrics: "metrics, in the Prometheus text or OpenMetrics format (by Accept)"
            case .health: "200 while the process serves"
            case .readiness: "200 while new work is taken, 503 while starting or draining"
            case .setup: "how clients are told to use the gateway"
            case .proxyConfiguration: "the same for browsers and devices: auto-configuration"
            case .authorityPEM: "the certificate that clients of intercepted hosts trust"
            case .authorityDER: "the same as DER"
            }
        }
    }

    /// Answers a request.
    package func respond(to request: AdminRequest) -> AdminResponse {
        var response = answer(to: request)
        response.sendsBody = request.method != .head
        return response
    }

    private func answer(to request: AdminRequest) -> AdminResponse {
        guard !request.isMisdirected else {
            return message(
                421, "misdirected_request",
                "the request is for another host; admin.hosts can name it as this one", request)
        }
        guard let page = Page(path: request.path) else {
            return message(404, "not_found", "no such page; see /", request)
        }
        guard request.method == .get || request.method == .head else {
            let allow = AdminResponse.Field("Allow", "GET, HEAD")
            return message(
                405, "method_not_allowed", "\(page.path) takes GET and HEAD", request, [allow])
        }
        guard request.access.allows(page, request.authorization) else {
            let challenge = AdminResponse.Field("WWW-Authenticate", "Bearer realm=pinfold")
            return message(
                401, "unauthorized", "\(page.path) needs the token of admin.tokenFile", request,
                [challenge, Self.noStore])
        }
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
        // A worker does this between its clients' requests: the least effort, which makes a
        // twentieth of such a text all the same.
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

    /// A short answer: a line of text, or a JSON object if the request prefers that.
    func message(
        _ status: UInt16, _ token: StaticString, _ text: String, _ request: AdminRequest,
        _ fields: [AdminResponse.Field] = []
    ) -> AdminResponse {
        let prefersJSON = AcceptedMediaTypes(request.accept).prefersJSON
        // Neither text holds anything that JSON escapes: they are written here, in this file.
        let body = prefersJSON ? "{\"status\":\"\(token)\",\"message\":\"\(text)\"}\n" : text + "\n"
        return AdminResponse(
            status: status,
            contentType: prefersJSON ? "application/json" : "text/plain; charset=utf-8",
            fields: fields + [Self.varyAccept], body: Array(body.utf8))
    }

    private func index(_ request: AdminRequest) -> AdminResponse {
        let accepted = AcceptedMediaTypes(request.accept)
        let fields = [Self.varyAccept]
        guard accepted.weight(of: "text/html") > accepted.weight(of: "text/plain") else {
            var text = "Pinfold \(version)\n\n"
            for page in Page.allCases { text += "\(page.path)\t\(page.summary)\n" }
            return AdminResponse(
                status: 200, contentType: "text/plain; charset=utf-8", fields: fields,
                body: Array(text.utf8))
        }
        var rows = ""
        for page in Page.allCases {
            rows += "<li><a href=\"\(page.path)\">\(page.path)</a>: \(page.summary)</li>\n"
        }
        let text = """
            <!doctype html>
            <html lang="en">
            <head><meta charset="utf-8"><title>Pinfold</title></head>
            <body>
            <h1>Pinfold \(HTMLText.escaped(version))</h1>
            <ul>
            \(rows)</ul>
            </body>
            </html>

            """
        let policy = AdminResponse.Field("Content-Security-Policy", "default-src 'none'")
        return AdminResponse(
            status: 200, contentType: "text/html; charset=utf-8", fields: fields + [policy],
            body: Array(text.utf8))
    }
}

/// Text as the content of an HTML element.
enum HTMLText {
    /// The text with the characters that mean something in HTML escaped.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
