import PinfoldConfiguration
import PinfoldTLS
import TestSupport
import Testing

@testable import Gateway

@Suite("Policies that are published for a fleet")
struct PolicyPublishingTests {
    private let signers: PolicySigners

    init() throws { signers = try PolicySigners() }

    private func publishing(
        _ text: String? = nil, inForce: [UInt8]? = nil, folder: String = "/nonexistent"
    ) throws -> PolicyPublishing {
        let local =
            text
                ?? """
                policy: { engine: true, publicKeys: ["\(signers.trusted)"] }
                cache: { shared: { url: "unix:///run/redis.sock" } }
                """
        let loaded =
            try inForce.map { try load(local, with: $0) }
            ?? ConfigurationLoader(environment: testEnvironment)
            .load(text: Array(local.utf8), name: "/srv/gateway.yaml")
        let policies = PolicyHolder()
        policies.local = loaded.local
        policies.adopt(loaded.snapshot, loaded.document, at: 0)
        return PolicyPublishing(
            policies: policies, archive: PolicyArchive(folder: folder), lists: { [] })
    }

    private func refusal(
        _ bytes: [UInt8]?, offered: [UInt8]? = nil, by publishing: PolicyPublishing
    ) -> PolicyPublishing.RefusalReason? {
        do throws(PolicyPublishing.RefusalReason) {
            _ = try publishing.verified(bytes, offered: offered)
            return nil
        } catch {
            return error
        }
    }

    @Test func `what the gateway would take is published`() throws {
        let publishing = try publishing()
        let envelope = try publishing.verified(signers.policy("{}\n", serial: 1), offered: nil)
        #expect(envelope.serial == 1)
    }

    @Test func `what the gateway would not take is not published`() throws {
        let publishing = try publishing(inForce: signers.policy("{}\n", serial: 7))
        func isRefused(_ bytes: [UInt8], _ token: String) -> Bool {
            guard case .policy(let reason)? = refusal(bytes, by: publishing) else { return false }
            return reason.token == token
        }
        #expect(isRefused(Array("hosts: []".utf8), "format"))
        #expect(isRefused(signers.policy("{}\n", serial: 8, by: [signers.other]), "signature"))
        #expect(isRefused(signers.policy("{}\n", serial: 6), "older"))
        #expect(isRefused(signers.policy("hosts: []\n", serial: 7), "same_serial"))
        #expect(isRefused(signers.policy("{}\n", serial: 8, expires: 10), "expired"))
        #expect(isRefused(signers.policy("listeners: []\n", serial: 8), "content"))
        #expect(
            isRefused(
                signers.policy("hosts: [{ match: [a.example], clearText: allow }]\n", serial: 8),
                "content"))
        #expect(refusal(signers.policy("{}\n", serial: 8), by: publishing) == nil)
        // The one in force, again.
        #expect(refusal(signers.policy("{}\n", serial: 7), by: publishing) == nil)
    }

    @Test func `a canary that others have is not overtaken from below`() throws {
        let publishing = try publishing(inForce: signers.policy("{}\n", serial: 7))
        let canary = signers.policy("hosts: []\n", serial: 9)
        #expect(
            refusal(signers.policy("{}\n", serial: 8), offered: canary, by: publishing)
                == .policy(.older(serial: 8, known: 9)))
        // It is what is published for the rest.
        #expect(try publishing.verified(nil, offered: canary).serial == 9)
        // What nobody has signed does not stand in the way.
        let forged = signers.policy("{}\n", serial: 99, by: [signers.other])
        #expect(
            refusal(signers.policy("{}\n", serial: 8), offered: forged, by: publishing) == nil)
        #expect(try publishing.verified(nil, offered: forged).serial == 7)
    }

    @Test func `without the key nothing is published`() throws {
        let without = try publishing("watch: false")
        #expect(refusal(signers.policy("{}\n"), by: without) == .notConfigured)
        let fetched = try publishing(signers.local())
        #expect(refusal(signers.policy("{}\n"), by: fetched) == .notConfigured)
        #expect(refusal(nil, by: try publishing()) == .nothing)
    }

    @Test func `a policy applies again under another serial`() throws {
        let yaml = "hosts:\n  - { match: [a.example], upgrade: https }\n"
        let first = try PolicyEnvelope(signers.policy(yaml, serial: 3))
        let signed = first.again(serial: 9, expires: 4_102_444_801)
        let bytes = signed + Array(signers.line(signers.key, signed).utf8)
        let again = try PolicyEnvelope(bytes)
        #expect(again.serial == 9 && again.expires == 4_102_444_801)
        #expect(bytes == signers.policy(yaml, serial: 9, expires: 4_102_444_801))
        #expect(again.hash != first.hash && PolicyEnvelope.isHash(again.hash))
        let empty = try PolicyEnvelope(signers.policy("{}\n", serial: 3))
        #expect(
            empty.again(serial: 4, expires: empty.expires)
                == Array(try PolicyEnvelope(signers.policy("{}\n", serial: 4)).signed))
    }

    @Test func `the last policies are kept`() throws {
        let folder = TemporaryFolder()
        let archive = PolicyArchive(folder: folder.path + "/policies")
        #expect(archive.serials == [])
        for serial in 1...10 {
            archive.keep(try PolicyEnvelope(signers.policy("{}\n", serial: Int64(serial))))
        }
        #expect(archive.serials == Array((3...10).reversed()))
        #expect(archive.policy(3, keys: [signers.trusted])?.serial == 3)
        #expect(archive.policy(2, keys: [signers.trusted]) == nil)
        // Only what these keys have signed, and under its own serial.
        #expect(archive.policy(3, keys: [signers.publicKey(signers.other)]) == nil)
        #expect(
            PolicyStore.write(
                signers.policy("{}\n", serial: 4), to: folder.path + "/policies/5.yaml") == nil)
        #expect(archive.policy(5, keys: [signers.trusted]) == nil)
        let publishing = try publishing(
            inForce: signers.policy("{}\n", serial: 12), folder: folder.path + "/policies")
        #expect(publishing.serials(offered: nil).prefix(3) == [12, 10, 9])
        #expect(publishing.policy(12, offered: nil)?.serial == 12)
        #expect(publishing.policy(10, offered: nil)?.serial == 10)
        #expect(publishing.policy(11, offered: nil) == nil)
    }
}
