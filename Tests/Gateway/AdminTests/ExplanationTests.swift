import Documents
import EngineTestSupport
import HTTPCore
import Locking
import PinfoldEngine
import PinfoldResolver
import Testing

@testable import Gateway

@Suite("Admin: explanations")
struct ExplanationTests {
    private static let text = """
        access:
          clients: [127.0.0.1, 192.0.2.0/24]
          rules:
            - { name: no-secrets, paths: ["/secret"], action: deny }
            - { name: seen, hosts: [a.test], action: report }
        pinsets: { keys: { mode: none } }
        hosts: [{ match: [a.test], pinsets: [keys], upgrade: https, cache: { store: false } }]
        """

    /// The names that were resolved, with what resolves them.
    private final class World: Sendable {
        let asked = Locked<[String]>([])
        let policy: PolicySnapshot

        init() throws {
            policy = try PolicySnapshot(
                forQueries: testConfiguration(ExplanationTests.text))
        }

        func source(isRunning: Bool = true) -> AdminSource {
            var source = AdminSource()
            source.explanations = ExplanationSource(
                policy: { isRunning ? self.policy : nil },
                resolve: { name, completion in
                    self.asked.withLock { $0.append(name) }
                    completion(
                        .resolved(
                            ResolvedAnswer(
                                addresses: [IPAddress("192.0.32.1")].compactMap { $0 },
                                source: .dns, isComplete: true, expiresAtMilliseconds: .max)))
                },
                moment: { _, _ in
                    var moment = RunningExplanation.Moment()
                    moment.loaded = 1_000_000
                    moment.reachability = [
                        ReachabilityReport.Server(name: "a.test", state: .notReachable)
                    ]
                    moment.servers = [
                        StatusReport.Server(
                            listener: "app", url: "http://b.test/", state: "ejected",
                            isBackup: false, weight: 1, requests: 0, cause: "too many 503")
                    ]
                    moment.parents = [RunningExplanation.Moment.Parent(name: "p", isDown: true)]
                    return moment
                },
                cache: nil,
                work: { work in
                    work()
                    return true
                })
            return source
        }

        /// The answer to a request.
        func ask(
            _ query: String, as proof: AdminAccess.Proof = .socket, isRunning: Bool = true
        ) throws -> AdminResponse {
            let site = AdminSite(source: source(isRunning: isRunning), version: "1.2.3")
            var request = AdminRequest(method: .get, target: "/api/v1/explain" + query)
            request.access = AdminAccess(needsToken: false, token: nil, proof: proof)
            switch site.answer(to: request) {
            case .now(let response), .stream(let response, _): return response
            case .afterContent: throw WireError.malformedTarget
            case .later(let begin):
                let found = Locked<AdminResponse?>(nil)
                begin { response in found.withLock { $0 = response } }
                return try #require(found.withLock { $0 })
            }
        }
    }

    private func value(_ response: AdminResponse) throws -> DocumentValue {
        try #require(response.status == 200)
        #expect(
            try complaint(about: response.body, by: RunningExplanation.shape.schema) == nil)
        return try JSONDocument.value(of: response.body)
    }

    private func words(_ value: DocumentValue?) -> [String] {
        guard case .array(let values)? = value else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    @Test func `who may see all of it is told what the command prints, and the moment`() throws {
        let world = try World()
        let found = try value(world.ask("?url=http://a.test/secret&client=192.0.2.1"))
        #expect(world.asked.withLock { $0 } == ["a.test"])
        var query = ExplanationQuery(url: "http://a.test/secret")
        query.client = "192.0.2.1"
        query.addresses = ["192.0.32.1"]
        let explained = try query.prepared(for: world.policy.configuration).explanation(
            under: world.policy, resolved: .success([]), now: 1_800_000_000)
        #expect(
            words(found["text"])
                == explained.lines + [
                    "reachability: a.test is not reachable",
                    "server of app: http://b.test/ is ejected: too many 503",
                    "parent: p is down",
                    "configuration: number 1, loaded 1970-01-01T00:16:40Z",
                ])
        guard case .dictionary(let same) = Explanation.shape.json(explained) else { return }
        for member in same.members { #expect(found[member.key] == member.value) }
        #expect(found["access"] == .string("full"))
        #expect(found["verdict"] == .string("refused"))
        #expect(found["running"]?["generation"] == .number(1))
    }

    @Test func `without a proof nothing is resolved and nothing named that is not for everybody`()
        throws
    {
        let world = try World()
        let found = try value(world.ask("?url=http://a.test/secret", as: .loopback))
        #expect(world.asked.withLock { $0 }.isEmpty)
        #expect(found["access"] == .string("masked"))
        #expect(found["verdict"] == .string("refused"))
        #expect(found["label"] == .string("a.test"))
        let text = "\(found)"
        for hidden in ["no-secrets", "seen", "not_reachable", "ejected", "192.0.32.1"] {
            #expect(!text.contains(hidden), "\(hidden)")
        }
        for member in ["entry", "rules", "addresses", "destination", "server"] {
            #expect(found[member] == nil, "\(member)")
        }
        #expect(
            words(found["text"]) == [
                "http://a.test/secret", "entry: a.test", "pinset: keys (mode none, 0 pins)",
                "a request with the full URL: refused: 403 denied-by-rule",
                "cache: not used: the entry has cache.store: false",
                "configuration: number 1, loaded 1970-01-01T00:16:40Z",
                "masked: without the token, a certificate or the Unix socket",
            ])
        // Another verdict has another text.
        let passed = try value(world.ask("?url=http://a.test/&client=192.0.2.1", as: .loopback))
        #expect(passed["verdict"] == .string("passed"))
        #expect(
            words(passed["text"]).contains(
                "a request with the full URL: upgraded: sent as verified TLS to port 443"))
    }

    static let refused: [(String, AdminAccess.Proof, Bool, UInt16, String)] = [
        ("", .socket, true, 400, "expected url"),
        ("?url=http://a.test/&more=1", .socket, true, 400, "unknown parameter more"),
        ("?url=a.test", .socket, true, 400, "the gateway does not serve a.test"),
        ("?url=unix:app.sock", .socket, true, 400, "is no absolute path"),
        ("?url=http://a.test/&client=x", .socket, true, 400, "client: x is not an IP address"),
        ("?url=http://a.test/&address=x", .socket, true, 400, "address: x is not an IP address"),
        ("?url=http://a.test/&user=ann", .socket, true, 400, "user: there is no user ann"),
        ("?url=http://a.test/&group=g", .socket, true, 400, "group: whose it is"),
        ("?url=http://a.test/&listener=x", .socket, true, 400, "expected one of"),
        ("?url=http://a.test/&user=ann", .loopback, true, 403, "user and group are for who"),
        ("?url=http://a.test/&group=g", .loopback, true, 403, "user and group are for who"),
        ("?url=http://a.test/", .none, true, 403, ""),
        ("?url=http://a.test/", .socket, false, 503, "starting or shutting down"),
    ]

    @Test(arguments: refused)
    func `what cannot be answered says why`(
        query: String, proof: AdminAccess.Proof, isRunning: Bool, status: UInt16, text: String
    ) throws {
        let response = try World().ask(query, as: proof, isRunning: isRunning)
        #expect(response.status == status)
        #expect(try complaint(about: response.body, by: AdminError.shape.schema) == nil)
        guard case .string(let detail)? = try JSONDocument.value(of: response.body)["detail"]
        else {
            Issue.record("no detail")
            return
        }
        #expect(text.isEmpty || detail.contains(text), "\(detail)")
    }
}
