import COpenSSL
import Synchronization
import Testing

@testable import PinfoldTLS

@Suite("Sessions that clients resume")
struct TicketTests {
    /// A clock that a test sets.
    private final class TestClock: Sendable {
        let milliseconds = Atomic<Int64>(1_000_000)
        func advance(_ by: Int64) { milliseconds.add(by, ordering: .relaxed) }
    }

    private static let period: Int64 = 1000

    private static func keys(_ clock: TestClock) -> TLSTicketKeys {
        TLSTicketKeys(periodMilliseconds: period) {
            clock.milliseconds.load(ordering: .relaxed)
        }
    }

    private static func context(
        _ keys: TLSTicketKeys?, scope: String = "", clientRoots: TrustRoots? = nil
    ) throws -> TLSServerContext {
        var settings = TLSServerSettings()
        settings.sessionScope = scope
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, chain: [PKI.intermediate.x509], key: PKI.leaf.key)
        return try TLSServerContext(
            settings, source: TLSIdentityList([identity]), clientRoots: clientRoots,
            ticketKeys: keys)
    }

    /// An owned session of the library's.
    private final class Session {
        let pointer: OpaquePointer?
        init(of client: LibraryClient) { pointer = SSL_get1_session(client.ssl) }
        deinit { SSL_SESSION_free(pointer) }
    }

    /// One connection of a client to a server; returns the session that it received.
    private struct Visit {
        var isResumed: Bool
        var session: Session
        var subject: String?
    }

    private static func visit(
        _ server: TLSServerContext, version: Int32, session: Session? = nil,
        name: String = "service.test", scope: String = "", as person: TestCertificate? = nil
    ) throws -> Visit {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: version)
        _ = pinfold_SSL_set_host_name(client.ssl, name)
        if let session { SSL_set_session(client.ssl, session.pointer) }
        if let person {
            #expect(SSL_use_cert_and_key(client.ssl, person.x509, person.key, nil, 1) == 1)
        }
        let connection = try TLSServerConnection(
            context: server, fileDescriptor: sockets.near, sessionScope: scope)
        #expect(client.open(connection) == .complete)
        #expect(connection.write("x") == .bytes(1))
        var byte: UInt8 = 0
        #expect(SSL_read(client.ssl, &byte, 1) == 1)
        let reused = pinfold_SSL_session_reused(client.ssl) == 1
        #expect(connection.isResumed == reused)
        let given = Session(of: client)
        SSL_shutdown(client.ssl)
        return Visit(isResumed: reused, session: given, subject: connection.clientSubject)
    }

    static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]

    @Test(arguments: [[0, 0x2D], [0xFA, 0xFA]] as [[UInt8]])
    func `tickets are for clients that can use them`(type: [UInt8]) throws {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_3_VERSION)
        #expect(SSL_connect(client.ssl) == -1)
        var hello = sockets.take(16_384)
        // The resumption modes (RFC 8446 §4.2.9), or an unknown extension instead.
        let modes: [UInt8] = [0, 0x2D, 0, 2, 1, 1]
        let place = try #require(hello.indices.first { hello[$0...].starts(with: modes) })
        hello.replaceSubrange(place..<place + 2, with: type)
        let server = try TLSServerConnection(
            context: Self.context(Self.keys(TestClock())), fileDescriptor: sockets.near)
        hello.withUnsafeBytes { server.setEarly($0) }
        #expect(server.handshake() == .wantRead)
        #expect(SSL_get_num_tickets(server.ssl) == (type == [0, 0x2D] ? 2 : 0))
    }

    @Test(arguments: versions)
    func `a session is resumed, through any context with the same keys`(version: Int32) throws {
        let keys = Self.keys(TestClock())
        let first = try Self.visit(Self.context(keys), version: version)
        #expect(!first.isResumed)
        let other = try Self.context(keys)
        #expect(try Self.visit(other, version: version, session: first.session).isResumed)
    }

    @Test(arguments: versions)
    func `without keys none is`(version: Int32) throws {
        let server = try Self.context(nil)
        let first = try Self.visit(server, version: version)
        #expect(try !Self.visit(server, version: version, session: first.session).isResumed)
    }

    @Test(arguments: versions)
    func `the key before is accepted, and the one before that is not`(version: Int32) throws {
        let clock = TestClock()
        let server = try Self.context(Self.keys(clock))
        let first = try Self.visit(server, version: version)
        clock.advance(Self.period)
        // The first ticket after the change creates the key.
        _ = try Self.visit(server, version: version)
        let second = try Self.visit(server, version: version, session: first.session)
        #expect(second.isResumed)
        clock.advance(Self.period)
        #expect(try !Self.visit(server, version: version, session: first.session).isResumed)
        // A ticket issued with it uses the next key.
        #expect(try Self.visit(server, version: version, session: second.session).isResumed)
    }

    @Test(arguments: versions)
    func `a session of another scope or name starts over, and does not fail`(
        version: Int32
    ) throws {
        let keys = Self.keys(TestClock())
        let server = try Self.context(keys, scope: "one")
        let session = try Self.visit(server, version: version, scope: "a:443").session
        func resumes(
            _ context: TLSServerContext, scope: String = "a:443", name: String = "service.test"
        ) throws -> Bool {
            try Self.visit(context, version: version, session: session, name: name, scope: scope)
                .isResumed
        }
        #expect(try !resumes(Self.context(keys, scope: "two")))
        #expect(try !resumes(server, scope: "b:443"))
        #expect(try !resumes(server, name: "a.wild.test"))
        #expect(try resumes(server))
    }

    @Test(arguments: versions)
    func `a resumed session reports the client's identity`(version: Int32) throws {
        let server = try Self.context(
            Self.keys(TestClock()), clientRoots: PKI.roots(PKI.root))
        let first = try Self.visit(server, version: version, as: PKI.clientOnly)
        #expect(first.subject == "CN=Client")
        let second = try Self.visit(server, version: version, session: first.session)
        #expect(second.isResumed)
        #expect(second.subject == "CN=Client")
    }

    /// Passes keys on as they are passed to a successor.
    private static func pass(_ keys: TLSTicketKeys, to others: TLSTicketKeys) {
        keys.withPassedOn { others.takeOver($0) }
    }

    @Test(arguments: versions)
    func `a session is resumed with keys that were passed on, and not for longer`(
        version: Int32
    ) throws {
        let clock = TestClock()
        let (keys, others) = (Self.keys(clock), Self.keys(clock))
        let first = try Self.visit(Self.context(keys), version: version)
        clock.advance(Self.period)
        let second = try Self.visit(Self.context(keys), version: version)
        let server = try Self.context(others)
        #expect(try !Self.visit(server, version: version, session: second.session).isResumed)
        Self.pass(keys, to: others)
        Self.pass(keys, to: others)
        for session in [first.session, second.session] {
            #expect(try Self.visit(server, version: version, session: session).isResumed)
        }
        clock.advance(Self.period)
        #expect(try !Self.visit(server, version: version, session: first.session).isResumed)
        #expect(try Self.visit(server, version: version, session: second.session).isResumed)
        // Too late for both.
        let late = Self.keys(clock)
        clock.advance(Self.period)
        Self.pass(keys, to: late)
        let last = try Self.context(late)
        #expect(try !Self.visit(last, version: version, session: second.session).isResumed)
    }

    @Test func `keys that were passed on encrypt what the former process can decrypt`() throws {
        let clock = TestClock()
        let (keys, others) = (Self.keys(clock), Self.keys(clock))
        _ = try Self.visit(Self.context(keys), version: TLS1_3_VERSION)
        Self.pass(keys, to: others)
        let session = try Self.visit(Self.context(others), version: TLS1_3_VERSION).session
        #expect(
            try Self.visit(Self.context(keys), version: TLS1_3_VERSION, session: session).isResumed)
    }

    @Test func `what is no key is not taken over`() throws {
        let clock = TestClock()
        let keys = Self.keys(clock)
        let session = try Self.visit(Self.context(keys), version: TLS1_3_VERSION).session
        clock.advance(-1)
        let others = Self.keys(clock)
        let server = try Self.context(others)
        func resumes() throws -> Bool {
            try Self.visit(server, version: TLS1_3_VERSION, session: session).isResumed
        }
        // From the future, cut off, or too many.
        Self.pass(keys, to: others)
        #expect(try !resumes())
        clock.advance(1)
        keys.withPassedOn { passedOn in
            for count in [0, 1, passedOn.count - 1] {
                others.takeOver(UnsafeRawBufferPointer(rebasing: passedOn[..<count]))
            }
            let many = [UInt8](repeating: 0, count: TLSTicketKeys.maximumBytes) + passedOn
            many.withUnsafeBytes { others.takeOver($0) }
        }
        #expect(try !resumes())
        Self.pass(keys, to: others)
        #expect(try resumes())
        Self.pass(Self.keys(clock), to: others)
        #expect(try resumes())
    }

    @Test func `no session is resumed once its key is forgotten`() throws {
        let keys = Self.keys(TestClock())
        let server = try Self.context(keys)
        let session = try Self.visit(server, version: TLS1_3_VERSION).session
        keys.forget()
        let other = try Self.visit(server, version: TLS1_3_VERSION, session: session)
        #expect(!other.isResumed)
        #expect(
            try Self.visit(server, version: TLS1_3_VERSION, session: other.session).isResumed)
    }

    @Test func `a ticket that was tampered with is a full handshake`() throws {
        let keys = Self.keys(TestClock())
        let stranger = Self.keys(TestClock())
        let session = try Self.visit(Self.context(stranger), version: TLS1_3_VERSION).session
        let visit = try Self.visit(Self.context(keys), version: TLS1_3_VERSION, session: session)
        #expect(!visit.isResumed)
    }
}

@Suite("Clients that prove their identity")
struct ClientCertificateTests {
    private static func open(
        _ person: TestCertificate?, version: Int32
    ) throws -> (TLSHandshakeResult, TLSServerConnection) {
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, chain: [PKI.intermediate.x509], key: PKI.leaf.key)
        let context = try TLSServerContext(
            source: TLSIdentityList([identity]), clientRoots: PKI.roots(PKI.root))
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: version)
        if let person {
            #expect(SSL_use_cert_and_key(client.ssl, person.x509, person.key, nil, 1) == 1)
        }
        let server = try TLSServerConnection(context: context, fileDescriptor: sockets.near)
        return (client.open(server), server)
    }

    @Test(arguments: TicketTests.versions)
    func `the subject of a certificate that leads to a root is reported`(version: Int32) throws {
        let (result, server) = try Self.open(PKI.clientOnly, version: version)
        #expect(result == .complete)
        #expect(server.clientSubject == "CN=Client")
    }

    @Test func `an alternative name is never taken for the subject`() throws {
        let nameless = TestCertificate(
            PKI.Profile(
                name: "", alternativeNames: "DNS:CN=Client", purpose: "clientAuth"),
            issuer: PKI.root)
        let (result, server) = try Self.open(nameless, version: TLS1_3_VERSION)
        #expect(result == .complete)
        #expect(server.clientSubject != "CN=Client")
    }

    @Test(arguments: TicketTests.versions)
    func `without one the handshake fails`(version: Int32) throws {
        let (result, server) = try Self.open(nil, version: version)
        #expect(result == .failed(.clientCertificate("none was sent")))
        #expect(
            server.sentAlert?.name
                == (version == TLS1_2_VERSION ? "handshake_failure" : "certificate_required"))
        #expect(server.clientSubject == nil)
    }

    @Test(arguments: TicketTests.versions)
    func `one that does not do is refused, with the alert for it`(version: Int32) throws {
        let expired = TestCertificate(
            PKI.Profile(
                name: "Late", validFrom: -7200, validUntil: -3600, purpose: "clientAuth"),
            issuer: PKI.root)
        let rogue = TestCertificate(
            PKI.Profile(name: "Rogue", purpose: "clientAuth"), issuer: PKI.rogueRoot)
        let cases = [
            (expired, "certificate_expired"), (rogue, "unknown_ca"),
            (PKI.direct, "unsupported_certificate"),
        ]
        for (certificate, alert) in cases {
            let (result, server) = try Self.open(certificate, version: version)
            guard case .clientCertificate? = result.error else {
                Issue.record("\(alert): \(String(describing: result.error))")
                continue
            }
            #expect(server.sentAlert?.name == alert)
        }
    }
}

@Suite("Versions before 1.2")
struct ObsoleteVersionTests {
    @Test(arguments: [(TLS1_VERSION, TLSVersion.tls10), (TLS1_1_VERSION, .tls11)])
    func `they are used where the minimum allows them, and nowhere else`(
        number: Int32, version: TLSVersion
    ) throws {
        for minimum in TLSVersion.allCases {
            let sockets = SocketPair()
            let client = LibraryClient(descriptor: sockets.far, version: number)
            _ = pinfold_SSL_set_min_proto_version(client.ssl, number)
            SSL_set_security_level(client.ssl, 0)
            let server = try TLSServerConnection(
                context: .make(minimum: minimum), fileDescriptor: sockets.near)
            let result = client.open(server)
            if minimum <= version {
                #expect(result == .complete)
                #expect(server.version == version)
            } else {
                #expect(result == .failed(.versionRefused))
                #expect(server.sentAlert?.name == "protocol_version")
            }
        }
    }

    @Test func `newer ones are preferred nevertheless`() throws {
        let pair = try Pair(server: .make(minimum: .tls10))
        #expect(pair.opens())
        #expect(pair.server.version == .tls13)
    }
}
