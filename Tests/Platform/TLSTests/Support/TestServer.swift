import CLinux
import COpenSSL
import Locking

/// A TLS server on loopback, in a separate thread, that serves a known number of connections one
/// after the other with the library's own blocking calls. Programs started by other tests do not
/// inherit its sockets, nor a client's: they would keep open a connection that both ends have
/// closed.
final class TestServer: @unchecked Sendable {
    /// How a connection is served.
    enum Behaviour: Sendable {
        /// Read a request of at least one byte, answer, end the session properly.
        case respond([UInt8])
        /// The same, but hang up without close_notify.
        case truncate([UInt8])
        /// The same, but reset the connection.
        case reset([UInt8])
        /// The same, but leave the session open until the client ends it.
        case hold([UInt8])
        /// Read this many bytes, starting only when the client allows it, then answer with as
        /// many.
        case echo(Int, start: Gate)
        /// Read a request, send this many key updates (TLS 1.3), then answer.
        case updateKeys(Int, [UInt8])
        /// The same, but send the answer in records of one byte.
        case dribble([UInt8])
        /// Complete the handshake and hang up without close_notify.
        case hangUpAfterHandshake
        /// Send something that is not TLS.
        case plainText
        /// Hang up at once.
        case hangUp
    }

    /// What was seen of one connection.
    struct Record: Sendable {
        var isEstablished = false
        var isResumed = false
        var request: [UInt8] = []
        var serverName: String?
        /// Whether the client ended the session with close_notify.
        var hasEndedCleanly = false
        /// The reason of a failed handshake, as the library's message.
        var handshakeError: String?
    }

    struct Options: Sendable {
        var maximumVersion = TLS1_3_VERSION
        var applicationProtocol: String? = "http/1.1"
        var requiresClientCertificate = false
        /// It accepts client certificates of the root, and names the root.
        var acceptsClientsOfRoot = false
    }

    private let context: OpaquePointer
    private let behaviour: Behaviour
    private let listener: Int32
    let port: UInt16
    private let state = Locked<[Record]>([])
    private var thread = pthread_t()
    /// A thread can be joined once.
    private let isJoined = Locked(false)

    /// - Parameters:
    ///   - chain: the leaf, then what is sent with it.
    ///   - connections: how many are served before the thread ends.
    init(
        _ chain: [TestCertificate], _ behaviour: Behaviour = .respond(Array("hello".utf8)),
        options: Options = Options(), connections: Int = 1
    ) {
        self.behaviour = behaviour
        context = TestServer.makeContext(chain, options)
        (listener, port) = TestServer.listen()
        let box = Unmanaged.passRetained(Job(server: self, connections: connections))
        pthread_create(
            &thread, nil,
            { argument in
                // The library's socket BIO raises it; blocked only here, so that the client's is
                // tested.
                var pipe = sigset_t()
                sigemptyset(&pipe)
                sigaddset(&pipe, SIGPIPE)
                pthread_sigmask(SIG_BLOCK, &pipe, nil)
                guard let argument else { return nil }
                Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
    }

    private final class Job {
        let server: TestServer
        let connections: Int
        init(server: TestServer, connections: Int) {
            self.server = server
            self.connections = connections
        }
        func run() {
            for _ in 0..<connections where !server.serve() { return }
        }
    }

    deinit {
        // The thread retains the server, so that it has ended here.
        if !isJoined.withLock({ $0 }) { pthread_detach(thread) }
        close(listener)
        SSL_CTX_free(context)
    }

    /// Waits for the thread to end and returns what it saw, in order.
    func records() -> [Record] {
        join()
        return state.withLock { $0 }
    }

    /// Ends the thread before it has served all, once it is done with the current connection.
    func stop() {
        CLinux.shutdown(listener, Int32(SHUT_RDWR))
        join()
    }

    private func join() {
        isJoined.withLock { isJoined in
            guard !isJoined else { return }
            pthread_join(thread, nil)
            isJoined = true
        }
    }

    private static func makeContext(
        _ chain: [TestCertificate], _ options: Options
    ) -> OpaquePointer {
        guard let context = SSL_CTX_new(TLS_server_method()) else { fatalError("context") }
        // Weak keys and old versions are what some tests are about.
        SSL_CTX_set_security_level(context, 0)
        _ = pinfold_SSL_CTX_set_min_proto_version(context, TLS1_VERSION)
        _ = pinfold_SSL_CTX_set_max_proto_version(context, options.maximumVersion)
        SSL_CTX_use_certificate(context, chain[0].x509)
        SSL_CTX_use_PrivateKey(context, chain[0].key)
        for certificate in chain.dropFirst() {
            SSL_CTX_ctrl(
                context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate.x509))
        }
        if options.requiresClientCertificate {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        if options.acceptsClientsOfRoot {
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), PKI.root.x509)
            SSL_CTX_add_client_CA(context, PKI.root.x509)
        }
        if options.applicationProtocol == "h2" {
            SSL_CTX_set_alpn_select_cb(
                context, { _, _, _, _, _, _ in SSL_TLSEXT_ERR_ALERT_FATAL }, nil)
        } else if options.applicationProtocol != nil {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, selected, count, offered, _, _ in
                    // What tests offer is one name: its length, then its bytes.
                    selected?.pointee = offered.map { $0 + 1 }
                    count?.pointee = offered?.pointee ?? 0
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        return context
    }

    private static func listen() -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && CLinux.listen(descriptor, 128) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard bound else { fatalError("no port") }
        limit(descriptor)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A test that goes wrong ends with an error rather than never.
    private static func limit(_ descriptor: Int32) {
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, size)
    }

    /// Serves one connection; `false` if none arrived.
    private func serve() -> Bool {
        let descriptor = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        guard descriptor >= 0 else { return false }
        TestServer.limit(descriptor)
        defer { close(descriptor) }
        var record = Record()
        defer { state.withLock { $0.append(record) } }
        switch behaviour {
        case .plainText:
            let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
            send(descriptor, text, text.count, Int32(MSG_NOSIGNAL))
            var byte = [UInt8](repeating: 0, count: 4096)
            while recv(descriptor, &byte, byte.count, 0) > 0 {}
            return true
        case .hangUp:
            return true
        case .respond, .truncate, .reset, .hold, .echo, .updateKeys, .dribble,
            .hangUpAfterHandshake:
            break
        }
        guard let ssl = SSL_new(context) else { return false }
        defer { SSL_free(ssl) }
        SSL_set_fd(ssl, descriptor)
        ERR_clear_error()
        guard SSL_accept(ssl) == 1 else {
            record.handshakeError = ERR_reason_error_string(ERR_get_error()).map {
                String(cString: $0)
            }
            return true
        }
        record.isEstablished = true
        record.isResumed = pinfold_SSL_session_reused(ssl) == 1
        record.serverName = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map {
            String(cString: $0)
        }
        converse(ssl, descriptor, &record)
        return true
    }

    private func converse(_ ssl: OpaquePointer, _ descriptor: Int32, _ record: inout Record) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        func read() -> Bool {
            let count = SSL_read(ssl, &buffer, Int32(buffer.count))
            if count > 0 { record.request.append(contentsOf: buffer.prefix(Int(count))) }
            return count > 0
        }
        switch behaviour {
        case .plainText, .hangUp, .hangUpAfterHandshake: return
        case .respond(let response):
            guard read() else { return }
            SSL_write(ssl, response, Int32(response.count))
            SSL_shutdown(ssl)
            // Until the client has gone, so that nothing it has yet to read is lost in a reset.
            while read() {}
        case .truncate(let response):
            guard read() else { return }
            SSL_write(ssl, response, Int32(response.count))
            CLinux.shutdown(descriptor, Int32(SHUT_WR))
            while read() {}
        case .reset(let response):
            guard read() else { return }
            SSL_write(ssl, response, Int32(response.count))
            // The client signals with a second byte that it has read the response.
            guard read() else { return }
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_LINGER, &linger,
                socklen_t(MemoryLayout<CLinux.linger>.size))
        case .hold(let response):
            guard read() else { return }
            SSL_write(ssl, response, Int32(response.count))
            while read() {}
            record.hasEndedCleanly = SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0
        case .updateKeys(let count, let response):
            guard read() else { return }
            for _ in 0..<count {
                guard SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1,
                    SSL_do_handshake(ssl) == 1
                else { return }
            }
            SSL_write(ssl, response, Int32(response.count))
            SSL_shutdown(ssl)
            while read() {}
        case .dribble(let response):
            guard read() else { return }
            for byte in response {
                guard SSL_write(ssl, [byte], 1) == 1 else { return }
            }
            SSL_shutdown(ssl)
            while read() {}
        case .echo(let total, let start):
            start.wait()
            while record.request.count < total, read() {}
            var sent = 0
            while sent < record.request.count {
                let count = record.request.withUnsafeBytes { bytes in
                    SSL_write(ssl, bytes.baseAddress.map { $0 + sent }, Int32(bytes.count - sent))
                }
                guard count > 0 else { return }
                sent += Int(count)
            }
            SSL_shutdown(ssl)
            while read() {}
        }
    }
}

/// Blocks a thread until another releases it.
final class Gate: @unchecked Sendable {
    private var descriptors: [Int32] = [-1, -1]

    init() { _ = pipe2(&descriptors, O_CLOEXEC) }

    deinit {
        close(descriptors[0])
        close(descriptors[1])
    }

    func open() {
        var byte: UInt8 = 1
        write(descriptors[1], &byte, 1)
    }

    func wait() {
        var descriptor = pollfd(fd: descriptors[0], events: Int16(POLLIN), revents: 0)
        poll(&descriptor, 1, 20_000)
    }
}
