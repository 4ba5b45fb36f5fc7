import Documents
import HTTPCore
import Locking
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway
@testable import SharedCacheLevel

@Suite("The API of a fleet")
struct FleetResourcesTests {
    /// What an engine would do.
    final class Engine: Sendable {
        let published = Locked<[PolicyOffers.Offer]>([])
        let members = Locked<[FleetMember]?>([])

        var access: FleetAdministration.Engine {
            FleetAdministration.Engine(
                readMembers: { [self] in $0(members.withLock { $0 }) },
                publish: { [self] envelope, percent, completion in
                    guard members.withLock({ $0 }) != nil else { return completion(false) }
                    published.withLock {
                        $0.append(PolicyOffers.Offer(envelope: envelope, percent: percent))
                    }
                    completion(true)
                }, isReached: { [self] in members.withLock { $0 } != nil })
        }
    }

    private let signers: PolicySigners
    private let engine = Engine()
    private let fleet: FleetAdministration
    private let folder = TemporaryFolder()

    init() throws {
        signers = try PolicySigners()
        let local = """
            policy: { engine: true, publicKeys: ["\(signers.trusted)"] }
            cache: { shared: { url: "unix:///run/redis.sock" } }
            """
        let loaded = try load(local, with: signers.policy("{}\n", serial: 7))
        let policies = PolicyHolder()
        policies.local = loaded.local
        policies.adopt(loaded.snapshot, loaded.document, at: 0)
        fleet = FleetAdministration(
            name: Array("gw-1".utf8), engine: engine.access,
            publishing: PolicyPublishing(
                policies: policies, archive: PolicyArchive(folder: folder.path), lists: { [] }),
            pinUseFile: folder.file("none"))
    }

    private func ask(
        _ name: String, _ target: String, _ content: [UInt8]? = nil,
        of fleet: FleetAdministration?
    ) throws -> AdminResponse {
        let resources = AdminResource.ofFleet(fleet) { work in
            work()
            return true
        }
        let resource = try #require(resources.first { $0.name == name })
        var request = AdminRequest(method: resource.method, target: target)
        request.content = content
        switch resource.answer(request) {
        case .now(let response), .stream(let response, _): return response
        case .afterContent:
            Issue.record("the content is there")
            throw CancellationError()
        case .later(let begin):
            let found = Locked<AdminResponse?>(nil)
            begin { response in found.withLock { $0 = response } }
            return try #require(found.withLock { $0 })
        }
    }

    private func value(_ response: AdminResponse) throws -> DocumentValue {
        try JSONDocument.value(of: response.body)
    }

    @Test func `the fleet is what the engine says now, or said before`() throws {
        let member = FleetMember(
            name: Array("gw-2".utf8), instance: [0x61], age: 5, isCurrent: true, isSelf: false,
            report: FleetReport().encoded())
        engine.members.withLock { $0 = [member] }
        let first = try value(try ask("fleet", "/api/v1/fleet", of: fleet))
        #expect(first["name"] == .string("gw-1") && first["current"] == .boolean(true))
        guard case .array(let gateways)? = first["gateways"] else {
            Issue.record("there are no gateways")
            return
        }
        #expect(gateways.map { $0["name"] } == [.string("gw-2")])
        engine.members.withLock { $0 = nil }
        let then = try value(try ask("fleet", "/api/v1/fleet", of: fleet))
        #expect(then["current"] == .boolean(false) && then["gateways"] == first["gateways"])
        #expect(try ask("fleet", "/api/v1/fleet?x=1", of: fleet).status == 400)
    }

    @Test func `a policy is published for a share`() throws {
        let bytes = signers.policy("hosts: []\n", serial: 8)
        let answer = try ask("publishPolicy", "/api/v1/fleet/policy?canary=10", bytes, of: fleet)
        #expect(answer.status == 200)
        #expect(try value(answer)["serial"] == .number(8))
        #expect(try value(answer)["percent"] == .number(10))
        #expect(
            engine.published.withLock { $0 }
                == [PolicyOffers.Offer(envelope: bytes, percent: 10)])
        // The rest gets what this gateway knows to be the newest.
        fleet.offers.put(bytes, percent: 10)
        let rest = try ask("publishPolicy", "/api/v1/fleet/policy", [], of: fleet)
        #expect(rest.status == 200)
        #expect(
            engine.published.withLock { $0.last }
                == PolicyOffers.Offer(envelope: bytes, percent: 100))
    }

    @Test(arguments: ["0", "101", "x", "", "10&x=1"])
    func `a share is from 1 to 100`(share: String) throws {
        let bytes = signers.policy("hosts: []\n", serial: 8)
        let answer = try ask(
            "publishPolicy", "/api/v1/fleet/policy?canary=\(share)", bytes, of: fleet)
        #expect(answer.status == 400)
        #expect(engine.published.withLock { $0 } == [])
    }

    @Test func `what is refused, or has no engine, is not published`() throws {
        let path = "/api/v1/fleet/policy"
        let older = try ask("publishPolicy", path, signers.policy("{}\n", serial: 6), of: fleet)
        #expect(older.status == 422)
        guard case .string(let detail)? = try value(older)["detail"] else {
            Issue.record("nothing is said")
            return
        }
        #expect(detail.hasPrefix("its serial 6 is lower than 7"))
        engine.members.withLock { $0 = nil }
        let away = try ask("publishPolicy", path, signers.policy("{}\n", serial: 8), of: fleet)
        #expect(away.status == 503)
        #expect(engine.published.withLock { $0 } == [])
    }

    @Test func `policies that are known are told, and given as they were signed`() throws {
        let former = try PolicyEnvelope(signers.policy("hosts: []\n", serial: 5))
        fleet.publishing.archive.keep(former)
        let canary = signers.policy("hosts: []\n", serial: 9)
        fleet.offers.put(canary, percent: 20)
        let known = try value(try ask("fleetPolicies", "/api/v1/fleet/policy", of: fleet))
        #expect(known["newest"] == .number(9) && known["inForce"] == .number(7))
        #expect(known["percent"] == .number(20))
        guard case .array(let all)? = known["known"] else {
            Issue.record("none is told")
            return
        }
        #expect(all.map { $0["serial"] } == [.number(9), .number(7), .number(5)])
        func body(_ serial: String) throws -> AdminResponse {
            try ask("fleetPolicy", "/api/v1/fleet/policy/\(serial)", of: fleet)
        }
        #expect(try body("9").body == canary && body("5").body == former.bytes)
        #expect(try body("7").status == 200 && body("6").status == 404)
        #expect(try body("07").status == 400 && body("x").status == 400)
    }

    @Test func `without a fleet all say so`() throws {
        for name in ["fleet", "publishPolicy", "fleetPolicies", "fleetPolicy"] {
            let answer = try ask(name, "/api/v1/fleet", [], of: nil)
            #expect(answer.status == 409, "\(name)")
        }
    }
}
