import CLinux
import COpenSSL
import Testing
import Trust

@testable import PinfoldTLS

@Suite("Contexts and certificates")
struct ContextTests {
    /// The outline of a certificate, with nothing in it.
    static let hollow: [UInt8] = [0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x07]
    static let hollowKey: [UInt8] = [0x30, 0x05, 0x30, 0x03, 0x06, 0x01, 0x01]

    static let wrong: [(Pinset, TLSContextError)] = [
        (pinset(.publicKey), .pinset(name: "p", .pinsetWithoutPins)),
        (pinset(.certificate), .pinset(name: "p", .pinsetWithoutPins)),
        (pinset(.none, allowInvalid: true), .pinset(name: "p", .hostNameWithoutPins)),
        (
            pinset(.certificate, PKI.leaf.pins(.key)), .pinset(name: "p", .keyPinInCertificateMode)
        ),
        (
            pinset(.certificate, PKI.leaf.pins(.keyFile)),
            .pinset(name: "p", .keyPinInCertificateMode)
        ),
        (
            pinset(.certificate, [.certificate(hollow)]), .pin(pinset: "p", .notACertificate)
        ),
        (pinset(.publicKey, [.certificate(hollow)]), .pin(pinset: "p", .notACertificate)),
        (
            pinset(.publicKey, [.certificate(PKI.leaf.der + [0])]),
            .pin(pinset: "p", .notACertificate)
        ),
        (pinset(.publicKey, [.publicKey(hollowKey)]), .pin(pinset: "p", .notAPublicKey)),
        (
            pinset(.publicKey, [.publicKey(PKI.leaf.publicKey + [0])]),
            .pin(pinset: "p", .notAPublicKey)
        ),
    ]

    @Test(arguments: wrong)
    func `a pinset that cannot work is an error of the context`(
        _ wrong: Pinset, _ error: TLSContextError
    ) throws {
        let good = pinset(.publicKey, PKI.leaf.pins(.key), name: "good")
        #expect(throws: error) { try TLSClientContext.make([good, wrong]) }
        #expect(error.description.hasPrefix("pinset p: "))
    }

    @Test func `an anchor that is no certificate is an error with its place`() throws {
        var wrong = pinset(.publicKey, PKI.leaf.pins(.key), anchors: [PKI.root])
        wrong.anchors.append(Self.hollow)
        let error = TLSContextError.anchor(pinset: "p", index: 1, .notACertificate)
        #expect(throws: error) { try TLSClientContext.make([wrong]) }
        #expect(error.description == "pinset p, anchor 2: not a certificate")
    }

    @Test func `roots that are no certificates are an error that names the file`() throws {
        let text = Array("hello".utf8)
        #expect(throws: TLSContextError.rootsFile(name: "ca.pem", .notCertificateOrKey)) {
            try TrustRoots([.file(name: "ca.pem", contents: text)])
        }
        #expect(throws: TLSContextError.rootsFile(name: "ca.pem", .keyInsteadOfCertificate)) {
            try TrustRoots([.file(name: "ca.pem", contents: PKI.root.publicKey)])
        }
        #expect(throws: TLSContextError.root(name: "ca.pem", index: 0, .notACertificate)) {
            try TrustRoots([.file(name: "ca.pem", contents: Self.hollow)])
        }
    }

    @Test
    func `the system's roots load, also beside a file, also one that is there twice`() throws {
        let roots = try TrustRoots([
            .system, .file(name: "a", contents: PKI.root.pem),
            .file(name: "b", contents: PKI.root.der),
        ])
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(roots: roots), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().count == 1)
    }

    @Test func `the system's roots are read when they are first needed`() throws {
        let roots = try TrustRoots(
            [.system, .file(name: "a", contents: PKI.root.pem)], readsSystem: false)
        #expect(!roots.hasReadSystem)
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(roots: roots), port: server.port)
            #expect(!roots.hasReadSystem)
            #expect(client.handshake() == nil)
        }
        #expect(roots.hasReadSystem)
        #expect(roots.readSystem() == nil)
        #expect(try TrustRoots([]).hasReadSystem)
        // The contents of the system's file are then present.
        let (variable, standard) = TrustRoots.systemLocations[0]
        let path = getenv(variable).map { String(cString: $0) } ?? standard
        let (late, early) = try (TrustRoots([.system], readsSystem: false), TrustRoots([.system]))
        #expect(early.hasReadSystem && !late.hasReadSystem)
        guard let file = BIO_new_file(path, "r") else { return }
        defer { BIO_free(file) }
        let certificate = try #require(PEM_read_bio_X509(file, nil, nil, nil))
        defer { X509_free(certificate) }
        let name = X509_get_subject_name(certificate)
        #expect(early.anchors(named: name) != nil && late.anchors(named: name) != nil)
        #expect(late.hasReadSystem)
    }

    @Test func `the system's roots do not trust an unknown authority`() throws {
        let server = TestServer([PKI.direct, PKI.root])
        do {
            let client = try TestClient(.make(roots: TrustRoots([.system])), port: server.port)
            #expect(client.handshake()?.token == "untrusted-root")
        }
        #expect(server.records().allSatisfy { $0.request.isEmpty })
    }

    @Test func `an application protocol has a name of 1 to 255 bytes`() throws {
        for (count, isFine) in [(0, false), (1, true), (255, true), (256, false)] {
            var settings = TLSClientSettings()
            settings.applicationProtocols = [String(repeating: "x", count: count)]
            let made = try? TLSClientContext(settings, roots: PKI.roots())
            #expect((made != nil) == isFine)
        }
    }

    @Test func `the library's context is made when it is needed, where that is allowed`() throws {
        let pins = pinset(.publicKey, PKI.direct.pins(.key))
        var settings = TLSClientSettings()
        settings.policy = PinningPolicy(pinsets: [pins])
        let now = try TLSClientContext(settings, roots: PKI.roots())
        #expect(now.hasLibrary)
        let later = try TLSClientContext(settings, roots: PKI.roots(), isDeferred: true)
        #expect(!later.hasLibrary)
        #expect(later.verifier.securityLevel == now.verifier.securityLevel)
        let library = try later.library()
        #expect(try later.hasLibrary && later.library() == library)
        let prepared = try TLSClientContext(settings, roots: PKI.roots(), isDeferred: true)
        prepared.prepare()
        #expect(prepared.hasLibrary)
    }

    @Test func `a context whose library's was made later verifies, and keeps sessions`() throws {
        var settings = TLSClientSettings()
        settings.profile = ChosenProfile(.lenient)
        settings.policy = PinningPolicy(pinsets: [pinset(.publicKey, PKI.direct.pins(.key))])
        let context = try TLSClientContext(
            settings, roots: PKI.roots(PKI.root), sessions: TLSSessionCache(), isDeferred: true)
        let server = TestServer([PKI.direct], connections: 2)
        let resumed = try (0..<2).map { _ in
            let client = try TestClient(context, port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
            return client.connection.isResumed
        }
        #expect(resumed == [false, true])
        settings.policy = PinningPolicy(pinsets: [pinset(.publicKey, PKI.leaf.pins(.key))])
        let other = try TLSClientContext(
            settings, roots: PKI.roots(PKI.root), isDeferred: true)
        let refusing = TestServer([PKI.direct])
        #expect(try TestClient(other, port: refusing.port).handshake()?.token == "no-pin-matches")
    }

    @Test func `the library is asked at once for what it could refuse`() throws {
        let changes: [((inout TLSClientSettings) -> Void, isPossible: Bool)] = [
            ({ $0.ciphers = "ECDHE-RSA-AES128-GCM-SHA256" }, true),
            ({ $0.ciphers = "none" }, false),
            ({ $0.cipherSuites = "TLS_AES_128_GCM_SHA256" }, true),
            ({ $0.cipherSuites = "none" }, false), ({ $0.minimumVersion = .tls11 }, true),
            ({ $0.applicationProtocols = [""] }, false),
        ]
        for (change, isPossible) in changes {
            var settings = TLSClientSettings()
            change(&settings)
            let made = try? TLSClientContext(settings, roots: PKI.roots(), isDeferred: true)
            #expect(made.map(\.hasLibrary) == (isPossible ? true : nil))
        }
    }

    @Test func `a certificate is inspected as openssl x509 prints it`() throws {
        let inspection = try CertificateInspection(certificate: PKI.leaf.der)
        #expect(inspection.identity.subject == "CN=Leaf")
        #expect(
            inspection.names == ["service.test", "*.wild.test", "127.0.0.1", "0:0:0:0:0:0:0:1"])
        #expect(inspection.notBefore < TestClient.now)
        #expect(inspection.notAfter - inspection.notBefore == 86_400 + 3600)
        #expect(
            try CertificateInspection.keyDigest(publicKey: PKI.leaf.publicKey)
                == inspection.identity.key)
        // The digests computed again, with other functions of the library.
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(PKI.leaf.der, PKI.leaf.der.count, &digest)
        #expect(inspection.identity.fingerprint.bytes == digest)
        SHA256(PKI.leaf.publicKey, PKI.leaf.publicKey.count, &digest)
        #expect(inspection.identity.key.bytes == digest)
        #expect(throws: CertificateError.notACertificate) {
            try CertificateInspection(certificate: Self.hollow)
        }
        #expect(throws: CertificateError.notAPublicKey) {
            try CertificateInspection.keyDigest(publicKey: Self.hollowKey)
        }
    }

    @Test func `what a peer calls itself is printable, bounded and never empty`() throws {
        let name = "a\u{0}b\nc\u{7F}é" + String(repeating: "x", count: 40)
        let hostile = TestCertificate(
            PKI.Profile(
                name: name,
                alternativeNames: (0..<20).map { "DNS:n\($0).test" }.joined(separator: ",")),
            issuer: nil)
        let inspection = try CertificateInspection(certificate: hostile.der)
        #expect(inspection.identity.subject.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        #expect(inspection.identity.subject.utf8.count <= 256)
        #expect(inspection.names.count == 16)
        let named = TestCertificate(
            PKI.Profile(name: "", alternativeNames: "DNS:first.test"), issuer: nil)
        #expect(try CertificateInspection(certificate: named.der).identity.subject == "first.test")
        let nameless = TestCertificate(PKI.Profile(name: "", alternativeNames: nil), issuer: nil)
        #expect(
            try CertificateInspection(certificate: nameless.der).identity.subject == "(no name)")
    }

    @Test func `every error has a unique token and sentence`() {
        let errors: [TLSError] = [
            .trust(TrustError(.invalidPolicy)),
            .alertReceived(code: 40, name: "handshake_failure"),
            .versionRefused, .notTLS, .unanswered(errorNumber: nil), .truncated,
            .transport(errorNumber: ECONNRESET),
            .protocolViolation("x"), .unauthenticated, .resources("x"),
        ]
        #expect(Set(errors.map(\.token)).count == errors.count)
        #expect(Set(errors.map(\.description)).count == errors.count)
        let numbers = [EPIPE, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, EIO]
        let texts = numbers.map { TLSError.transport(errorNumber: $0).description }
        #expect(Set(texts).count == numbers.count)
    }

    @Test func `certificates are read with fewer decoders by the default provider`() {
        #expect(CertificateLibrary.context != nil)
    }
}
