import EventLoop
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("The gateway's own listeners")
struct OwnListenersTests {
    private struct Case: CustomTestStringConvertible {
        var listener: String
        var destination: String
        var isOwn: Bool
        var testDescription: String { "\(listener) \(destination)" }
    }

    /// The only address of this host besides loopback.
    private static let local = IPAddress("192.0.2.7")

    @Test(arguments: [
        Case(listener: "127.0.0.1:80", destination: "127.0.0.1:80", isOwn: true),
        Case(listener: "127.0.0.1:80", destination: "[::ffff:127.0.0.1]:80", isOwn: true),
        Case(listener: "127.0.0.1:80", destination: "0.0.0.0:80", isOwn: true),
        Case(listener: "127.0.0.1:80", destination: "127.0.0.1:81", isOwn: false),
        Case(listener: "127.0.0.1:80", destination: "127.0.0.2:80", isOwn: false),
        Case(listener: "127.0.0.1:80", destination: "[::1]:80", isOwn: false),
        Case(listener: "127.0.0.1:80", destination: "192.0.2.7:80", isOwn: false),
        Case(listener: "[::1]:80", destination: "[::1]:80", isOwn: true),
        Case(listener: "[::1]:80", destination: "[::]:80", isOwn: true),
        Case(listener: "[::1]:80", destination: "127.0.0.1:80", isOwn: false),
        Case(listener: "192.0.2.7:80", destination: "192.0.2.7:80", isOwn: true),
        Case(listener: "192.0.2.7:80", destination: "127.0.0.1:80", isOwn: false),
        Case(listener: "0.0.0.0:80", destination: "0.0.0.0:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "127.0.0.1:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "127.9.9.9:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "[::ffff:127.9.9.9]:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "192.0.2.7:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "[::ffff:192.0.2.7]:80", isOwn: true),
        Case(listener: "0.0.0.0:80", destination: "192.0.2.8:80", isOwn: false),
        Case(listener: "0.0.0.0:80", destination: "192.0.2.7:81", isOwn: false),
        Case(listener: "0.0.0.0:80", destination: "[::1]:80", isOwn: false),
        Case(listener: "[::]:80", destination: "[::1]:80", isOwn: true),
        Case(listener: "[::]:80", destination: "127.0.0.1:80", isOwn: false),
        Case(listener: "[::]:80", destination: "[2001:db8::8]:80", isOwn: false),
    ])
    private func `a destination at any address of a listener is the gateway itself`(this: Case)
        throws
    {
        let own = OwnListeners([
            try #require(Endpoint("203.0.113.9:9")), try #require(Endpoint(this.listener)),
        ])
        let destination = try #require(Endpoint(this.destination))
        let found = own.contains(destination.address, port: destination.port) { $0 == Self.local }
        #expect(found == this.isOwn)
    }

    @Test func `without listeners no destination is the gateway itself`() {
        #expect(!OwnListeners().contains(.loopbackV4, port: 80))
    }

    @Test(arguments: [true, false])
    func `a parent is none of them, although no rules apply to it`(isParent: Bool) throws {
        let own = OwnListeners([try #require(Endpoint("127.0.0.1:80"))])
        let check = DestinationCheck(
            rules: nil, match: DestinationRules.HostMatch(), port: 80, isParent: isParent)
        let (here, there) = (IPAddress.v4(0x7F00_0001), IPAddress.v4(0x7F00_0002))
        #expect((check.refusal(of: here, own: own) != nil) == isParent)
        #expect(check.refusal(of: there, own: own)?.reason == nil)
    }

    @Test func `the system knows its own addresses`() throws {
        #expect(Sockets.isLocal(.loopbackV4))
        // TEST-NET-3 is assigned to no host (RFC 5737).
        #expect(!Sockets.isLocal(try #require(IPAddress("203.0.113.77"))))
    }
}
