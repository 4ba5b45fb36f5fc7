import Foundation
import TestSupport
import Testing

@testable import PinfoldTLS

/// Verifiers other than ours, each a separate program; one that is not installed is skipped.
@Suite("Verifiers that are not ours", .timeLimit(.minutes(30))) struct OtherVerifierTests {
    /// A folder with the anchors, a certificate with what follows it, and its key.
    private struct Files {
        let folder: URL
        let host: String

        init(
            _ issued: Issued, host: String, trusted: CertificateAuthority,
            others: [SharedCertificate] = []
        ) throws {
            self.host = host
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("verify-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try write("ca.pem", trusted.pem)
            try write("leaf.pem", try #require(issued.certificate.pem))
            let behind = try others.flatMap { try #require($0.pem) }
            try write("chain.pem", try #require(issued.certificate.pem) + behind)
            try write("others.pem", behind)
            try write("key.pem", try #require(issued.key.pem))
        }

        private func write(_ name: String, _ bytes: [UInt8]) throws {
            try Data(bytes).write(to: folder.appendingPathComponent(name))
        }

        /// A program's output; its status is 0 for a certificate that it accepts.
        func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
            let command = try Command(
                "timeout", ["60", program] + arguments, in: folder.path, keepsOutput: true)
            let outcome = command.wait()
            return (outcome.status, outcome.output + outcome.errors)
        }

        func remove() { try? FileManager.default.removeItem(at: folder) }
    }

    private static func isInstalled(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
    }

    private static let hosts = ["service.test", "192.0.2.7", "a_b.service.test"]

    /// Certificates in every combination of keys, with and without a successor.
    private func forEach(
        hosts: [String] = hosts, _ body: (Files) throws -> Void
    ) throws {
        for key in [AuthorityProfile.Key.ecdsaP256, .rsa(bits: 2048)] {
            let first = try Fixture.authority(
                key: key, limits: ["service.test", "192.0.2.0/24"])
            let profile = AuthorityProfile(
                key: key, commonName: "Second",
                validity: Fixture.now - Fixture.day...Fixture.now + 30 * Fixture.day)
            let second = try Fixture.authority(first.makeSuccessor(profile))
            for (kind, host) in [CertificateKeyKind.ecdsaP256, .rsa2048]
                .flatMap({ kind in hosts.map { (kind, $0) } })
            {
                for issuer in [first, second] {
                    let issued = try Fixture.issue(Fixture.request(issuer, host, kind: kind))
                    let files = try Files(
                        issued, host: host, trusted: first, others: issuer.intermediates)
                    defer { files.remove() }
                    try body(files)
                }
            }
        }
    }

    @Test func `openssl verifies it strictly`() throws {
        try forEach { files in
            let option = files.host.first?.isNumber == true ? "-verify_ip" : "-verify_hostname"
            let (status, text) = try files.run(
                "openssl",
                [
                    "verify", "-x509_strict", "-purpose", "sslserver", option, files.host,
                    "-CAfile", "ca.pem", "-untrusted", "chain.pem", "leaf.pem",
                ])
            #expect(status == 0, "\(text)")
        }
    }

    /// A handshake in memory, with OpenSSL's strict flag, which Python 3.13 sets by default.
    private static let python = """
        import ssl, sys
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain("chain.pem", "key.pem")
        client = ssl.create_default_context(cafile="ca.pem")
        client.verify_flags |= ssl.VERIFY_X509_STRICT
        a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [client.wrap_bio(a, b, server_hostname=sys.argv[1]),
                server.wrap_bio(b, a, server_side=True)]
        while ends:
            for end in list(ends):
                try:
                    end.do_handshake()
                    ends.remove(end)
                except ssl.SSLWantReadError:
                    pass
        """

    @Test(.enabled(if: isInstalled("python3")))
    func `Python's client accepts it`() throws {
        try forEach(hosts: ["service.test", "192.0.2.7"]) { files in
            let (status, text) = try files.run("python3", ["-c", Self.python, files.host])
            #expect(status == 0, "\(text)")
        }
    }

    /// libcurl over NSS, through its C functions, against a Python server: 77 if it is not there.
    private static let nss = """
        import ctypes, socket, ssl, sys, threading
        try:
            curl = ctypes.CDLL("libcurl-nss.so.4")
        except OSError:
            sys.exit(77)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain("chain.pem", "key.pem")
        listener = socket.create_server(("127.0.0.1", 0))
        def serve():
            connection = server.wrap_socket(listener.accept()[0], server_side=True)
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
            connection.close()
        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        curl.curl_easy_init.restype = curl.curl_slist_append.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(curl.curl_easy_init())
        to = ctypes.c_void_p(curl.curl_slist_append(None, f"::127.0.0.1:{port}".encode()))
        for option, value in [(10002, f"https://{sys.argv[1]}:{port}/".encode()),
                              (10065, b"ca.pem"), (10243, to), (10004, b"")]:
            curl.curl_easy_setopt(handle, option, value)
        curl.curl_easy_strerror.restype = ctypes.c_char_p
        code = curl.curl_easy_perform(handle)
        print(code, curl.curl_easy_strerror(code))
        sys.exit(min(code, 1))
        """

    @Test(.enabled(if: isInstalled("python3")))
    func `a client of NSS accepts it, where there is one`() throws {
        try forEach(hosts: ["service.test"]) { files in
            let (status, text) = try files.run("python3", ["-c", Self.nss, files.host])
            #expect(status == 0 || status == 77, "\(text)")
        }
    }

    private static let node = """
        const tls = require('tls'), fs = require('fs');
        const read = name => fs.readFileSync(name);
        const server = tls.createServer({ cert: read('chain.pem'), key: read('key.pem') });
        server.listen(0, '127.0.0.1', () => {
          const name = process.argv[1];
          const client = tls.connect({
            port: server.address().port, host: '127.0.0.1', ca: read('ca.pem'),
            ...(/^[0-9]/.test(name) ? {} : { servername: name }),
            checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
          }, () => process.exit(client.authorized ? 0 : 1));
          client.on('error', error => { console.log(error); process.exit(1); });
        });
        """

    @Test(.enabled(if: isInstalled("node")))
    func `Node's client accepts it`() throws {
        try forEach(hosts: ["service.test"]) { files in
            let (status, text) = try files.run("node", ["-e", Self.node, files.host])
            #expect(status == 0, "\(text)")
        }
    }

    /// The JDK's path validator, and the names as read from the certificate.
    private static let java = """
        import java.io.*; import java.security.cert.*; import java.util.*;
        public class Verify {
          static List<Certificate> read(CertificateFactory factory, String name) throws Exception {
            try (InputStream in = new FileInputStream(name)) {
              return new ArrayList<>(factory.generateCertificates(in));
            }
          }
          public static void main(String[] arguments) throws Exception {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            X509Certificate anchor = (X509Certificate) read(factory, "ca.pem").get(0);
            List<Certificate> chain = read(factory, "chain.pem");
            PKIXParameters parameters = new PKIXParameters(Set.of(new TrustAnchor(anchor, null)));
            parameters.setRevocationEnabled(false);
            CertPathValidator.getInstance("PKIX").validate(
                factory.generateCertPath(chain), parameters);
            X509Certificate leaf = (X509Certificate) chain.get(0);
            Collection<List<?>> names = leaf.getSubjectAlternativeNames();
            if (names.size() != 1) throw new Exception("names: " + names);
            Object name = names.iterator().next().get(1);
            if (!name.equals(arguments[0])) throw new Exception("name: " + name);
          }
        }
        """

    @Test(.enabled(if: isInstalled("javac") && isInstalled("java")))
    func `Java's validator accepts it`() throws {
        var isCompiled = false
        let classes = FileManager.default.temporaryDirectory
            .appendingPathComponent("classes-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: classes, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: classes) }
        let source = classes.appendingPathComponent("Verify.java").path
        try Data(Self.java.utf8).write(to: URL(fileURLWithPath: source))
        try forEach(hosts: ["service.test", "192.0.2.7"]) { files in
            if !isCompiled {
                let (status, text) = try files.run("javac", ["-d", classes.path, source])
                try #require(status == 0, "\(text)")
                isCompiled = true
            }
            let (status, text) = try files.run("java", ["-cp", classes.path, "Verify", files.host])
            #expect(status == 0, "\(text)")
        }
    }
}
