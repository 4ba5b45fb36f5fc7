import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Testing

@testable import Gateway

@Suite("Signed policies")
struct PolicyEnvelopeTests {
    let signers: PolicySigners

    init() throws { signers = try PolicySigners() }

    private let now: Int64 = 1_800_000_000

    private func decision(
        _ bytes: [UInt8], after known: [UInt8]? = nil, now: Int64? = nil,
        keys: [PolicyPublicKey]? = nil
    ) throws -> PolicyDecision {
        PolicyDecision.of(
            bytes, after: try known.map { try PolicyEnvelope($0) },
            keys: keys ?? [signers.trusted], now: now ?? self.now)
    }

    private func isRefused(_ decision: PolicyDecision) -> Bool {
        if case .refuse = decision { true } else { false }
    }

    @Test func `what a policy says of itself is read`() throws {
        let policy = signers.policy("hosts: []\n", serial: 12, expires: 1_900_000_000)
        let envelope = try PolicyEnvelope(policy)
        #expect(envelope.serial == 12)
        #expect(envelope.expires == 1_900_000_000)
        #expect(envelope.signatures.map(\.key) == [signers.trusted])
        #expect(
            String(decoding: envelope.signed, as: UTF8.self)
                == "# pinfold-policy: 1\n# serial: 12\n# expires: 2030-03-17T17:46:40Z\nhosts: []\n"
        )
        #expect(try decision(policy) == .take(signedBy: [signers.trusted]))
    }

    @Test func `a policy that ends anywhere before its end is refused`() throws {
        let policy = signers.policy("hosts: [{ match: [a.example] }]\n")
        for count in 0..<policy.count {
            #expect(isRefused(try decision(Array(policy.prefix(count)))), "\(count) bytes")
        }
        #expect(!isRefused(try decision(policy)))
    }

    @Test func `a policy of which any bit is another is refused`() throws {
        let policy = signers.policy("{}\n")
        for index in policy.indices {
            for bit in 0..<8 {
                var changed = policy
                changed[index] ^= 1 << UInt8(bit)
                #expect(isRefused(try decision(changed)), "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test(arguments: [0, 1, 20, 40, 60])
    func `a policy with one byte more is refused`(_ offset: Int) throws {
        var policy = signers.policy("{}\n")
        policy.insert(UInt8(ascii: " "), at: offset)
        #expect(isRefused(try decision(policy)))
        #expect(isRefused(try decision(signers.policy("{}\n") + [0x0A])))
        #expect(isRefused(try decision(signers.policy("{}\n") + [0x20])))
    }

    @Test func `a signature is of policies and of nothing else`() throws {
        let signed = Array((PolicyEnvelope.header(serial: 1, expires: 4_102_444_800) + "{}\n").utf8)
        let plain = PolicyEnvelope.Signature(
            key: signers.trusted, bytes: signers.key.signature(of: signed)!)
        let policy = signed + Array(PolicyEnvelope.line(plain).utf8)
        #expect(try decision(policy) == .refuse(.signature(.wrong(signers.trusted))))
    }

    @Test func `one signature by a known key is enough`() throws {
        let (own, other) = (signers.key, signers.other)
        let both = signers.policy("{}\n", by: [other, own])
        let otherKey = signers.publicKey(other)
        #expect(try decision(both) == .take(signedBy: [signers.trusted]))
        #expect(try decision(both, keys: [otherKey]) == .take(signedBy: [otherKey]))
        #expect(
            try decision(both, keys: [signers.trusted, otherKey])
                == .take(signedBy: [otherKey, signers.trusted]))
        let foreign = signers.policy("{}\n", by: [other])
        #expect(try decision(foreign) == .refuse(.signature(.unknown([otherKey]))))
    }

    @Test func `a signature by a known key must be good beside another that is`() throws {
        let (own, other) = (signers.key, signers.other)
        let signed = Array((PolicyEnvelope.header(serial: 1, expires: 4_102_444_800) + "{}\n").utf8)
        let policy =
            signed + Array(signers.line(other, signed + [0x0A]).utf8)
            + Array(signers.line(own, signed).utf8)
        #expect(try decision(policy) == .take(signedBy: [signers.trusted]))
        let otherKey = signers.publicKey(other)
        #expect(
            try decision(policy, keys: [signers.trusted, otherKey])
                == .refuse(.signature(.wrong(otherKey))))
    }

    @Test(arguments: [
        ("", "line 1 does not begin with"),
        ("hosts: []\n", "line 1 does not begin with"),
        ("# pinfold-policy: 2\n# serial: 1\n# expires: 2030-01-01T00:00:00Z\n", "another version"),
        ("# pinfold-policy: 1 \n# serial: 1\n# expires: 2030-01-01T00:00:00Z\n", "another version"),
        ("# pinfold-policy: 1\n# serial: 0\n# expires: 2030-01-01T00:00:00Z\n", "has no serial"),
        ("# pinfold-policy: 1\n# serial: 01\n# expires: 2030-01-01T00:00:00Z\n", "has no serial"),
        ("# pinfold-policy: 1\n# serial: +1\n# expires: 2030-01-01T00:00:00Z\n", "has no serial"),
        ("# pinfold-policy: 1\n# serial: -1\n# expires: 2030-01-01T00:00:00Z\n", "has no serial"),
        ("# pinfold-policy: 1\n# serial: 1\r\n# expires: 2030-01-01T00:00:00Z\n", "has no serial"),
        (
            "# pinfold-policy: 1\n# serial: 9007199254740992\n# expires: 2030-01-01T00:00:00Z\n",
            "has no serial"
        ),
        ("# pinfold-policy: 1\n# serial: 1\n# expires: 2030-01-01\n", "has no time"),
        ("# pinfold-policy: 1\n# serial: 1\n# expires: 2030-01-01T00:00:00+00:00\n", "has no time"),
        ("# pinfold-policy: 1\n# serial: 1\n# expires: 2030-01-01T00:00:00.0Z\n", "has no time"),
        ("# pinfold-policy: 1\n# serial: 1\n# expires: 2030-02-29T00:00:00Z\n", "has no time"),
        ("# pinfold-policy: 1\n# serial: 1\n# expires: 2016-12-31T23:59:60Z\n", "has no time"),
        ("# pinfold-policy: 1\n# serial: 1\n", "line 3 does not begin with"),
        ("# pinfold-policy: 1\n# expires: 2030-01-01T00:00:00Z\n# serial: 1\n", "line 2 does not"),
        ("\u{FEFF}# pinfold-policy: 1\n# serial: 1\n# expires: 2030-01-01T00:00:00Z\n", "line 1"),
        (
            "# pinfold-policy: 1\n# serial: 1\n# expires: 2030-01-01T00:00:00Z\n"
                + "# signature: x\nhosts: []\n", "line 4 is a signature with something after it"
        ),
    ])
    func `there is one way to write a header`(_ text: String, _ problem: String) throws {
        let signed = Array(text.utf8)
        let decision = try decision(signed + Array(signers.line(signers.key, signed).utf8))
        guard case .refuse(let refusal) = decision else {
            Issue.record("it is not refused")
            return
        }
        #expect(refusal.text.contains(problem), "\(refusal.text)")
        #expect(refusal.token == "format")
    }

    @Test func `a leap day is a day`() throws {
        let text = "# pinfold-policy: 1\n# serial: 1\n# expires: 2032-02-29T23:59:59Z\n{}\n"
        let signed = Array(text.utf8)
        let policy = signed + Array(signers.line(signers.key, signed).utf8)
        #expect(try PolicyEnvelope(policy).expires == 1_961_711_999)
    }

    @Test func `sizes are limited`() throws {
        let header = PolicyEnvelope.header(serial: 7, expires: 4_102_444_800).utf8.count
        let room = PolicyEnvelope.maximumSignedBytes - header - 1
        let longest = "#" + String(repeating: " ", count: room - 1) + "\n"
        #expect(!isRefused(try decision(signers.policy(longest))))
        #expect(isRefused(try decision(signers.policy("#" + longest))))
        #expect(
            isRefused(
                try decision([UInt8](repeating: 0x23, count: PolicyEnvelope.maximumBytes + 1))))
        let keys = try (0...PolicyEnvelope.maximumSignatures).map { _ in try Ed25519SigningKey() }
        let most = [signers.key] + keys.dropLast(2)
        #expect(!isRefused(try decision(signers.policy("{}\n", by: most))))
        #expect(isRefused(try decision(signers.policy("{}\n", by: most + keys.suffix(1)))))
        #expect(isRefused(try decision(signers.policy("{}\n", by: most + keys))))
        #expect(isRefused(try decision(signers.policy("{}\n", by: [signers.key, signers.key]))))
    }

    @Test func `a serial never goes down`() throws {
        let known = signers.policy("{}\n", serial: 7)
        func after(_ bytes: [UInt8]) throws -> PolicyDecision { try decision(bytes, after: known) }
        #expect(try after(known) == .unchanged)
        #expect(
            try after(signers.policy("{}\n", serial: 8)) == .take(signedBy: [signers.trusted]))
        #expect(
            try after(signers.policy("{}\n", serial: 6))
                == .refuse(.older(serial: 6, known: 7)))
        #expect(try after(signers.policy("{} \n", serial: 7)) == .refuse(.sameSerial(7)))
        let both = signers.policy("{}\n", serial: 7, by: [signers.key, signers.other])
        // What is not signed by a key that counts, anybody may have written there.
        #expect(try after(both) == .unchanged)
        let keys = [signers.trusted, signers.publicKey(signers.other)]
        #expect(try decision(both, after: known, keys: keys) == .signedAnew(by: keys))
        #expect(try decision(known, after: both, keys: keys) == .unchanged)
        #expect(try decision(both, after: both, keys: keys) == .unchanged)
        // Who cannot sign cannot say anything about serials.
        let foreign = signers.policy("{}\n", serial: 6, by: [signers.other])
        guard case .refuse(.signature) = try after(foreign) else {
            Issue.record("its signature is not looked at first")
            return
        }
    }

    @Test func `a policy has expired from its time on`() throws {
        let policy = signers.policy("{}\n", serial: 7, expires: now)
        #expect(try decision(policy, now: now - 1) == .take(signedBy: [signers.trusted]))
        #expect(try decision(policy, now: now) == .refuse(.expired(serial: 7, at: now)))
        // The one in force is not taken again.
        #expect(try decision(policy, after: policy, now: now + 1) == .unchanged)
    }

    @Test(arguments: [
        "", "ed25519:", "ed25519:AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        // The neutral element, and a point that is not reduced.
        "ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "ed25519:7v///////////////////////////////////////38=",
        "ED25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "ed25519: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURp=",
    ])
    func `what is no public key is refused`(_ text: String) {
        #expect(PolicyPublicKey(text) == nil)
    }

    /// RFC 8032 §7.1, test 1.
    @Test func `a public key is its 32 bytes`() throws {
        let text = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
        #expect(try #require(PolicyPublicKey(text)).description == text)
    }

    @Test func `a private key is read as it was written`() throws {
        let pem = try #require(signers.key.pem)
        #expect(try Ed25519SigningKey(pem: pem).publicKey == signers.key.publicKey)
        #expect(throws: Ed25519SigningKey.KeyError.unreadable) {
            try Ed25519SigningKey(pem: Array("no key".utf8))
        }
    }
}
