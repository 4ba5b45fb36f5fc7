import COpenSSL
import Testing

@testable import PinfoldTLS

/// A server's connection inside another session, and its client over memory, so that a test decides
/// which of the outer session's records contain the inner one's bytes.
final class NestedPair {
    let outer: Pair
    let server: TLSServerConnection
    let client: OpaquePointer
    private let context: OpaquePointer
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer

    init(
        outerVersion: TLSVersion = .tls13, innerVersion: TLSVersion = .tls13,
        innerMinimum: TLSVersion = .tls12
    ) throws {
        outer = try Pair()
        _ = SSL_ctrl(
            outer.client.ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(outerVersion.number), nil)
        #expect(outer.opens())
        server = try TLSServerConnection(
            context: .make(minimum: innerMinimum), fileDescriptor: outer.sockets.near,
            outer: outer.server)
        guard let context = SSL_CTX_new(TLS_client_method()), let ssl = SSL_new(context),
            let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem())
        else { fatalError("no memory") }
        (self.context, client, self.incoming, self.outgoing) = (context, ssl, incoming, outgoing)
        _ = SSL_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(innerVersion.number), nil)
        SSL_set_bio(ssl, incoming, outgoing)
        SSL_set_connect_state(ssl)
    }

    deinit {
        SSL_free(client)
        SSL_CTX_free(context)
    }

    /// What the inner client has to send, and has not sent yet.
    func takeOutput() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 22)
        let count = BIO_read(outgoing, &buffer, Int32(buffer.count))
        return Array(buffer.prefix(max(0, Int(count))))
    }

    /// Passes to the inner client what the outer one has received.
    func receive() {
        let bytes = outer.client.readAll().bytes
        if !bytes.isEmpty { BIO_write(incoming, bytes, Int32(bytes.count)) }
    }

    /// Runs the inner handshake, with its client's bytes in records of this size; returns how the
    /// server's ended.
    func handshake(pieces: Int = 1 << 14) -> TLSHandshakeResult {
        var result = TLSHandshakeResult.wantRead
        for _ in 0..<20 {
            ERR_clear_error()
            let isDone = SSL_do_handshake(client) == 1
            ERR_clear_error()
            var output = takeOutput()[...]
            if output.isEmpty { result = server.handshake() }
            while !output.isEmpty {
                let piece = Array(output.prefix(pieces))
                #expect(outer.client.write(piece) == .bytes(piece.count))
                output = output.dropFirst(pieces)
                result = server.handshake()
                if !output.isEmpty, result.isEnd, result != .complete { return result }
            }
            receive()
            if result.isEnd, isDone || result != .complete { break }
        }
        return result
    }

    /// Updates the keys of both clients, and requests the same of their servers.
    func updateKeys() {
        for ssl in [outer.client.ssl, client] {
            #expect(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            #expect(SSL_do_handshake(ssl) == 1)
        }
    }

    /// Makes the inner client encrypt, in records of this many bytes.
    func write(_ bytes: [UInt8], records: Int = 1 << 14) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(records))
            #expect(SSL_write(client, part, Int32(part.count)) == Int32(part.count))
            rest = rest.dropFirst(records)
        }
    }

    /// What the inner client decrypts, and whether its session has ended.
    func read() -> (bytes: [UInt8], isEnd: Bool) {
        receive()
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            ERR_clear_error()
            let count = SSL_read(client, &buffer, Int32(buffer.count))
            guard count > 0 else {
                return (bytes, SSL_get_error(client, count) == SSL_ERROR_ZERO_RETURN)
            }
            bytes += buffer.prefix(Int(count))
        }
    }
}
