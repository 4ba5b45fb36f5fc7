import Documents
import HTTPCore
import Locking
import Testing

@testable import Gateway

private let secret = AdminSecret(Array("s3cret".utf8))

@Suite("Admin: the API")
struct AdminAPITests {
    private static let applied = ReloadOutcome.applied(
        ReloadOutcome.Applied(
            generation: 2, changed: ["hosts"], removed: ["hosts: a.test"], needRestart: ["cache"],
            warnings: [.sample]))

    private static func site(_ outcome: ReloadOutcome = applied) -> AdminSite {
        AdminSite(source: AdminSource(outcome: outcome), version: "1.2.3")
    }

    /// The answer, which has come by the end of the call, whether now or later.
    private func ask(_ request: AdminRequest, _ site: AdminSite = site()) throws -> AdminResponse {
        switch site.answer(to: request) {
        case .now(let response), .stream(let response, _): return response
        case .afterContent:
            var request = request
            request.content = []
            return try ask(request, site)
        case .later(let begin):
            let found = Locked<AdminResponse?>(nil)
            begin { response in found.withLock { $0 = response } }
            return try #require(found.withLock { $0 })
        }
    }

    private func request(_ method: HTTPCore.Method, _ target: String) -> AdminRequest {
        var request = AdminRequest(method: method, target: target)
        request.contentType = "application/json"
        return request
    }

    private func value(_ response: AdminResponse) throws -> DocumentValue {
        try JSONDocument.value(of: response.body)
    }

    private func kind(_ response: AdminResponse) throws -> String? {
        guard case .string(let type)? = try value(response)["type"] else { return nil }
        return type.split(separator: ":").last.map { String($0) }
    }

    // MARK: Finding the resource

    static let routes: [(HTTPCore.Method, String, UInt16, String?)] = [
        (.get, "/api/v1/status", 200, nil), (.head, "/api/v1/status", 200, nil),
        (.get, "/api/v1/status?x=1", 200, nil), (.get, "/api/v1/openapi.json", 200, nil),
        (.post, "/api/v1/reload", 200, nil), (.post, "/api/v1/reload?now", 200, nil),
        (.get, "/api/v1/reload", 405, "POST"), (.head, "/api/v1/reload", 405, "POST"),
        (.put, "/api/v1/reload", 405, "POST"), (.options, "/api/v1/reload", 405, "POST"),
        (.other, "/api/v1/reload", 405, "POST"), (.post, "/api/v1/status", 405, "GET, HEAD"),
        (.options, "/api/v1/status", 405, "GET, HEAD"),
        (.query, "/api/v1/status", 405, "GET, HEAD"),
        (.get, "/api/", 404, nil), (.get, "/api/v1", 404, nil), (.get, "/api/v1/", 404, nil),
        (.get, "/api/v1/status/", 404, nil), (.get, "/api/v2/status", 404, nil),
        (.get, "/api/v1/Status", 404, nil), (.get, "/api/v1/%73tatus", 404, nil),
        (.post, "/api/v1/reload/../reload", 404, nil), (.get, "/api/v1//status", 404, nil),
    ]

    @Test(arguments: routes)
    func `a resource is found by its path and method`(
        method: HTTPCore.Method, target: String, status: UInt16, allow: String?
    ) throws {
        let response = try ask(request(method, target))
        #expect(response.status == status)
        #expect(response.fields.first { $0.name == "Allow" }?.value == allow)
        let type = status == 200 ? "application/json" : "application/problem+json"
        #expect("\(response.contentType)" == type)
        #expect(response.fields.contains(AdminSite.noStore))
        if status != 200 {
            #expect(try value(response)["status"] == .number(DocumentNumber(status)))
            #expect(try complaint(about: response.body, by: AdminError.shape.schema) == nil)
        }
    }

    @Test func `a request for another host is refused`() throws {
        var request = request(.get, "/api/v1/status")
        request.isMisdirected = true
        let refused = try ask(request)
        #expect(refused.status == 421)
        #expect(try kind(refused) == "misdirected-request")
    }

    // MARK: Who may call

    static let callers: [(AdminAccess.Proof, AdminSecret?, String?, UInt16)] = [
        (.loopback, nil, nil, 200), (.loopback, nil, "Bearer x", 200),
        (.loopback, secret, nil, 401), (.loopback, secret, "Bearer x", 401),
        (.loopback, secret, "Bearer s3cret", 200), (.none, nil, nil, 403),
        (.none, nil, "Bearer s3cret", 403), (.none, secret, nil, 401),
        (.none, secret, "Bearer s3cret", 200), (.socket, nil, nil, 200),
        (.socket, secret, nil, 200), (.certificate, nil, nil, 200),
        (.certificate, secret, nil, 200),
    ]

    @Test(arguments: callers)
    func `only an operator sees the state and reloads`(
        proof: AdminAccess.Proof, token: AdminSecret?, given: String?, status: UInt16
    ) throws {
        for (method, target) in [
            (HTTPCore.Method.get, "/api/v1/status"), (.post, "/api/v1/reload"),
        ] {
            // Whether everyone may read the metrics makes no difference.
            for needsToken in [false, true] {
                var request = request(method, target)
                request.authorization = given
                request.access = AdminAccess(needsToken: needsToken, token: token, proof: proof)
                let response = try ask(request)
                #expect(response.status == status, "\(target)")
                let challenge = response.fields.first { $0.name == "WWW-Authenticate" }
                #expect((challenge != nil) == (status == 401))
            }
        }
    }

    @Test func `everyone may read what there is`() throws {
        var request = request(.get, "/api/v1/openapi.json")
        request.access = AdminAccess(needsToken: true, token: secret)
        #expect(try ask(request).status == 200)
    }

    // MARK: Web pages

    static let readers: [(site: String?, origin: String?, UInt16)] = [
        (nil, nil, 200), ("same-origin", nil, 200), ("none", nil, 200),
        ("same-origin", "http://localhost:9090", 200), ("cross-site", nil, 403),
        ("same-site", nil, 403), (nil, "http://evil.example", 403), (nil, "null", 403),
    ]

    @Test(arguments: readers)
    func `no page of another site has anything read that is an operator's`(
        site: String?, origin: String?, status: UInt16
    ) throws {
        for target in ["/api/v1/status", "/api/v1/flows", "/api/v1/events"] {
            var request = request(.get, target)
            (request.fetchSite, request.origin) = (site, origin)
            request.host = "localhost:9090"
            let response = try ask(request)
            // Without exchanges there is another answer, but not this one.
            #expect((response.status == 403) == (status == 403), "\(target)")
            for name in ["X-Content-Type-Options", "Cross-Origin-Resource-Policy"] {
                #expect(response.fields.contains { $0.name == name }, "\(name)")
            }
        }
        var open = request(.get, "/api/v1/openapi.json")
        (open.fetchSite, open.origin) = (site, origin)
        #expect(try ask(open).status == 200, "everyone may read it")
    }

    static let pages: [(host: String, origin: String?, site: String?, type: String?, UInt16)] = [
        ("localhost:9090", nil, nil, "application/json", 200),
        ("localhost:9090", nil, nil, "Application/JSON ; charset=utf-8", 200),
        ("localhost:9090", nil, nil, nil, 415),
        ("localhost:9090", nil, nil, "", 415),
        ("localhost:9090", nil, nil, "text/plain", 415),
        ("localhost:9090", nil, nil, "application/json, text/plain", 415),
        ("localhost:9090", nil, nil, "text/plain, application/json", 415),
        ("localhost:9090", nil, nil, "application/x-www-form-urlencoded", 415),
        ("localhost:9090", nil, nil, "application/jsonx", 415),
        ("localhost:9090", "http://localhost:9090", "same-origin", "application/json", 200),
        ("localhost:9090", "https://LOCALHOST:9090", "same-origin", "application/json", 200),
        ("localhost:9090", "http://localhost:3000", "same-site", "application/json", 403),
        ("localhost:9090", "http://localhost", nil, "application/json", 403),
        ("localhost:9090", "http://127.0.0.1:9090", "cross-site", "application/json", 403),
        ("localhost:9090", "http://evil.example", "cross-site", "application/json", 403),
        ("localhost:9090", "http://evil.example", nil, nil, 403),
        ("localhost:9090", "null", nil, "application/json", 403),
        ("localhost:9090", "", nil, "application/json", 403),
        ("localhost:9090", nil, "cross-site", "application/json", 403),
        ("localhost:9090", nil, "same-site", "application/json", 403),
        ("localhost:9090", nil, "none", "application/json", 200),
        // HTTP/1.0 without a host, which no browser sends; an origin is then never its own.
        ("", nil, nil, "application/json", 200),
        ("", "http://", nil, "application/json", 403),
    ]

    @Test(arguments: pages)
    func `no web page of another site makes a browser change anything`(
        host: String, origin: String?, site: String?, type: String?, status: UInt16
    ) throws {
        let begun = Locked(0)
        var source = AdminSource()
        source.reload = { ended in
            begun.withLock { $0 += 1 }
            ended(Self.applied)
        }
        var request = AdminRequest(method: .post, target: "/api/v1/reload")
        (request.host, request.origin) = (host, origin)
        (request.fetchSite, request.contentType) = (site, type)
        let response = try ask(request, AdminSite(source: source, version: "1"))
        #expect(response.status == status)
        #expect(begun.withLock { $0 } == (status == 200 ? 1 : 0))
        // No answer allows another site to read it, or to try.
        #expect(!response.fields.contains { $0.name.hasPrefix("Access-Control") })
    }

    @Test(
        arguments: [(nil, 200), (0, 200), (65_536, 200), (65_537, 413), (.max, 413)]
            as [(UInt64?, UInt16)])
    func `content that is too large is refused`(bytes: UInt64?, status: UInt16) throws {
        var request = request(.post, "/api/v1/reload")
        request.contentBytes = bytes
        #expect(try ask(request).status == status)
    }

    // MARK: What is answered

    static let outcomes: [(ReloadOutcome, UInt16, String?)] = [
        (applied, 200, nil),
        (.refused([.sample, ConfigurationFinding("no address")]), 422, "configuration-refused"),
        (.draining, 503, "draining"), (.busy, 503, "busy"),
    ]

    @Test(arguments: outcomes)
    func `a reload is answered with what came of it`(
        outcome: ReloadOutcome, status: UInt16, kind expected: String?
    ) throws {
        let response = try ask(request(.post, "/api/v1/reload"), Self.site(outcome))
        #expect(response.status == status)
        if let expected { #expect(try kind(response) == expected) }
        let value = try value(response)
        switch outcome {
        case .applied, .tried:
            #expect(value["generation"] == .number(2))
            #expect(value["removed"] == .array([.string("hosts: a.test")]))
            #expect(
                try complaint(about: response.body, by: ReloadOutcome.shape.schema) == nil)
        case .refused:
            guard case .array(let errors)? = value["errors"] else {
                Issue.record("no errors")
                return
            }
            #expect(errors.count == 2)
            #expect(errors[0]["line"] == .number(3))
            #expect(errors[0]["expected"] == .string("a pattern"))
            #expect(
                errors[0]["text"]
                    == .string("a.yaml:3: hosts[0].match: is wrong; expected a pattern"))
            #expect(errors[1]["file"] == nil)
        case .draining, .busy: #expect(value["errors"] == nil)
        }
    }

    @Test(arguments: [StatusReport.atRest, .busy])
    func `the state is what its schema says`(report: StatusReport) throws {
        let text = StatusReport.shape.json(report).jsonLine
        #expect(try complaint(about: text, by: StatusReport.shape.schema) == nil)
        let value = try JSONDocument.value(of: text)
        #expect(value["uptimeSeconds"] == .number(2))
        #expect(value["started"] == .string("1970-01-01T00:16:40Z"))
        #expect((value["draining"] != nil) == (report.draining != nil))
        #expect((value["lastReload"] != nil) == (report.lastReload != nil))
        if report.draining != nil {
            #expect(value["draining"]?["waitsFor"]?["tunnels"] == .number(1))
        }
    }

    @Test func `a schema refuses what it does not describe`() throws {
        let schema = StatusReport.shape.schema
        guard case .dictionary(var object) = StatusReport.shape.json(.atRest) else { return }
        object["more"] = .null
        #expect(try complaint(about: DocumentValue.dictionary(object).jsonLine, by: schema) != nil)
        object["more"] = nil
        object["pid"] = nil
        #expect(try complaint(about: DocumentValue.dictionary(object).jsonLine, by: schema) != nil)
        object["pid"] = .string("7")
        #expect(try complaint(about: DocumentValue.dictionary(object).jsonLine, by: schema) != nil)
    }

    @Test func `the description has every resource, with its schema`() throws {
        let response = try ask(request(.get, "/api/v1/openapi.json"))
        let paths = try #require(try value(response)["paths"])
        let api = AdminAPI(source: AdminSource(), version: "1.2.3")
        guard case .dictionary(let members) = paths else { return }
        #expect(members.members.count == Set(api.resources.map(\.path)).count)
        for resource in api.resources {
            let operation = try #require(paths[resource.path]?["\(resource.method)"])
            #expect(operation["operationId"] == .string(resource.name))
            for answer in resource.responses {
                let described = operation["responses"]?["\(answer.status)"]
                guard case .dictionary(let content)? = described?["content"] else {
                    Issue.record("no content for \(answer.status)")
                    continue
                }
                #expect(content.members.first?.value["schema"] == answer.schema)
            }
        }
    }
}

@Suite("Admin: requested reloads")
struct ReloadRequestsTests {
    private final class Log: Sendable {
        let woken = Locked(0)
        let outcomes = Locked<[String]>([])

        func note(_ outcome: ReloadOutcome) {
            outcomes.withLock { $0.append("\(outcome)") }
        }
    }

    @Test func `those that have arrived are answered together`() {
        let log = Log()
        let requests = ReloadRequests { log.woken.withLock { $0 += 1 } }
        requests.submit { log.note($0) }
        requests.submit { log.note($0) }
        #expect(log.woken.withLock { $0 } == 2)
        let taken = requests.take()
        #expect(taken.count == 2)
        requests.submit { log.note($0) }
        #expect(log.outcomes.withLock { $0 }.isEmpty)
        for reply in taken { reply(.refused([])) }
        #expect(log.outcomes.withLock { $0 }.count == 2)
        #expect(requests.take().count == 1, "the third is for the next reload")
        #expect(requests.take().isEmpty)
    }

    @Test func `no more than a limit wait`() {
        let log = Log()
        let requests = ReloadRequests { log.woken.withLock { $0 += 1 } }
        for _ in 0..<ReloadRequests.maximum { requests.submit { log.note($0) } }
        #expect(log.outcomes.withLock { $0 }.isEmpty)
        requests.submit { log.note($0) }
        #expect(log.outcomes.withLock { $0 } == ["busy"])
        #expect(log.woken.withLock { $0 } == ReloadRequests.maximum)
    }

    @Test func `while shutting down there is none`() {
        let log = Log()
        let requests = ReloadRequests { log.woken.withLock { $0 += 1 } }
        requests.submit { log.note($0) }
        requests.close()
        #expect(log.outcomes.withLock { $0 } == ["draining"])
        requests.submit { log.note($0) }
        #expect(log.outcomes.withLock { $0 } == ["draining", "draining"])
        #expect(log.woken.withLock { $0 } == 1)
        #expect(requests.take().isEmpty)
    }
}
