import ContentCoding
import Foundation
import HTTPCore
import Locking
import PinfoldMetrics
import Testing

@testable import Gateway

@Suite("Admin: the pages")
struct AdminSiteTests {
    private func site(
        _ readiness: ServiceReadiness = .ready, version: String = "1.2.3"
    ) -> AdminSite {
        let source = AdminSource(
            metrics: {
                var service = ServiceMetrics()
                service.addBuild(version: version, revision: "abc", swiftVersion: "6.3")
                service.addProcess(ProcessFigures())
                return MetricsSnapshot(workers: [], service: service)
            }, readiness: { readiness })
        return AdminSite(source: source, version: version)
    }

    private func body(_ response: AdminResponse) -> String {
        String(decoding: response.body, as: UTF8.self)
    }

    private func field(_ response: AdminResponse, _ name: String) -> String? {
        response.fields.first { $0.name == name }?.value
    }

    @Test(
        arguments: [
            ("gzip", true), ("deflate, gzip;q=0.5, br", true), ("*", true), ("GZIP", true),
            ("gzip;q=0", false), ("identity", false), ("br", false), ("", false), (nil, false),
            ("identity;q=1, gzip;q=0.5", false),
        ] as [(String?, Bool)])
    func `metrics are compressed where Accept-Encoding prefers that`(
        field accepted: String?, isCompressed: Bool
    ) throws {
        let response = site().respond(
            to: AdminRequest(method: .get, target: "/metrics", acceptEncoding: accepted))
        #expect(field(response, "Content-Encoding") == (isCompressed ? "gzip" : nil))
        #expect(field(response, "Vary") == "Accept, Accept-Encoding")
        let content = try ContentCodings.decode(
            response.body, codings: isCompressed ? [.gzip] : [], maximum: 1 << 20)
        #expect(String(decoding: content, as: UTF8.self).contains("\npinfold_build_info{"))
    }

    @Test func `metrics are written elsewhere, and what is refused is refused at once`() throws {
        let asked = Locked<[@Sendable () -> Void]>([])
        var source = AdminSource(
            metrics: { MetricsSnapshot(workers: [], service: ServiceMetrics()) })
        source.work = { work in
            asked.withLock { asked in
                guard asked.count < 2 else { return false }
                asked.append(work)
                return true
            }
        }
        let site = AdminSite(source: source, version: "1")
        let replies = Locked<[UInt16]>([])
        func ask() throws {
            guard
                case .later(let begin) = site.answer(
                    to: AdminRequest(method: .get, target: "/metrics"))
            else {
                Issue.record("it is answered at once")
                return
            }
            begin { reply in replies.withLock { $0.append(reply.status) } }
        }
        for _ in 0..<3 { try ask() }
        // One more than is accepted.
        #expect(replies.withLock { $0 } == [503])
        for work in asked.withLock({ $0 }) { work() }
        #expect(replies.withLock { $0 } == [503, 200, 200])
        let closed = AdminAccess(needsToken: true, token: AdminSecret(Array("secret".utf8)))
        for request in [
            AdminRequest(method: .get, target: "/metrics", access: closed),
            AdminRequest(method: .get, target: "/metrics", isMisdirected: true),
            AdminRequest(method: .post, target: "/metrics"),
            AdminRequest(method: .get, target: "/healthz"),
        ] {
            guard case .now = site.answer(to: request) else {
                Issue.record("\(request.method) \(request.target) is answered later")
                continue
            }
        }
    }

    @Test func `metrics are in the format that Accept prefers`() {
        let text = site().respond(to: AdminRequest(method: .get, target: "/metrics"))
        #expect(text.status == 200)
        #expect("\(text.contentType)" == "text/plain; version=0.0.4; charset=utf-8")
        #expect(body(text).contains("# TYPE pinfold_build_info gauge\n"))
        #expect(body(text).contains("\nprocess_open_fds "))
        #expect(field(text, "Cache-Control") == "no-store")
        #expect(field(text, "Vary") == "Accept, Accept-Encoding")
        let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
        let openMetrics = site().respond(
            to: AdminRequest(method: .get, target: "/metrics?x=1", accept: accept))
        #expect(
            "\(openMetrics.contentType)"
                == "application/openmetrics-text; version=1.0.0; charset=utf-8")
        #expect(body(openMetrics).hasSuffix("\n# EOF\n"))
    }

    @Test(arguments: [ServiceReadiness.ready, .draining])
    func `health is well while the process answers`(readiness: ServiceReadiness) {
        let response = site(readiness).respond(to: AdminRequest(method: .get, target: "/healthz"))
        #expect(response.status == 200)
        #expect(body(response) == "ok\n")
        #expect(field(response, "Cache-Control") == "no-store")
    }

    @Test func `a page that is not open is refused with a challenge`() {
        let access = AdminAccess(needsToken: true, token: AdminSecret(Array("secret".utf8)))
        var request = AdminRequest(method: .get, target: "/metrics", access: access)
        let refused = site().respond(to: request)
        #expect(refused.status == 401)
        #expect(field(refused, "WWW-Authenticate") == "Bearer realm=pinfold")
        #expect(body(refused) == "/metrics requires the token in admin.tokenFile\n")
        request.authorization = "Bearer secret"
        #expect(site().respond(to: request).status == 200)
    }

    @Test(arguments: AdminSite.Page.allCases)
    func `a request for another host is refused on every page`(page: AdminSite.Page) {
        let request = AdminRequest(method: .get, target: page.path, isMisdirected: true)
        let refused = site().respond(to: request)
        #expect(refused.status == 421)
        #expect(
            body(refused)
                == "the request is for another host; add it to admin.hosts to allow it\n")
    }

    static let readinesses: [(ServiceReadiness, UInt16, String, String)] = [
        (.ready, 200, "ready", "ready"),
        (
            .readyWithoutDisk("full"), 200, "ready",
            "ready, but the cache's disk tier is off (full): nothing is kept across restarts"
        ),
        (
            .starting(listenersUp: 1, listenersConfigured: 2), 503, "starting",
            "starting: 1 of 2 listeners are up"
        ),
        (
            .withoutPolicy(hasExpired: false), 503, "starting",
            "starting: no policy has been verified yet"
        ),
        (
            .withoutPolicy(hasExpired: true), 503, "starting",
            "starting: the policy has expired; another is needed"
        ),
        (.draining, 503, "draining", "draining: no new connections are accepted"),
    ]

    @Test(arguments: readinesses)
    func `readiness reports whether new work is accepted, and why not`(
        readiness: ServiceReadiness, status: UInt16, token: String, text: String
    ) throws {
        let plain = site(readiness).respond(to: AdminRequest(method: .get, target: "/readyz"))
        #expect(plain.status == status)
        #expect(body(plain) == text + "\n")
        let json = site(readiness).respond(
            to: AdminRequest(method: .get, target: "/readyz", accept: "application/json"))
        #expect(json.status == status)
        #expect("\(json.contentType)" == "application/json")
        let object = try JSONSerialization.jsonObject(with: Data(json.body)) as? [String: String]
        #expect(object == ["status": token, "message": text])
    }

    @Test func `readiness follows from the listeners and from draining`() {
        func readiness(_ up: Int, _ configured: Int, _ isDraining: Bool) -> ServiceReadiness {
            ServiceReadiness(
                listenersUp: up, listenersConfigured: configured, isDraining: isDraining)
        }
        #expect(readiness(2, 2, false) == .ready)
        #expect(readiness(0, 0, false) == .ready)
        #expect(readiness(1, 2, false) == .starting(listenersUp: 1, listenersConfigured: 2))
        #expect(readiness(2, 2, true) == .draining)
        #expect(readiness(0, 2, true) == .draining)
    }

    @Test(
        arguments: AdminSite.Page.allCases
    )
    func `HEAD is answered like GET, without the body being sent`(page: AdminSite.Page) {
        // The metrics change between two requests: only their head is compared.
        let get = site().respond(to: AdminRequest(method: .get, target: page.path))
        let head = site().respond(to: AdminRequest(method: .head, target: page.path))
        #expect(get.sendsBody)
        #expect(!head.sendsBody)
        #expect(head.status == get.status)
        #expect(head.fields == get.fields)
        if page != .metrics { #expect(head.body == get.body) }
        #expect(!head.body.isEmpty)
    }

    static let refusedMethods: [HTTPCore.Method] = Method.allCases.filter {
        $0 != .get && $0 != .head
    }

    @Test(arguments: refusedMethods)
    func `other methods are refused with Allow`(method: HTTPCore.Method) {
        for page in AdminSite.Page.allCases {
            let response = site().respond(to: AdminRequest(method: method, target: page.path))
            #expect(response.status == 405)
            #expect(field(response, "Allow") == "GET, HEAD")
            #expect(body(response) == "\(page.path) allows GET and HEAD\n")
        }
    }

    @Test(arguments: ["/metric", "/metrics/", "/METRICS", "/healthz/x", "*", "//", "/%6detrics"])
    func `anything but a page is not found, whatever the method`(target: String) {
        for method in [Method.get, .post] {
            let response = site().respond(to: AdminRequest(method: method, target: target))
            #expect(response.status == 404)
            #expect(body(response) == "no such page; see /\n")
        }
        let json = site().respond(
            to: AdminRequest(method: .get, target: target, accept: "application/json"))
        #expect(body(json) == "{\"status\":\"not_found\",\"message\":\"no such page; see /\"}\n")
    }

    @Test(arguments: ["/", "", "/?a", "?"])
    func `the index is a list of every page, or for browsers the live page`(target: String) {
        let text = site().respond(to: AdminRequest(method: .get, target: target))
        #expect(text.status == 200)
        #expect("\(text.contentType)" == "text/plain; charset=utf-8")
        for page in AdminSite.Page.allCases {
            #expect(body(text).contains("\n\(page.path)\t"))
        }
        let html = site().respond(
            to: AdminRequest(method: .get, target: target, accept: "text/html,*/*;q=0.8"))
        #expect("\(html.contentType)" == "text/html; charset=utf-8")
        #expect(html.body == LivePage.shell.body)
        #expect(field(html, "Vary") == "Accept")
        for field in LivePage.protection { #expect(html.fields.contains(field)) }
    }

    @Test func `the live page's files are there for everybody, and nothing in them is inline`() {
        let access = AdminAccess(needsToken: true, token: nil)
        let shell = body(LivePage.shell)
        #expect(!shell.contains("<style") && !shell.contains(" style=") && !shell.contains(" on"))
        let named = shell.matches(of: /(?:href|src)="(\/page\/[^"]+)"/).map { String($0.1) }
        #expect(named.count >= 4)
        for path in named {
            let file = site().respond(to: AdminRequest(method: .get, target: path, access: access))
            #expect(file.status == 200, "\(path)")
            #expect(field(file, "Cache-Control") == "no-store")
            for field in LivePage.protection { #expect(file.fields.contains(field)) }
            let post = site().respond(to: AdminRequest(method: .post, target: path))
            #expect(post.status == 405)
        }
    }

    @Test func `the published state is asked only for the page that shows it`() {
        let asked = Locked<[String]>([])
        let source = AdminSource(
            metrics: {
                asked.withLock { $0.append("metrics") }
                return MetricsSnapshot(
                    workers: [],
                    service: ServiceMetrics())
            },
            readiness: {
                asked.withLock { $0.append("readiness") }
                return .ready
            })
        let site = AdminSite(source: source, version: "1")
        for target in ["/", "/healthz", "/none", "/metrics", "/readyz"] {
            _ = site.respond(to: AdminRequest(method: .get, target: target))
        }
        _ = site.respond(to: AdminRequest(method: .post, target: "/metrics"))
        #expect(asked.withLock { $0 } == ["metrics", "readiness"])
    }
}

@Suite("Admin: the token")
struct AdminTokenTests {
    static let secret = "0123456789abcdef"

    static let given: [(String?, Bool)] = [
        ("Bearer 0123456789abcdef", true), ("bearer 0123456789abcdef", true),
        ("BEARER   0123456789abcdef", true), (nil, false), ("", false), ("Bearer", false),
        ("Bearer ", false), ("0123456789abcdef", false), ("Basic 0123456789abcdef", false),
        ("Bearer 0123456789abcdeg", false), ("Bearer 1123456789abcdef", false),
        ("Bearer 0123456789abcde", false), ("Bearer 0123456789abcdeff", false),
        ("Bearer 0123456789ABCDEF", false), ("Bearer 0123456789abcdef ", false),
    ]

    @Test(arguments: given)
    func `only the token itself, as a bearer token, is accepted`(given: String?, expected: Bool) {
        let token = AdminSecret(Array(Self.secret.utf8))
        #expect(token.authorizes(given) == expected)
    }

    @Test(arguments: AdminSite.Page.allCases)
    func `with a token wanted, the metrics need it, and no other page does`(
        page: AdminSite.Page
    ) {
        let isOpen = page != .metrics
        let token = AdminSecret(Array(Self.secret.utf8))
        let right = "Bearer \(Self.secret)"
        #expect(AdminAccess(needsToken: true, token: token).allows(page, right))
        #expect(AdminAccess(needsToken: true, token: token).allows(page, nil) == isOpen)
        #expect(AdminAccess(needsToken: true, token: token).allows(page, "Bearer x") == isOpen)
        #expect(AdminAccess(needsToken: true, token: nil).allows(page, right) == isOpen)
        #expect(AdminAccess(needsToken: false, token: token).allows(page, nil))
    }
}

@Suite("Admin: what is published")
struct PublishedTests {
    @Test func `the process's figures are plausible and move`() throws {
        let reader = ProcessReader()
        let first = reader.figures()
        #expect(first.residentBytes > 1 << 20)
        #expect(first.virtualBytes >= first.residentBytes)
        #expect(first.openDescriptors >= 3)
        #expect((first.maximumDescriptors ?? .max) >= first.openDescriptors)
        #expect(first.cpuMicroseconds > 0)
        let now = UInt64(Date().timeIntervalSince1970 * 1000)
        #expect(first.startMilliseconds <= now + 1000)
        #expect(first.startMilliseconds > now - 24 * 3_600_000)
        var sum: UInt64 = 0
        while reader.figures().cpuMicroseconds == first.cpuMicroseconds { sum &+= 1 }
        #expect(reader.figures().cpuMicroseconds > first.cpuMicroseconds)
        #expect(reader.figures().startMilliseconds == first.startMilliseconds)
    }

    static let statms: [(String, UInt64, UInt64)] = [
        ("100 20 3 4 0 5 0\n", 100, 20), ("1 2", 1, 2),
    ]

    @Test(arguments: statms)
    func `statm is read by position`(text: String, virtual: UInt64, resident: UInt64) throws {
        let pages = try #require(ProcessReader.statm(text))
        #expect(pages.virtual == virtual)
        #expect(pages.resident == resident)
    }

    @Test(arguments: ["", "1", "x y", "1 y", "-1 2"])
    func `a malformed statm is refused`(text: String) {
        #expect(ProcessReader.statm(text) == nil)
    }

    @Test func `the start time is found behind any command name`() {
        let rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
        #expect(ProcessReader.startTicks("7 (pinfold)" + rest) == 4242)
        #expect(ProcessReader.startTicks("7 (a) b) (c d)" + rest) == 4242)
        #expect(ProcessReader.startTicks("7 pinfold") == nil)
        #expect(ProcessReader.startTicks("7 (x) S 1 2") == nil)
        #expect(ProcessReader.startTicks("") == nil)
    }
}

@Suite("Metrics: labels of the HTTP core's values")
struct MethodLabelTests {
    @Test(arguments: HTTPCore.Method.allCases)
    func `a method's label is found by its raw value`(method: HTTPCore.Method) throws {
        let label = try #require(MetricMethod(rawValue: method.rawValue)).label
        let expected = method == .other ? "other" : String(describing: method.name)
        #expect(String(describing: label) == expected)
    }
}
