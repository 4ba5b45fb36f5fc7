import CLinux
import HTTPCore
import TestSupport
import Testing

@testable import EventLoop

private let stream = Int32(SOCK_STREAM.rawValue)
private let datagram = Int32(SOCK_DGRAM.rawValue)

/// Runs a closure with a socket, which is closed afterwards.
private func with<Result>(
    _ family: Int32, _ type: Int32, _ body: (Int32) throws -> Result
) throws -> Result {
    let fd = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), 0)
    try #require(fd >= 0)
    defer { Descriptors.close(fd) }
    return try body(fd)
}

/// Listens on all addresses of IPv6, or of both families.
private func listenEverywhere(_ fd: Int32, isDualStack: Bool) throws {
    var only: Int32 = isDualStack ? 0 : 1
    try #require(
        setsockopt(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &only, socklen_t(4)) == 0)
    var address = KernelAddress(Endpoint(address: .v6(0, 0), port: 0))
    try #require(address.withPointer { bind(fd, $0, $1.pointee) } == 0)
    try #require(listen(fd, 1) == 0)
}

@Suite("Descriptors from another process") struct InheritedSocketTests {
    @Test func `a listening socket has its address`() throws {
        let fd = try Sockets.listen(on: try #require(Endpoint("127.0.0.1:0")))
        defer { Descriptors.close(fd) }
        let endpoint = try #require(Sockets.localEndpoint(fd))
        #expect(endpoint.port != 0)
        #expect(Sockets.inherited(fd) == .listening(endpoint, isDualStack: false))
    }

    @Test(arguments: [true, false])
    func `a socket on all addresses may serve both families`(isDualStack: Bool) throws {
        try with(AF_INET6, stream) { fd in
            try listenEverywhere(fd, isDualStack: isDualStack)
            let endpoint = try #require(Sockets.localEndpoint(fd))
            #expect(Sockets.inherited(fd) == .listening(endpoint, isDualStack: isDualStack))
        }
    }

    @Test func `anything else is said in words`() throws {
        try with(AF_INET, datagram) {
            #expect(Sockets.inherited($0) == .unusable("is no stream socket"))
        }
        try with(AF_INET, stream) {
            #expect(Sockets.inherited($0) == .unusable("is a socket that does not listen"))
        }
        let file = open_with_mode("/dev/null", O_RDONLY | O_CLOEXEC, 0)
        try #require(file >= 0)
        #expect(Sockets.inherited(file) == .unusable("is not a socket"))
        Descriptors.close(file)
        #expect(Sockets.inherited(Int32.max) == .unusable("is not open"))
    }

    @Test func `a Unix-domain socket is told apart`() throws {
        let folder = TemporaryFolder()
        try with(AF_UNIX, stream) { fd in
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) {
                $0.copyBytes(from: (folder.path + "/s").utf8.prefix($0.count - 1))
            }
            let size = socklen_t(MemoryLayout<sockaddr_un>.size)
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, size) }
            }
            try #require(bound == 0)
            try #require(listen(fd, 1) == 0)
            #expect(Sockets.inherited(fd) == .listeningOnUnix(path: folder.path + "/s"))
        }
    }

    @Test func `an abstract name begins with an at sign`() throws {
        try with(AF_UNIX, stream) { fd in
            let name = "\0pinfold-test-\(getpid())"
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name.utf8) }
            let size = socklen_t(MemoryLayout<sa_family_t>.size + name.utf8.count)
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, size) }
            }
            try #require(bound == 0)
            try #require(listen(fd, 1) == 0)
            #expect(Sockets.inherited(fd) == .listeningOnUnix(path: "@pinfold-test-\(getpid())"))
        }
    }

    @Test func `a duplicate is the same socket, does not block and is closed on exec`() throws {
        try with(AF_INET6, stream) { fd in
            try listenEverywhere(fd, isDualStack: true)
            let copy = try Sockets.duplicate(ofListening: fd)
            defer { Descriptors.close(copy) }
            #expect(copy != fd)
            #expect(ListeningSockets.inode(of: copy) == ListeningSockets.inode(of: fd))
            #expect(fcntl_int(copy, F_GETFD, 0) & FD_CLOEXEC != 0)
            guard case .wouldBlock = Sockets.accept(copy) else {
                Issue.record("there is nobody to accept")
                return
            }
        }
        #expect(throws: Errno(code: EBADF)) { try Sockets.duplicate(ofListening: Int32.max) }
    }

    @Test func `a client with IPv4 on a socket for both families is one`() throws {
        try with(AF_INET6, stream) { fd in
            try listenEverywhere(fd, isDualStack: true)
            let copy = try Sockets.duplicate(ofListening: fd)
            defer { Descriptors.close(copy) }
            let port = try #require(Sockets.localEndpoint(fd)).port
            let client = try Sockets.connect(to: Endpoint(address: .loopbackV4, port: port))
            defer { Descriptors.close(client) }
            var state = pollfd(fd: copy, events: Int16(POLLIN), revents: 0)
            try #require(poll(&state, 1, 10_000) == 1)
            guard case .connection(let accepted, let peer) = Sockets.accept(copy) else {
                Issue.record("it was not accepted")
                return
            }
            Descriptors.close(accepted)
            #expect(peer.address == .loopbackV4)
        }
    }
}
