import Clocks
import Foundation
import PinfoldTLS
import Testing

@testable import Gateway

@Suite("The files of a listener's keys")
struct ListenerKeyTests {
    /// The warnings about a listener whose certificate keys have these modes.
    private func warnings(modes: [Int], asList: Bool = true) throws -> [ConfigurationWarning] {
        let now = Clock.wallSeconds()
        return try withTemporaryFolder { folder in
            let files = try modes.indices.map { index in
                let made = try CertificateAuthority.make(
                    AuthorityProfile(
                        key: .ecdsaP256, commonName: "\(index).test",
                        validity: now - 3600...now + 365 * 86_400))
                try write(made.certificatePEM, to: "\(folder)/\(index).pem", mode: 0o644)
                try write(made.keyPEM, to: "\(folder)/\(index).key", mode: modes[index])
                return index
            }
            func list(_ suffix: String) -> String {
                let names = files.map { "\($0).\(suffix)" }
                return asList ? "[\(names.joined(separator: ", "))]" : names[0]
            }
            let text = """
                listeners:
                  - address: "127.0.0.1:0"
                    tls:
                      certificate: \(list("pem"))
                      key: \(list("key"))
                """
            return try ConfigurationLoader(environment: testEnvironment)
                .load(text: Array(text.utf8), name: folder + "/gateway.yaml").warnings
        }
    }

    private func write(_ bytes: [UInt8], to path: String, mode: Int) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    @Test(arguments: [0o644, 0o604, 0o660, 0o666, 0o602])
    func `a key that users other than its owner and group may read causes a warning`(mode: Int)
        throws
    {
        let found = try warnings(modes: [mode], asList: false)
        #expect(found.map(\.key) == ["listeners[0].tls.key"])
        #expect(
            found.first?.text.hasSuffix(
                "0.key\" is accessible to users other than its owner and group "
                    + "(mode 0\(String(mode, radix: 8))); protect it with chmod 640") == true,
            "\(found)")
    }

    @Test(arguments: [0o600, 0o400, 0o640, 0o440])
    func `a key that only its owner and group may read causes no warning`(mode: Int) throws {
        #expect(try warnings(modes: [mode], asList: false).isEmpty)
    }

    @Test func `each of several keys is named by its index`() throws {
        #expect(
            try warnings(modes: [0o644, 0o600, 0o664]).map(\.key)
                == ["listeners[0].tls.key[0]", "listeners[0].tls.key[2]"])
    }
}
