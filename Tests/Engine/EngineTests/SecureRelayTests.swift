import CLinux
import EngineTestSupport
import EventLoop
import PinfoldTLS
import Testing

@testable import PinfoldEngine

/// Bytes from one connection to another, over TLS on none, one or both of the sides.
@Suite("A relay over TLS")
struct SecureRelayTests {
    struct Sides: CustomTestStringConvertible {
        var isClientTLS: Bool
        var isServerTLS: Bool
        var testDescription: String {
            "client \(isClientTLS ? "TLS" : "clear"), upstream \(isServerTLS ? "TLS" : "clear")"
        }
    }

    static let sides = [false, true].flatMap { client in
        [false, true].map { Sides(isClientTLS: client, isServerTLS: $0) }
    }

    /// A relay that runs, its other ends, and how it ended.
    private final class Joined {
        let still: StillEngine
        let client: FarEnd
        let upstream: FarEnd
        private(set) var ended: (toUpstream: UInt64, toClient: UInt64)?

        init(_ sides: Sides, pendingForClient: String? = nil) throws {
            still = try StillEngine()
            let (first, second) = (try Self.tcpPair(), try Self.tcpPair())
            let near =
                sides.isClientTLS ? try Transport.server(first.near) : .init(descriptor: first.near)
            client = FarEnd(
                sides.isClientTLS ? try .client(first.far) : Transport(descriptor: first.far))
            let origin =
                sides.isServerTLS
                ? try Transport.client(second.near) : .init(descriptor: second.near)
            upstream = FarEnd(
                sides.isServerTLS ? try .server(second.far) : Transport(descriptor: second.far))
            let loop = still.loop
            for _ in 0..<50 {
                client.advance(on: loop)
                upstream.advance(on: loop)
                _ = near.handshake()
                _ = origin.handshake()
            }
            try #require(client.isOpen && upstream.isOpen)
            let relay = Relay(environment: still.environment, idleMilliseconds: 60_000) {
                [unowned self] in
                ended = ($0, $1)
                _ = $2
            }
            var pending = OutputQueue()
            if let pendingForClient {
                let copy = loop.buffers.takeSmall()
                copy.writable.copyBytes(from: Array(pendingForClient.utf8))
                copy.end = pendingForClient.utf8.count
                pending.append(copy.readable, owner: copy)
            }
            try relay.start(
                client: near, upstream: origin, earlyFromClient: nil, earlyFromUpstream: nil,
                pendingForClient: pending)
        }

        func run(until isDone: () -> Bool) -> Bool {
            still.run(client, upstream, until: isDone)
        }

        private static func tcpPair() throws -> (near: Int32, far: Int32) {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let connected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length) == 0 && listen(listener, 1) == 0
                        && getsockname(listener, $0, &length) == 0
                        && connect(far, $0, length) == 0
                }
            }
            try #require(connected)
            let near = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
            try #require(near >= 0)
            for end in [near, far] { _ = fcntl_int(end, F_SETFL, O_NONBLOCK) }
            return (near, far)
        }
    }

    @Test(arguments: sides)
    func `bytes go both ways, each direction to its own end`(sides: Sides) throws {
        let joined = try Joined(sides, pendingForClient: "first ")
        let (client, upstream) = (joined.client, joined.upstream)
        let long = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        client.send("hello")
        client.send(long)
        client.finish()
        let expected = Array("hello".utf8) + long
        #expect(joined.run { upstream.end != nil })
        #expect(upstream.end == .clean)
        #expect(upstream.received == expected)
        #expect(client.end == nil)
        #expect(joined.ended == nil, "the other direction goes on")
        upstream.send(long)
        upstream.send("bye")
        #expect(joined.run { client.received.count == 6 + long.count + 3 })
        #expect(client.received == Array("first ".utf8) + long + Array("bye".utf8))
        upstream.finish()
        #expect(joined.run { client.end != nil && joined.ended != nil })
        #expect(client.end == .clean)
        #expect(joined.ended?.toUpstream == UInt64(expected.count))
        #expect(joined.ended?.toClient == UInt64(long.count + 3))
    }

    @Test(arguments: sides)
    func `the upstream may end first`(sides: Sides) throws {
        let joined = try Joined(sides)
        let (client, upstream) = (joined.client, joined.upstream)
        upstream.send("greeting")
        upstream.finish()
        #expect(joined.run { client.end != nil })
        #expect(client.end == .clean)
        #expect(client.text == "greeting")
        client.send("answer")
        client.finish()
        #expect(joined.run { upstream.end != nil })
        #expect(upstream.end == .clean)
        #expect(upstream.text == "answer")
        #expect(joined.run { joined.ended != nil })
    }

    @Test(arguments: sides, [false, true])
    func `a reset of one side is no clean end for the other`(sides: Sides, isClient: Bool) throws {
        let joined = try Joined(sides)
        let (one, other) =
            isClient
            ? (joined.client, joined.upstream) : (joined.upstream, joined.client)
        one.send("some")
        #expect(joined.run { other.text == "some" })
        Sockets.resetOnClose(one.transport.descriptor)
        one.close()
        #expect(joined.run { other.end != nil })
        #expect(other.end != .clean)
        #expect(joined.ended != nil)
    }

    /// Without close_notify something may be missing, and it must not be taken for the end.
    @Test(arguments: [true, false])
    func `a session that is cut is no clean end for the other`(isClient: Bool) throws {
        let joined = try Joined(Sides(isClientTLS: true, isServerTLS: true))
        let (one, other) =
            isClient
            ? (joined.client, joined.upstream) : (joined.upstream, joined.client)
        one.send("some")
        #expect(joined.run { other.text == "some" })
        one.close()
        #expect(joined.run { other.end != nil })
        #expect(other.end != .clean)
    }
}
