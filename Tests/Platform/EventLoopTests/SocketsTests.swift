import CLinux
import HTTPCore
import Testing

@testable import EventLoop

/// Where tests listen: a port chosen by the kernel, in both families.
private let loopbacks = [
    Endpoint(address: .v4(0x7F00_0001), port: 0), Endpoint(address: .v6(0, 1), port: 0),
]

/// A listening socket and its endpoint.
private func listening(on endpoint: Endpoint) throws -> (socket: OwnedDescriptor, at: Endpoint) {
    let socket = OwnedDescriptor(try Sockets.listen(on: endpoint))
    return (socket, try #require(Sockets.localEndpoint(socket.fd)))
}

/// The next connection of a listener.
private func accepted(_ listener: Int32) throws -> (socket: OwnedDescriptor, peer: Endpoint) {
    try #require(waitFor(POLLIN, on: listener))
    guard case .connection(let fd, let peer) = Sockets.accept(listener) else {
        throw Errno(code: ENOTCONN)
    }
    return (OwnedDescriptor(fd), peer)
}

/// A socket that is bound to a port, so that no other process gets it, but does not listen.
private func boundOnly(_ endpoint: Endpoint) throws -> (socket: OwnedDescriptor, at: Endpoint) {
    var address = KernelAddress(endpoint)
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let fd = socket(Int32(address.storage.ss_family), type, 0)
    guard fd >= 0 else { throw Errno.last }
    let owned = OwnedDescriptor(fd)
    guard address.withPointer({ bind(fd, $0, $1.pointee) }) == 0 else { throw Errno.last }
    return (owned, try #require(Sockets.localEndpoint(fd)))
}

private func option(_ fd: Int32, _ level: Int32, _ name: Int32) -> Int32 {
    var value: Int32 = -1
    var length = socklen_t(4)
    guard getsockopt(fd, level, name, &value, &length) == 0 else { return -1 }
    return value
}

/// The name of a socket's congestion control algorithm.
private func congestionControl(_ fd: Int32) -> String {
    var name = [CChar](repeating: 0, count: 17)
    var length = socklen_t(16)
    guard getsockopt(fd, Int32(IPPROTO_TCP), TCP_CONGESTION, &name, &length) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
}

@Suite("Sockets")
struct SocketsTests {
    @Test(arguments: loopbacks)
    func `what stays within the host is not paced`(endpoint: Endpoint) throws {
        let (listener, address) = try listening(on: endpoint)
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, _) = try accepted(listener.fd)
        #expect(congestionControl(client.fd) == "reno")
        #expect(congestionControl(server.fd) == "reno")
    }

    @Test func `other listeners keep the congestion control of the system`() throws {
        let plain = OwnedDescriptor(
            socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let everywhere = try listening(on: Endpoint(address: .v4(0), port: 0))
        #expect(!congestionControl(plain.fd).isEmpty)
        #expect(congestionControl(everywhere.socket.fd) == congestionControl(plain.fd))
    }

    @Test(arguments: loopbacks)
    func `a connection is made and both ends know each other`(endpoint: Endpoint) throws {
        let (listener, address) = try listening(on: endpoint)
        #expect(address.address == endpoint.address)
        #expect(address.port != 0)
        guard case .wouldBlock = Sockets.accept(listener.fd) else {
            Issue.record("no client has connected yet")
            return
        }
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, peer) = try accepted(listener.fd)
        #expect(waitFor(POLLOUT, on: client.fd))
        #expect(Sockets.connectionError(client.fd) == nil)
        #expect(Sockets.localEndpoint(client.fd) == peer)
        #expect(Sockets.localEndpoint(server.fd) == address)
        send("hello", to: client)
        #expect(waitFor(POLLIN, on: server.fd))
        #expect(receive(from: server.fd).bytes == Array("hello".utf8))
    }

    @Test(arguments: loopbacks)
    func `every socket is non-blocking and closed on exec`(endpoint: Endpoint) throws {
        let (listener, address) = try listening(on: endpoint)
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, _) = try accepted(listener.fd)
        for fd in [listener.fd, client.fd, server.fd] {
            #expect(fcntl_int(fd, F_GETFD, 0) == FD_CLOEXEC)
            #expect(fcntl_int(fd, F_GETFL, 0) & O_NONBLOCK != 0)
        }
        #expect(option(listener.fd, SOL_SOCKET, SO_REUSEPORT) == 1)
    }

    /// Otherwise a small segment waits for the acknowledgement of the previous one (Nagle, RFC
    /// 896).
    @Test(arguments: loopbacks)
    func `no connection holds small segments back`(endpoint: Endpoint) throws {
        let (listener, address) = try listening(on: endpoint)
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, _) = try accepted(listener.fd)
        for fd in [client.fd, server.fd] {
            #expect(option(fd, Int32(IPPROTO_TCP), TCP_NODELAY) == 1)
        }
    }

    @Test(arguments: loopbacks)
    func `two listeners on one port share its connections`(endpoint: Endpoint) throws {
        let (first, address) = try listening(on: endpoint)
        let (second, same) = try listening(on: address)
        #expect(same == address)
        var clients: [OwnedDescriptor] = []
        for _ in 0..<64 { clients.append(OwnedDescriptor(try Sockets.connect(to: address))) }
        var counts = [0, 0]
        while counts[0] + counts[1] < clients.count {
            let before = counts
            for (index, listener) in [first, second].enumerated() {
                while case .connection(let fd, _) = Sockets.accept(listener.fd) {
                    Descriptors.close(fd)
                    counts[index] += 1
                }
            }
            if counts == before {
                var entries = [first, second].map {
                    pollfd(fd: $0.fd, events: Int16(POLLIN), revents: 0)
                }
                try #require(poll(&entries, 2, 60_000) > 0)
            }
        }
        // One side gets all of them once in 2^63 runs.
        #expect(counts[0] > 0 && counts[1] > 0)
    }

    @Test(arguments: loopbacks)
    func `an address that is listened on is not free`(endpoint: Endpoint) throws {
        let (listener, address) = try listening(on: endpoint)
        #expect(throws: Errno(code: EADDRINUSE)) { try Sockets.checkFree(address) }
        // SO_REUSEPORT alone would permit it, which is why it is checked.
        let other = OwnedDescriptor(try Sockets.listen(on: address))
        _ = (listener, other)
    }

    @Test(arguments: loopbacks)
    func `an address is free again when its listener is closed`(endpoint: Endpoint) throws {
        // Held by a socket that does not listen, so that no other test gets the port.
        let (holder, address) = try boundOnly(endpoint)
        #expect(throws: Errno(code: EADDRINUSE)) { try Sockets.checkFree(address) }
        holder.close()
        _ = try? Sockets.checkFree(address)
        try Sockets.checkFree(endpoint)
    }

    @Test func `old connections of an address do not keep it from being free`() throws {
        // This test's own address, so that no client's port is this one.
        let own = Endpoint(address: .v4(0x7F4D_1701), port: 0)
        let (listener, address) = try listening(on: own)
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, _) = try accepted(listener.fd)
        server.close()  // the listener's side closes first: it is the one in TIME_WAIT
        #expect(waitFor(POLLIN, on: client.fd))
        client.close()
        listener.close()
        // A program that another test starts holds a copy of the descriptor between fork and exec.
        for _ in 0..<60_000 where (try? Sockets.checkFree(address)) == nil { usleep(1000) }
        try Sockets.checkFree(address)
        let (again, _) = try listening(on: address)
        #expect(Sockets.localEndpoint(again.fd) == address)
    }

    @Test func `a chosen port is always free`() throws {
        for endpoint in loopbacks { try Sockets.checkFree(endpoint) }
        // The address is not even checked.
        try Sockets.checkFree(Endpoint(address: .v4(0x0102_0304), port: 0))
    }

    @Test func `an address of another host cannot be listened on`() {
        let foreign = Endpoint(address: .v4(0xC000_0201), port: 1)
        #expect(throws: Errno(code: EADDRNOTAVAIL)) { _ = try Sockets.listen(on: foreign) }
        #expect(throws: Errno(code: EADDRNOTAVAIL)) { try Sockets.checkFree(foreign) }
    }

    @Test func `an IPv6 listener leaves the port of IPv4`() throws {
        let (listener, address) = try listening(on: Endpoint(address: .v6(0, 0), port: 0))
        #expect(option(listener.fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 1)
        #expect(address.address == .v6(0, 0))
    }

    @Test(arguments: loopbacks)
    func `a refused connection is an error at once or later`(endpoint: Endpoint) throws {
        let (holder, address) = try boundOnly(endpoint)
        do throws(Errno) {
            let client = OwnedDescriptor(try Sockets.connect(to: address))
            #expect(waitFor(POLLOUT, on: client.fd))
            #expect(Sockets.connectionError(client.fd) == .connectionRefused)
            // Reading it clears it.
            #expect(Sockets.connectionError(client.fd) == nil)
        } catch {
            #expect(error == .connectionRefused)
        }
        _ = holder
    }

    @Test func `an address without a route fails at once`() {
        let broadcast = Endpoint(address: .v4(0xFFFF_FFFF), port: 80)
        #expect(throws: Errno.self) { _ = try Sockets.connect(to: broadcast) }
    }

    @Test func `closed descriptors are errors everywhere`() {
        let bad = Errno(code: EBADF)
        #expect(Sockets.connectionError(-1) == bad)
        #expect(Sockets.localEndpoint(-1) == nil)
        guard case .failed(bad) = Sockets.accept(-1) else {
            Issue.record("accept on no descriptor")
            return
        }
    }

    @Test func `a socket of another family has no endpoint`() throws {
        let pair = try SocketPair()
        #expect(Sockets.localEndpoint(pair.left.fd) == nil)
    }

    @Test func `ending the sending side leaves the other`() throws {
        let pair = try SocketPair()
        send("last", to: pair.left)
        Sockets.shutdownWrite(pair.left.fd)
        let (bytes, last) = receive(from: pair.right.fd)
        #expect(bytes == Array("last".utf8))
        #expect(last == .endOfStream)
        send("answer", to: pair.right)
        #expect(receive(from: pair.left.fd).bytes == Array("answer".utf8))
    }

    @Test(arguments: [false, true])
    func `a reset is sent only when asked for`(isReset: Bool) throws {
        let (listener, address) = try listening(on: loopbacks[0])
        let client = OwnedDescriptor(try Sockets.connect(to: address))
        let (server, _) = try accepted(listener.fd)
        if isReset { Sockets.resetOnClose(server.fd) }
        server.close()
        #expect(waitFor(POLLIN, on: client.fd))
        let (_, last) = receive(from: client.fd)
        #expect(last == (isReset ? .failed(.connectionReset) : .endOfStream))
    }
}

@Suite("The kernel's form of addresses")
struct KernelAddressTests {
    @Test(
        arguments: [
            Endpoint(address: .v4(0), port: 0), Endpoint(address: .v4(0x7F00_0001), port: 80),
            Endpoint(address: .v4(0xFFFF_FFFF), port: 65_535),
            Endpoint(address: .v6(0, 1), port: 443),
            Endpoint(address: .v6(0x2001_0DB8_0001_0203, 0x0405_0607_0809_0A0B), port: 1),
            Endpoint(address: .v6(.max, .max), port: 65_535),
        ])
    func `an endpoint survives the kernel's form`(endpoint: Endpoint) {
        let address = KernelAddress(endpoint)
        #expect(address.endpoint == endpoint)
        let isV4 = if case .v4 = endpoint.address { true } else { false }
        #expect(address.length == (isV4 ? 16 : 28))
    }

    @Test func `the bytes are in network order`() {
        let address = KernelAddress(Endpoint(address: .v4(0x7F00_0002), port: 0x1F90))
        withUnsafeBytes(of: address.storage) { bytes in
            #expect(Array(bytes[2..<8]) == [0x1F, 0x90, 0x7F, 0, 0, 2])
        }
    }

    @Test func `an unknown family has no endpoint`() {
        #expect(KernelAddress().endpoint == nil)
    }
}

@Suite("Without descriptors")
struct DescriptorExhaustionTests {
    /// Opens descriptors until none is left; the caller closes the last one.
    private static func exhaust() -> [Int32] {
        var all: [Int32] = []
        while true {
            let fd = dup(0)
            if fd < 0 { return all }
            all.append(fd)
        }
    }

    private static func code(_ body: () throws(Errno) -> Void) -> Int32 {
        do throws(Errno) {
            try body()
            return 0
        } catch {
            return error.code
        }
    }

    @Test func `every call that needs a descriptor fails without one`() throws {
        let outcome = try inOwnDescriptorTable {
            let pending: Int32
            let address: Endpoint
            do throws(Errno) {
                pending = try Sockets.listen(on: loopbacks[0])
                guard let local = Sockets.localEndpoint(pending) else { return "no endpoint" }
                address = local
                _ = try Sockets.connect(to: address)
            } catch {
                return "\(error)"
            }
            guard waitFor(POLLIN, on: pending) else { return "no connection" }
            let taken = Self.exhaust()
            guard let spare = taken.last else { return "nothing was opened" }
            guard case .failed(let error) = Sockets.accept(pending) else { return "accepted" }
            guard error.isExhaustion, error.code == EMFILE else { return "accept: \(error)" }
            let codes = [
                Self.code { () throws(Errno) in _ = try Sockets.listen(on: loopbacks[0]) },
                Self.code { () throws(Errno) in _ = try Sockets.connect(to: address) },
                Self.code { () throws(Errno) in try Sockets.checkFree(address) },
                Self.code { () throws(Errno) in _ = try Descriptors.event() },
                Self.code { () throws(Errno) in _ = try Descriptors.pipe(capacity: 4096) },
                Self.code { () throws(Errno) in _ = try EventLoop() },
            ]
            guard codes.allSatisfy({ $0 == EMFILE }) else { return "codes \(codes)" }
            // The connection waited in the kernel's queue.
            Descriptors.close(spare)
            guard case .connection = Sockets.accept(pending) else { return "lost" }
            return "as it should be"
        }
        #expect(outcome == "as it should be")
    }

    @Test(
        arguments: [
            (EMFILE, true), (ENFILE, true), (ENOBUFS, true), (ENOMEM, true), (EAGAIN, false),
            (ECONNABORTED, false), (0, false),
        ] as [(Int32, Bool)])
    func `only the lack of descriptors or memory is exhaustion`(code: Int32, isExhaustion: Bool) {
        #expect(Errno(code: code).isExhaustion == isExhaustion)
    }

    @Test func `a connection begins at the address that is chosen`() throws {
        let (listener, at) = try listening(on: loopbacks[0])
        let chosen = try #require(IPAddress("127.0.0.2"))
        let near = OwnedDescriptor(
            try Sockets.connect(to: at, from: Sockets.Source(address4: chosen)))
        let (_, peer) = try accepted(listener.fd)
        #expect(peer.address == chosen)
        #expect(Sockets.localEndpoint(near.fd) == peer)
        let absent = Sockets.Source(address4: IPAddress("192.0.2.1"))
        #expect(throws: Errno(code: EADDRNOTAVAIL)) {
            try Sockets.connect(to: at, from: absent)
        }
        #expect(throws: Errno(code: ENODEV)) {
            try Sockets.connect(to: at, from: Sockets.Source(interface: "none-such"))
        }
    }

    @Test func `an error has its text and number`() {
        #expect(Errno.connectionRefused.description == "Connection refused (errno 111)")
    }

    @Test func `the limit is raised to the hard one`() {
        let limit = Descriptors.raiseLimit()
        #expect(limit > 0)
        #expect(Descriptors.raiseLimit() == limit)
    }
}
