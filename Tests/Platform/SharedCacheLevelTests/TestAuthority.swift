import Foundation
import PinfoldTLS
import TestSupport
import Trust

/// An authority of a test's own and the certificates that it issues, made with the `openssl`
/// command.
final class TestAuthority {
    private let folder = TemporaryFolder()

    struct CommandError: Error { let text: String }

    /// A certificate and its key.
    struct Issued {
        let certificatePath: String
        let keyPath: String

        var certificate: [UInt8] {
            FileManager.default.contents(atPath: certificatePath).map(Array.init) ?? []
        }
        var key: [UInt8] { FileManager.default.contents(atPath: keyPath).map(Array.init) ?? [] }
    }

    init() throws {
        try folder.write(
            """
            [req]
            distinguished_name = name
            [name]
            [authority]
            basicConstraints = critical, CA:TRUE
            keyUsage = critical, keyCertSign, cRLSign
            """, to: "authority.cnf")
        try run(
            ["req", "-x509", "-config", "authority.cnf", "-extensions", "authority", "-days", "2"]
                + Self.newKey("root.key") + ["-subj", "/CN=Root", "-out", "root.pem"])
    }

    private static func newKey(_ name: String) -> [String] {
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name]
    }

    private func run(_ arguments: [String]) throws {
        let command = try Command("openssl", arguments, in: folder.path, keepsOutput: true)
        let outcome = command.wait()
        guard outcome.status == 0 else { throw CommandError(text: outcome.errors) }
    }

    /// The file of its own certificate.
    var rootPath: String { folder.file("root.pem") }

    /// - Parameters:
    ///   - name: the names of the files, and of the subject.
    ///   - alternativeNames: as in openssl.cnf: `IP:127.0.0.1`.
    ///   - days: for how long it is valid, from now; less than none for one that has expired.
    func issue(
        _ name: String = "engine", for alternativeNames: String, days: Int = 2
    ) throws -> Issued {
        try folder.write(
            """
            [server]
            basicConstraints = CA:FALSE
            extendedKeyUsage = serverAuth, clientAuth
            subjectAltName = \(alternativeNames)
            """, to: "\(name).cnf")
        try run(
            ["req", "-new", "-config", "authority.cnf"] + Self.newKey("\(name).key")
                + ["-subj", "/CN=\(name)", "-out", "\(name).csr"])
        try run([
            "x509", "-req", "-in", "\(name).csr", "-CA", "root.pem", "-CAkey", "root.key",
            "-set_serial", "\(Int.random(in: 1...Int(Int32.max)))", "-days", "\(days)",
            "-extfile", "\(name).cnf", "-extensions", "server", "-out", "\(name).pem",
        ])
        return Issued(
            certificatePath: folder.file("\(name).pem"), keyPath: folder.file("\(name).key"))
    }

    /// What verifies servers that this authority vouches for.
    func context(
        pins: [Pin] = [], identity: Issued? = nil
    ) throws -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.applicationProtocols = []
        if !pins.isEmpty {
            settings.policy = PinningPolicy(
                pinsets: [Pinset(name: "engine", mode: .publicKey, pins: pins)])
        }
        let root = FileManager.default.contents(atPath: rootPath).map(Array.init) ?? []
        return try TLSClientContext(
            settings, roots: TrustRoots([.file(name: "root.pem", contents: root)]),
            clientIdentity: identity.map {
                try TLSClientIdentity(chainPEM: $0.certificate, keyPEM: $0.key)
            })
    }
}
