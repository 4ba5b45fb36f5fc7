import CLinux
import COpenSSL
import Testing

@testable import PinfoldTLS

/// A peer that ends a connection while the other side is still sending: the kernel keeps what it
/// sent before, even after a reset.
@Suite("The last words of a peer that is gone")
struct LastWordsTests {
    /// A pair whose server has read this, which is not a record of the session, and has therefore
    /// sent an alert and gone away.
    private static func offend(_ pair: Pair) {
        pair.sockets.say([23, 3, 3, 0, 20] + [UInt8](repeating: 7, count: 20))
    }

    @Test func `an alert is reported although a write failed before it was read`() throws {
        let pair = try Pair()
        #expect(pair.opens())
        #expect(pair.server.write("answer") == .bytes(6))
        Self.offend(pair)
        #expect(pair.server.readAll().end == .failed)
        pair.sockets.closeNear()
        #expect(pair.client.write("request") == .failed)
        #expect(pair.client.write("request") == .failed)
        let read = pair.client.readAll()
        #expect(read.bytes == Array("answer".utf8))
        #expect(read.end == .failed)
        #expect(pair.client.failure == .alertReceived(code: 20, name: "bad_record_mac"))
    }

    @Test func `without an alert the reason is that of the write`() throws {
        let pair = try Pair()
        #expect(pair.opens())
        #expect(pair.server.write("answer") == .bytes(6))
        pair.sockets.closeNear()
        #expect(pair.client.write("request") == .failed)
        // There is still something to read.
        #expect(pair.client.failure == nil)
        #expect(pair.client.shutdown())
        let read = pair.client.readAll()
        #expect(read.bytes == Array("answer".utf8))
        #expect(read.end == .failed)
        #expect(pair.client.failure == .transport(errorNumber: EPIPE))
    }

    @Test func `a session that was ended has a clean end though a write has failed`() throws {
        let pair = try Pair()
        #expect(pair.opens())
        #expect(pair.server.write("answer") == .bytes(6))
        #expect(pair.server.shutdown())
        pair.sockets.closeNear()
        #expect(pair.client.write("request") == .failed)
        let read = pair.client.readAll()
        #expect(read.bytes == Array("answer".utf8))
        #expect(read.end == .endOfStream)
    }

    @Test func `an alert in the handshake is reported although nothing can be sent`() throws {
        let sockets = SocketPair()
        let client = try TLSClientConnection(
            context: .make(), fileDescriptor: sockets.far, host: "service.test", port: 443,
            now: TestClient.now)
        let server = OldServer(descriptor: sockets.near)
        #expect(client.handshake() == .wantRead)
        #expect(server.step() == nil)
        sockets.say([23, 3, 3, 0, 20] + [UInt8](repeating: 7, count: 20))
        #expect(server.step() == "unexpected record")
        sockets.closeNear()
        let alert = TLSError.alertReceived(code: 10, name: "unexpected_message")
        #expect(client.handshake() == .failed(alert))
    }

    @Test func `in a handshake without an alert the reason is that of the write`() throws {
        let sockets = SocketPair()
        let client = try TLSClientConnection(
            context: .make(), fileDescriptor: sockets.far, host: "service.test", port: 443,
            now: TestClient.now)
        let server = OldServer(descriptor: sockets.near)
        #expect(client.handshake() == .wantRead)
        #expect(server.step() == nil)
        sockets.closeNear()
        #expect(client.handshake() == .failed(.transport(errorNumber: EPIPE)))
    }

    @Test func `a TLS 1.3 alert after the handshake is reported`() throws {
        let pair = try Pair()
        #expect(pair.client.handshake() == .wantRead)
        #expect(pair.server.handshake() == .wantRead)
        Self.offend(pair)
        #expect(pair.server.handshake().isEnd)
        pair.sockets.closeNear()
        var result = pair.client.handshake()
        if result == .complete {
            #expect(pair.client.readAll().end == .failed)
            result = pair.client.failure.map { .failed($0) } ?? result
        }
        #expect(result == .failed(.alertReceived(code: 20, name: "bad_record_mac")))
    }
}

/// A TLS 1.2 server that uses the library directly.
private final class OldServer {
    private let ssl: OpaquePointer
    private let context: OpaquePointer

    init(descriptor: Int32) {
        guard let context = SSL_CTX_new(TLS_server_method()) else { fatalError("no memory") }
        _ = pinfold_SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION)
        SSL_CTX_use_certificate(context, PKI.leaf.x509)
        SSL_CTX_use_PrivateKey(context, PKI.leaf.key)
        SSL_CTX_ctrl(
            context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(PKI.intermediate.x509))
        guard let ssl = SSL_new(context) else { fatalError("no memory") }
        (self.context, self.ssl) = (context, ssl)
        SSL_set_fd(ssl, descriptor)
        SSL_set_accept_state(ssl)
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    /// One step of the handshake; returns the reason of a failure, as the library's message.
    func step() -> String? {
        ERR_clear_error()
        let status = SSL_do_handshake(ssl)
        guard status != 1, SSL_get_error(ssl, status) == SSL_ERROR_SSL else { return nil }
        return String(cString: ERR_reason_error_string(ERR_get_error()))
    }
}
