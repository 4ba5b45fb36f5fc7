import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("A client's certificate that is asked for in the handshake")
struct ClientIdentityTests {
    private static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]

    private static func identity(of certificate: TestCertificate) throws -> TLSClientIdentity {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        PEM_write_bio_PrivateKey(bio, certificate.key, nil, nil, 0, nil, nil)
        var start: UnsafeMutablePointer<CChar>?
        let count = pinfold_BIO_get_mem_data(bio, &start)
        let key = Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
        return try TLSClientIdentity(chainPEM: certificate.pem, keyPEM: key)
    }

    private func context(roots: TrustRoots = PKI.roots(PKI.root)) throws -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.asksForIdentity = true
        return try TLSClientContext(settings, roots: roots)
    }

    private func server(_ version: Int32, asks: Bool = true) -> TestServer {
        TestServer(
            [PKI.direct],
            options: .init(
                maximumVersion: version, requiresClientCertificate: asks,
                acceptsClientsOfRoot: asks))
    }

    @Test(arguments: versions)
    func `is presented once it is there`(version: Int32) throws {
        let server = server(version)
        do {
            let client = try TestClient(context(), port: server.port)
            var asked = 0
            let identity = try Self.identity(of: PKI.clientOnly)
            client.identity = { [unowned client] in
                asked += 1
                // The server is known by then.
                #expect(client.connection.facts != nil && !client.connection.isOpen)
                #expect(client.connection.isAskedForCertificate)
                return identity
            }
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
            #expect(asked == 1)
            let authorities = client.connection.acceptedAuthorities
            #expect(authorities.count == 1)
            // CN=Root, as encoded in the certificate.
            let root = PKI.root.der
            #expect(authorities.allSatisfy { root.contains($0) })
        }
        #expect(server.records().first?.isEstablished == true)
    }

    @Test(arguments: versions)
    func `is absent if none is configured`(version: Int32) throws {
        let server = server(version)
        do {
            let client = try TestClient(context(), port: server.port)
            client.identity = { nil }
            let error = client.handshake() ?? (client.readAll(), client.connection.failure).1
            let code: UInt8 = version == TLS1_2_VERSION ? 40 : 116
            #expect(error == .certificateRequired(TLSAlert(code: code)))
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(arguments: versions)
    func `is refused by a server that does not know it`(version: Int32) throws {
        let server = server(version)
        do {
            let client = try TestClient(context(), port: server.port)
            let identity = try Self.identity(of: PKI.selfSigned)
            client.identity = { identity }
            let error = client.handshake() ?? (client.readAll(), client.connection.failure).1
            guard case .certificateRejected = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(arguments: versions)
    func `is not asked for by a server that is not trusted`(version: Int32) throws {
        let server = server(version)
        do {
            let client = try TestClient(context(roots: TrustRoots([])), port: server.port)
            client.identity = {
                Issue.record("the certificate would be shown to another server")
                return nil
            }
            #expect(client.handshake()?.token == "untrusted-root")
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(arguments: versions)
    func `is not requested if the server requires none`(version: Int32) throws {
        let server = server(version, asks: false)
        do {
            let client = try TestClient(context(), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
            #expect(client.connection.acceptedAuthorities.isEmpty)
        }
        #expect(server.records().count == 1)
    }

    @Test(arguments: versions)
    func `is the context's where that has one`(version: Int32) throws {
        let server = server(version)
        do {
            var settings = TLSClientSettings()
            settings.asksForIdentity = true
            let client = try TestClient(
                TLSClientContext(
                    settings, roots: PKI.roots(PKI.root),
                    clientIdentity: Self.identity(of: PKI.clientOnly)), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().first?.isEstablished == true)
    }
}
