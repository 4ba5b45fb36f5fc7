import CLinux
import HTTPCore
import Testing

@testable import EventLoop

/// Both ends of a connection that nothing has led elsewhere.
private func connection(
    on address: IPAddress
) throws -> (accepted: OwnedDescriptor, listener: OwnedDescriptor, client: OwnedDescriptor) {
    let listener = OwnedDescriptor(
        try Sockets.listen(on: Endpoint(address: address, port: 0)))
    let at = try #require(Sockets.localEndpoint(listener.fd))
    let client = OwnedDescriptor(try Sockets.connect(to: at))
    try #require(waitFor(POLLIN, on: listener.fd))
    guard case .connection(let fd, _) = Sockets.accept(listener.fd) else {
        throw Errno(code: ENOTCONN)
    }
    return (OwnedDescriptor(fd), listener, client)
}

// What the firewall does is tested with the whole program (test_transparent.py).
@Suite("Where a connection was going")
struct OriginalDestinationTests {
    private static let loopbacks = [IPAddress.v4(0x7F00_0001), .v6(0, 1)]

    @Test(arguments: loopbacks)
    func `one that nothing has led here was going nowhere else`(address: IPAddress) throws {
        let made = try connection(on: address)
        let local = try #require(Sockets.localEndpoint(made.accepted.fd))
        do throws(Errno) {
            // Where connections are tracked for another reason.
            #expect(try Sockets.destinationBeforeRedirect(made.accepted.fd) == local)
        } catch {
            #expect([ENOENT, ENOPROTOOPT, EOPNOTSUPP].contains(error.code), "\(error)")
        }
    }

    @Test(arguments: loopbacks)
    func `with TPROXY it is the local address`(address: IPAddress) throws {
        let made = try connection(on: address)
        let at = try #require(Sockets.localEndpoint(made.listener.fd))
        #expect(try Sockets.destinationByTransparentSocket(made.accepted.fd) == at)
    }

    @Test(arguments: loopbacks)
    func `a socket becomes transparent once, if the process may`(address: IPAddress) throws {
        let socket = OwnedDescriptor(
            try Sockets.listen(on: Endpoint(address: address, port: 0)))
        do throws(Errno) {
            try Sockets.makeTransparent(socket.fd)
            try Sockets.makeTransparent(socket.fd)
            var value: Int32 = 0
            var length = socklen_t(4)
            #expect(getsockopt(socket.fd, Int32(IPPROTO_IP), IP_TRANSPARENT, &value, &length) == 0)
            #expect(value == 1)
        } catch {
            #expect(error.code == EPERM)
        }
    }

    @Test func `what is no socket has none`() {
        #expect(throws: Errno(code: EBADF)) { try Sockets.destinationBeforeRedirect(-1) }
        #expect(throws: Errno(code: EBADF)) { try Sockets.destinationByTransparentSocket(-1) }
        #expect(throws: Errno(code: EBADF)) { try Sockets.makeTransparent(-1) }
    }
}
