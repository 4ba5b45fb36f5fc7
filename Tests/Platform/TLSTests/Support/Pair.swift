import CLinux
import COpenSSL
import PinfoldTLS

/// The two ends of a stream, non-blocking; closed with the object.
final class SocketPair {
    private(set) var near: Int32 = -1
    private(set) var far: Int32 = -1

    init() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { fatalError("no socket pair") }
        (near, far) = (ends[0], ends[1])
    }

    deinit {
        closeFar()
        closeNear()
    }

    /// Unread data from the far end makes this a reset.
    func closeNear() {
        guard near >= 0 else { return }
        close(near)
        near = -1
    }

    func closeFar() {
        guard far >= 0 else { return }
        close(far)
        far = -1
    }

    /// Sends raw bytes from the far end.
    func say(_ bytes: [UInt8]) { _ = send(far, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

    /// Takes at most this many bytes out of the near end, bypassing any session.
    func take(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = recv(near, &bytes, count, 0)
        return Array(bytes.prefix(max(0, got)))
    }
}

/// A client's and a server's connection over a socket pair: they proceed in turn, so that none ever
/// waits.
final class Pair {
    let sockets: SocketPair
    let client: TLSClientConnection
    let server: TLSServerConnection

    /// - Parameters:
    ///   - earlyCount: this many bytes of the client's first message are read directly, and passed
    ///     to the server as already read.
    ///   - offers: the protocols of each side instead of its context's.
    init(
        host: String = "service.test", client: TLSClientContext? = nil,
        server: TLSServerContext? = nil, earlyCount: Int = 0,
        offers: (client: ProtocolOffer?, server: ProtocolOffer?) = (nil, nil)
    ) throws {
        sockets = SocketPair()
        self.client = try TLSClientConnection(
            context: client ?? .make(), fileDescriptor: sockets.far, host: host, port: 443,
            now: TestClient.now, offer: offers.client)
        var early: [UInt8] = []
        if earlyCount > 0 {
            _ = self.client.handshake()
            early = sockets.take(earlyCount)
        }
        self.server = try TLSServerConnection(
            context: try server ?? .make(), fileDescriptor: sockets.near, offer: offers.server)
        early.withUnsafeBytes { self.server.setEarly($0) }
    }

    /// Runs both handshakes to their ends.
    func handshake() -> (client: TLSHandshakeResult, server: TLSHandshakeResult) {
        var result = (client: TLSHandshakeResult.wantRead, server: TLSHandshakeResult.wantRead)
        for _ in 0..<100 {
            result = (client.handshake(), server.handshake())
            if result.client.isEnd, result.server.isEnd { break }
        }
        return result
    }

    /// Whether both handshakes went well.
    func opens() -> Bool { handshake() == (.complete, .complete) }
}

extension TLSHandshakeResult {
    /// Nothing follows.
    var isEnd: Bool {
        switch self {
        case .complete, .failed: true
        case .wantRead, .wantWrite, .turnIsOver, .wantIdentity: false
        }
    }
}

extension TLSConnection {
    /// Reads until there is nothing more at the moment.
    func readAll(capacity: Int = 16_384) -> (end: TLSReadResult, bytes: [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: capacity)
        var bytes: [UInt8] = []
        while true {
            let result = buffer.withUnsafeMutableBytes { read(into: $0) }
            switch result {
            case .bytes(let count, _): bytes += buffer.prefix(count)
            case .turnIsOver: continue
            case .wantRead, .wantWrite, .endOfStream, .truncated, .failed: return (result, bytes)
            }
        }
    }

    func write(_ bytes: [UInt8]) -> TLSWriteResult { bytes.withUnsafeBytes { write($0) } }
    func write(_ text: String) -> TLSWriteResult { write(Array(text.utf8)) }
}

extension TLSServerContext {
    /// A context with the certificate of `service.test`.
    static func make(
        protocols: [String] = ["http/1.1"], minimum: TLSVersion = .tls12
    ) throws -> TLSServerContext {
        var settings = TLSServerSettings()
        settings.applicationProtocols = protocols
        settings.minimumVersion = minimum
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, chain: [PKI.intermediate.x509], key: PKI.leaf.key)
        return try TLSServerContext(settings, identity: identity)
    }
}

/// A client that uses the library directly, for what ours never does.
final class LibraryClient {
    let ssl: OpaquePointer
    private let context: OpaquePointer

    init(descriptor: Int32, version: Int32) {
        guard let context = SSL_CTX_new(TLS_client_method()) else { fatalError("no memory") }
        _ = pinfold_SSL_CTX_set_max_proto_version(context, version)
        guard let ssl = SSL_new(context) else { fatalError("no memory") }
        (self.context, self.ssl) = (context, ssl)
        SSL_set_fd(ssl, descriptor)
        SSL_set_connect_state(ssl)
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    /// One step of the handshake; returns the reason of a failure, as the library's message.
    func step() -> (isDone: Bool, failure: String?) {
        ERR_clear_error()
        let status = SSL_do_handshake(ssl)
        guard status != 1 else { return (true, nil) }
        guard SSL_get_error(ssl, status) == SSL_ERROR_SSL else { return (false, nil) }
        return (false, String(cString: ERR_reason_error_string(ERR_get_error())))
    }

    /// Both handshakes, in turn; returns how the server's ended.
    func open(_ server: TLSServerConnection) -> TLSHandshakeResult {
        var result = TLSHandshakeResult.wantRead
        var isDone = false
        for _ in 0..<100 where !(isDone && result.isEnd) {
            isDone = step().isDone || isDone
            result = server.handshake()
            if case .failed = result { break }
        }
        return result
    }
}
