import CLinux
import COpenSSL
import PinfoldTLS
import Testing

@Suite("What clients do wrong")
struct ServerFailureTests {
    @Test(
        arguments: [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\n\r\n",
            "SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\0\0\0\0\0\0\0\0\0",
        ])
    func `what is not TLS is reported`(said: String) throws {
        let sockets = SocketPair()
        let server = try TLSServerConnection(context: .make(), fileDescriptor: sockets.near)
        sockets.say(Array(said.utf8))
        #expect(server.handshake() == .failed(.notTLS))
        #expect(server.failure == .notTLS)
        #expect(server.failure?.text(of: "client") == "the client sent something other than TLS")
    }

    @Test func `a client that closes in the middle of its first message is truncated`() throws {
        let probe = try Pair()
        _ = probe.client.handshake()
        let hello = probe.sockets.take(16_384)
        for count in [0, 1, 4, 5, 6, hello.count / 2, hello.count - 1] {
            let sockets = SocketPair()
            let server = try TLSServerConnection(context: .make(), fileDescriptor: sockets.near)
            sockets.say(Array(hello.prefix(count)))
            #expect(server.handshake() == .wantRead)
            sockets.closeFar()
            #expect(server.handshake() == .failed(.truncated), "after \(count) bytes")
        }
    }

    @Test func `a client that closes after the answer is reported as closed`() throws {
        let pair = try Pair()
        #expect(pair.client.handshake() == .wantRead)
        #expect(pair.server.handshake() == .wantRead)
        pair.sockets.closeFar()
        // Closed with the server's answer unread, it is a reset.
        let error = pair.server.handshake().error
        #expect(error == .truncated || error == .transport(errorNumber: ECONNRESET))
    }

    @Test func `a client that does not trust the certificate sends an alert`() throws {
        let pair = try Pair(client: .make(roots: PKI.roots(PKI.rogueRoot)))
        let result = pair.handshake()
        guard case .trust = result.client.error else {
            Issue.record("expected a refusal by the policy")
            return
        }
        // In TLS 1.3 the server is not done before the client has judged it.
        #expect(result.server == .failed(.alertReceived(code: 48, name: "unknown_ca")))
        #expect(
            pair.server.failure?.text(of: "client")
                == "the client sent the alert unknown_ca (48)")
    }

    @Test func `a client with older versions only is refused with the alert`() throws {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_2_VERSION)
        let server = try TLSServerConnection(
            context: .make(minimum: .tls13), fileDescriptor: sockets.near)
        #expect(client.open(server) == .failed(.versionRefused))
        #expect(server.sentAlert == TLSAlert(code: 70))
    }

    @Test func `renegotiation is refused, and the connection continues`() throws {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_2_VERSION)
        let server = try TLSServerConnection(context: .make(), fileDescriptor: sockets.near)
        #expect(client.open(server) == .complete)
        #expect(server.version == .tls12)
        #expect(SSL_renegotiate(client.ssl) == 1)
        #expect(client.step().failure == nil)
        #expect(server.readAll().end == .wantRead)
        #expect(client.step().failure == "no renegotiation")
        #expect(server.failure == nil)
        #expect(server.write("goes on") == .bytes(7))
    }

    @Test func `keys may be updated, but not without end`() throws {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_3_VERSION)
        let server = try TLSServerConnection(context: .make(), fileDescriptor: sockets.near)
        #expect(client.open(server) == .complete)
        func updateKeys() {
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
            #expect(client.step().failure == nil)
        }
        updateKeys()
        SSL_write(client.ssl, "still here", 10)
        #expect(server.readAll().bytes == Array("still here".utf8))
        for _ in 0..<1000 where server.failure == nil {
            updateKeys()
            _ = server.readAll()
        }
        #expect(server.failure == .tooManyMessages)
    }
}

@Suite("A server's certificate and key")
struct ServerIdentityTests {
    private static func pem(
        of key: OpaquePointer, password: String? = nil
    ) -> [UInt8] {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        let cipher = password == nil ? nil : EVP_aes_128_cbc()
        let bytes = Array((password ?? "").utf8)
        PEM_write_bio_PrivateKey(bio, key, cipher, bytes, Int32(bytes.count), nil, nil)
        var start: UnsafeMutablePointer<CChar>?
        let count = pinfold_BIO_get_mem_data(bio, &start)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
    }

    @Test func `certificate and key are read from PEM, and the chain is sent`() throws {
        let identity = try TLSServerIdentity(
            chainPEM: PKI.leaf.pem + PKI.intermediate.pem, keyPEM: Self.pem(of: PKI.leaf.key))
        let pair = try Pair(server: TLSServerContext(identity: identity))
        #expect(pair.opens())
    }

    @Test func `anything but a certificate or a key is refused`() {
        let key = Self.pem(of: PKI.leaf.key)
        for chain in [[], Array("text".utf8), key, PKI.leaf.pem + PKI.leaf.pem.dropLast(40)] {
            #expect(throws: TLSIdentityError.noCertificate) {
                try TLSServerIdentity(chainPEM: chain, keyPEM: key)
            }
        }
        for key in [[], PKI.leaf.pem] {
            #expect(throws: TLSIdentityError.noKey) {
                try TLSServerIdentity(chainPEM: PKI.leaf.pem, keyPEM: key)
            }
        }
        #expect(throws: TLSIdentityError.encryptedKey) {
            try TLSServerIdentity(
                chainPEM: PKI.leaf.pem, keyPEM: Self.pem(of: PKI.leaf.key, password: "secret"))
        }
    }

    @Test func `a key of another certificate is refused`() throws {
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, key: PKI.direct.key)
        #expect {
            try TLSServerContext(identity: identity)
        } throws: { error in
            if case TLSContextError.identity(.refused) = error { true } else { false }
        }
    }
}
