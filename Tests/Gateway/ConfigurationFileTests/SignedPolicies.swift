import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

@testable import Gateway

/// Policies signed by keys of the tests.
struct PolicySigners {
    let key: Ed25519SigningKey
    let other: Ed25519SigningKey

    init() throws { (key, other) = (try Ed25519SigningKey(), try Ed25519SigningKey()) }

    func publicKey(_ key: Ed25519SigningKey) -> PolicyPublicKey {
        PolicyPublicKey(PolicyPublicKey.prefix + Base64.encode(key.publicKey))!
    }

    /// The key that configurations of the tests have.
    var trusted: PolicyPublicKey { publicKey(key) }

    func line(_ key: Ed25519SigningKey, _ signed: [UInt8]) -> String {
        PolicyEnvelope.line(
            PolicyEnvelope.Signature(
                key: publicKey(key), bytes: key.signature(of: PolicyEnvelope.input(signed))!))
    }

    /// A signed policy, by the trusted key or by others.
    func policy(
        _ yaml: String, serial: Int64 = 7, expires: Int64 = 4_102_444_800,
        by keys: [Ed25519SigningKey]? = nil
    ) -> [UInt8] {
        let signed = Array((PolicyEnvelope.header(serial: serial, expires: expires) + yaml).utf8)
        return signed + (keys ?? [key]).flatMap { Array(line($0, signed).utf8) }
    }

    /// The local file: with the trusted key, and more.
    func local(_ more: String = "", _ policy: String = "") -> String {
        """
        policy: { url: "https://policy.example/p", publicKeys: ["\(trusted)"]\(policy) }
        \(more)
        """
    }
}

/// Loads a local text together with a policy, named `policy.yaml`.
func load(
    _ local: String, with policy: [UInt8], now: Int64 = 1_800_000_000
) throws -> LoadedConfiguration {
    var environment = testEnvironment
    environment.policy = PolicyDocument(name: "policy.yaml", bytes: policy, isRequired: true)
    environment.now = now
    return try ConfigurationLoader(environment: environment)
        .load(text: Array(local.utf8), name: "/srv/gateway.yaml")
}

/// The errors of both, as lines; empty if they load.
func errors(of local: String, with policy: [UInt8]) -> [String] {
    do {
        _ = try load(local, with: policy)
        return []
    } catch let errors as ConfigurationErrors {
        return errors.errors.map(\.description)
    } catch {
        return ["\(error)"]
    }
}
