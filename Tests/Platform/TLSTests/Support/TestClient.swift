import CLinux
import PinfoldTLS
import Trust

/// Drives a client connection over a non-blocking socket as an event loop would: it continues only
/// when the socket is ready for what the last result requested.
final class TestClient {
    let connection: TLSClientConnection
    /// Returns the identity for a server that requests a certificate; `nil` if none is to be
    /// requested.
    var identity: (() -> TLSClientIdentity?)?
    private var descriptor: Int32

    init(
        _ context: TLSClientContext, port: UInt16, host: String = "service.test",
        namedPort: UInt16? = nil, now: Int64 = TestClient.now
    ) throws {
        descriptor = TestClient.connect(to: port)
        connection = try TLSClientConnection(
            context: context, fileDescriptor: descriptor, host: host, port: namedPort ?? port,
            now: now)
    }

    deinit { end() }

    /// Closes the socket.
    func end() {
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
    }

    /// Seconds since 1970.
    static var now: Int64 { Int64(time(nil)) }

    private static func connect(to port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                CLinux.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { fatalError("not connected") }
        _ = fcntl_int(descriptor, F_SETFL, O_NONBLOCK)
        return descriptor
    }

    /// `false` if the socket was not ready within 20 s.
    func waitUntil(_ events: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        // A signal for another test must not end the wait.
        while true {
            let count = poll(&entry, 1, 20_000)
            if count >= 0 || __errno_location().pointee != EINTR { return count == 1 }
        }
    }

    /// Runs the handshake to its end; `nil` if the server was trusted.
    func handshake() -> TLSError? {
        while true {
            switch connection.handshake() {
            case .complete: return nil
            case .wantRead: guard waitUntil(POLLIN) else { return .resources("time-out") }
            case .wantWrite: guard waitUntil(POLLOUT) else { return .resources("time-out") }
            case .turnIsOver: continue
            case .wantIdentity:
                guard let identity else { return .resources("nobody is to be asked") }
                connection.answer(identity())
            case .failed(let error): return error
            }
        }
    }

    /// Writes everything; `false` if the connection failed.
    func write(_ bytes: [UInt8]) -> Bool {
        var taken = 0
        while taken < bytes.count {
            let result = bytes.withUnsafeBytes { all in
                connection.write(UnsafeRawBufferPointer(rebasing: all[taken...]))
            }
            switch result {
            case .bytes(let count):
                taken += count
                if taken < bytes.count, !waitUntil(POLLOUT) { return false }
            case .wantRead: guard waitUntil(POLLIN) else { return false }
            case .wantWrite: guard waitUntil(POLLOUT) else { return false }
            case .failed: return false
            }
        }
        return true
    }

    /// One read into a buffer of this many bytes.
    func read(
        _ capacity: Int, trustsShortReceive: Bool = false
    ) -> (result: TLSReadResult, bytes: [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: capacity)
        let result = buffer.withUnsafeMutableBytes {
            connection.read(into: $0, trustsShortReceive: trustsShortReceive)
        }
        guard case .bytes(let count, _) = result else { return (result, []) }
        return (result, Array(buffer.prefix(count)))
    }

    /// The same, once there is something: the server's session tickets make the socket readable,
    /// too.
    func readWhenReady(
        _ capacity: Int, trustsShortReceive: Bool = false
    ) -> (result: TLSReadResult, bytes: [UInt8]) {
        while true {
            let step = read(capacity, trustsShortReceive: trustsShortReceive)
            guard step.result == .wantRead, waitUntil(POLLIN) else { return step }
        }
    }

    /// Shrinks the kernel's buffer, so that less is enough to fill the socket.
    func limitBuffers(to bytes: Int32) {
        var bytes = bytes
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, size)
    }

    /// Reads to the end, waiting for the socket only when a result says that it is empty, and
    /// returns how it ended.
    func readAll(
        capacity: Int = 16_384, trustsShortReceive: Bool = false
    ) -> (end: TLSReadResult, bytes: [UInt8]) {
        var bytes: [UInt8] = []
        while true {
            let step = read(capacity, trustsShortReceive: trustsShortReceive)
            bytes.append(contentsOf: step.bytes)
            switch step.result {
            case .bytes(_, drained: false), .turnIsOver: continue
            case .bytes(_, drained: true), .wantRead:
                guard waitUntil(POLLIN) else { return (step.result, bytes) }
            case .wantWrite:
                guard waitUntil(POLLOUT) else { return (step.result, bytes) }
            case .endOfStream, .truncated, .failed: return (step.result, bytes)
            }
        }
    }

    /// Request and response on a trusted connection; `nil` unless the session ended properly.
    func exchange(_ request: String = "request") -> String? {
        guard write(Array(request.utf8)) else { return nil }
        let response = readAll()
        guard response.end == .endOfStream else { return nil }
        return String(decoding: response.bytes, as: UTF8.self)
    }
}

extension TLSClientContext {
    /// A context with the pinsets, which requires of chains only what the library does.
    static func make(
        _ pinsets: [Pinset] = [], roots: TrustRoots = PKI.roots(PKI.root),
        sessions: TLSSessionCache? = nil, minimum: TLSVersion = .tls12,
        profile: ChosenProfile = ChosenProfile(.lenient)
    ) throws -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.policy = PinningPolicy(pinsets: pinsets)
        settings.minimumVersion = minimum
        settings.profile = profile
        return try TLSClientContext(settings, roots: roots, sessions: sessions)
    }
}
