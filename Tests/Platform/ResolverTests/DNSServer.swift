import CLinux
import HTTPCore
import Locking

@testable import PinfoldResolver

/// A DNS server on a loopback port, UDP and TCP, that gives the answers that a test sets, and
/// counts.
final class DNSServer: Sendable {
    struct Query: Sendable {
        var id: UInt16
        /// As in the question, in lower case.
        var name: String
        var type: DNSWire.RecordType
        var isTCP: Bool
        /// The question section.
        var question: [UInt8]

        func answer(
            _ answer: [DNSWire.Record] = [], code: UInt16 = 0, truncated: Bool = false,
            authority: [DNSWire.Record] = []
        ) -> Reply {
            .message(
                DNSWire.response(
                    id: id, question: question, code: code, truncated: truncated, answer: answer,
                    authority: authority))
        }

        /// One A or AAAA record, by the question's type.
        func address(v4: String, v6: String, ttl: UInt32 = 60) -> Reply {
            answer(type == .a ? [.a(v4, ttl: ttl)] : [.aaaa(v6, ttl: ttl)])
        }
    }

    indirect enum Reply: Sendable {
        case message([UInt8])
        /// One after the other.
        case messages([[UInt8]])
        case silence
        /// Sent when the test calls `release()`.
        case held(Reply)
    }

    struct StartError: Error {
        var what: String
        var errno = __errno_location().pointee
    }

    private struct State: Sendable {
        var counts: [String: Int] = [:]
        var total = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var held: [(message: [UInt8], to: sockaddr_in)] = []
        var releases = 0
        var isStopped = false
    }

    private final class Inner: Sendable {
        let udp: Int32
        let tcp: Int32
        let wake: Int32
        let reply: @Sendable (Query) -> Reply
        let state = Locked(State())

        init(udp: Int32, tcp: Int32, reply: @escaping @Sendable (Query) -> Reply) {
            (self.udp, self.tcp, self.reply) = (udp, tcp, reply)
            wake = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        }

        deinit {
            for descriptor in [udp, tcp, wake] { close(descriptor) }
        }
    }

    private let inner: Inner
    private let thread: pthread_t
    let endpoint: Endpoint

    /// Starts a server on `127.0.0.<host>`, on a free port or the given one.
    init(
        host: UInt8 = 1, port: UInt16 = 0, reply: @escaping @Sendable (Query) -> Reply
    ) throws {
        let address: UInt32 = 0x7f00_0000 | UInt32(host)
        let (udp, tcp, port) = try DNSServer.sockets(address: address, port: port)
        endpoint = Endpoint(address: .v4(address), port: port)
        inner = Inner(udp: udp, tcp: tcp, reply: reply)
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(inner)
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                DNSServer.run(Unmanaged<Inner>.fromOpaque(argument).takeRetainedValue())
                return nil
            }, argument.toOpaque())
        guard status == 0 else { throw StartError(what: "pthread_create", errno: status) }
        self.thread = thread
    }

    deinit {
        inner.state.withLock { $0.isStopped = true }
        ring()
        pthread_join(thread, nil)
    }

    /// How often this was asked; `name/a`, `name/aaaa`, with `/tcp` appended for TCP.
    func count(_ key: String) -> Int { inner.state.withLock { $0.counts[key] ?? 0 } }

    /// How many questions have arrived.
    var total: Int { inner.state.withLock { $0.total } }

    /// Returns when this many questions have arrived.
    func waitForTotal(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = inner.state.withLock { state in
                guard state.total < count else { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Sends the answers that were held back.
    func release() {
        inner.state.withLock { $0.releases += 1 }
        ring()
    }

    private func ring() {
        var one: UInt64 = 1
        _ = write(inner.wake, &one, 8)
    }

    // MARK: The server's thread

    private static func sockets(
        address host: UInt32, port: UInt16
    ) throws -> (udp: Int32, tcp: Int32, port: UInt16) {
        // The port chosen for UDP may be taken on TCP: then another one is tried.
        for _ in 0..<20 {
            let udp = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let tcp = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = host.bigEndian
            address.sin_port = port.bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(udp, address, size) == 0 && getsockname(udp, address, &size) == 0
                        && bind(tcp, address, size) == 0 && listen(tcp, 16) == 0
                }
            }
            if isBound { return (udp, tcp, UInt16(bigEndian: address.sin_port)) }
            close(udp)
            close(tcp)
        }
        throw StartError(what: "bind")
    }

    private static func run(_ inner: Inner) {
        while true {
            var polled = [inner.udp, inner.tcp, inner.wake].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&polled, nfds_t(polled.count), -1) >= 0 else { continue }
            if polled[2].revents != 0 {
                var counter: UInt64 = 0
                _ = read(inner.wake, &counter, 8)
                if inner.state.withLock({ $0.isStopped }) { return }
                sendHeld(inner)
            }
            if polled[0].revents != 0 { serveUDP(inner) }
            if polled[1].revents != 0 { serveTCP(inner) }
        }
    }

    private static func serveUDP(_ inner: Inner) {
        var buffer = [UInt8](repeating: 0, count: 2048)
        var from = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &from) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(inner.udp, &buffer, buffer.count, 0, $0, &size)
            }
        }
        guard count > 0, let query = parse(Array(buffer[..<count]), isTCP: false) else { return }
        var reply = note(query, inner)
        if case .held(let inside) = reply, case .message(let message) = inside {
            let isReleased = inner.state.withLock { state in
                guard state.releases == 0 else { return true }
                state.held.append((message, from))
                return false
            }
            guard isReleased else { return wakeWaiters(inner) }
            reply = inside
        }
        switch reply {
        case .message(let message): send(message, to: from, inner)
        case .messages(let messages): for message in messages { send(message, to: from, inner) }
        case .silence, .held: break
        }
        wakeWaiters(inner)
    }

    private static func serveTCP(_ inner: Inner) {
        let connection = accept4(inner.tcp, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        guard connection >= 0 else { return }
        defer { close(connection) }
        var length = [UInt8](repeating: 0, count: 2)
        guard recv(connection, &length, 2, Int32(MSG_WAITALL)) == 2 else { return }
        var buffer = [UInt8](repeating: 0, count: Int(length[0]) << 8 | Int(length[1]))
        guard
            recv(connection, &buffer, buffer.count, Int32(MSG_WAITALL)) == buffer.count,
            let query = parse(buffer, isTCP: true)
        else { return }
        if case .message(let message) = note(query, inner) {
            let framed = DNSWire.bytes(UInt16(message.count)) + message
            _ = CLinux.send(connection, framed, framed.count, Int32(MSG_NOSIGNAL))
        }
        wakeWaiters(inner)
    }

    private static func note(_ query: Query, _ inner: Inner) -> Reply {
        let reply = inner.reply(query)
        let key = "\(query.name)/\(query.type)\(query.isTCP ? "/tcp" : "")"
        inner.state.withLock { state in
            state.counts[key, default: 0] += 1
            state.total += 1
        }
        return reply
    }

    private static func wakeWaiters(_ inner: Inner) {
        let ready = inner.state.withLock { state in
            let ready = state.waiters.filter { $0.count <= state.total }
            state.waiters.removeAll { $0.count <= state.total }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    private static func sendHeld(_ inner: Inner) {
        let held = inner.state.withLock { state in
            let held = state.held
            state.held = []
            return held
        }
        for (message, address) in held { send(message, to: address, inner) }
    }

    private static func send(_ message: [UInt8], to address: sockaddr_in, _ inner: Inner) {
        var address = address
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = sendto(
                    inner.udp, message, message.count, 0, $0,
                    socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func parse(_ message: [UInt8], isTCP: Bool) -> Query? {
        guard message.count > 12 else { return nil }
        var labels: [String] = []
        var position = 12
        while position < message.count, message[position] != 0 {
            let end = position + 1 + Int(message[position])
            guard end < message.count else { return nil }
            labels.append(String(decoding: message[position + 1..<end], as: UTF8.self))
            position = end
        }
        guard position + 5 <= message.count else { return nil }
        let code = UInt16(message[position + 1]) << 8 | UInt16(message[position + 2])
        guard let type = DNSWire.RecordType(rawValue: code) else { return nil }
        return Query(
            id: UInt16(message[0]) << 8 | UInt16(message[1]),
            name: labels.joined(separator: ".").lowercased(), type: type, isTCP: isTCP,
            question: Array(message[12..<position + 5]))
    }
}
