import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// Which connections make room for a new one on one worker.
@Suite("Which connection makes room for a new one")
struct PermitTests {
    /// Whether the other end has been closed.
    private func isClosed(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
    }

    @Test func `a client at its limit gives up its own longest idle connection`() throws {
        let still = try StillWorker("limits: { perClient: { connections: 2 } }")
        let ends = try ["10.0.0.2:1", "10.0.0.1:1", "10.0.0.1:2"].map {
            try still.accept($0)
        }
        let third = try still.accept("10.0.0.1:3")
        #expect([ends[0], ends[1], ends[2], third].map(isClosed) == [false, true, false, false])
        let fourth = try still.accept("10.0.0.1:4")
        #expect([ends[0], ends[2], third, fourth].map(isClosed) == [false, true, false, false])
        let account = still.worker.shared.clients.account(of: try #require(IPAddress("10.0.0.1")))
        #expect(account?.openConnections == 2, "places are handed over")
        for end in ends + [third, fourth] { Descriptors.close(end) }
    }

    @Test func `at the limit of all the longest idle of all makes room`() throws {
        let still = try StillWorker("limits: { connections: 2 }")
        let ends = try ["10.0.0.2:1", "10.0.0.1:1", "10.0.0.1:2"].map {
            try still.accept($0)
        }
        #expect(ends.map(isClosed) == [true, false, false])
        #expect(still.worker.shared.clients.count == 1, "its client has nothing open any more")
        #expect(still.worker.shared.clientConnections.load(ordering: .relaxed) == 2)
        for end in ends { Descriptors.close(end) }
    }

    @Test func `one whose request has arrived is not idle`() throws {
        let still = try StillWorker("limits: { connections: 2 }")
        let ends = try ["10.0.0.2:1", "10.0.0.1:1"].map { try still.accept($0) }
        write("GET / HTTP/1.1\r\n", to: ends[0])
        let third = try still.accept("10.0.0.1:2")
        #expect([ends[0], ends[1], third].map(isClosed) == [false, true, false])
        for end in ends + [third] { Descriptors.close(end) }
    }

    @Test func `without an idle connection no client's connection is closed for another`() throws {
        let still = try StillWorker("limits: { perClient: { connections: 1 } }")
        let first = try still.accept("10.0.0.1:1")
        write("GET / HTTP/1.1\r\n", to: first)
        let second = try still.accept("10.0.0.1:2")
        #expect([first, second].map(isClosed) == [false, true])
        for end in [first, second] { Descriptors.close(end) }
    }

    @Test func `at the limit of all the client that has the most makes room`() throws {
        let still = try StillWorker("limits: { connections: 3 }")
        let ends = try ["10.0.0.2:1", "10.0.0.1:1", "10.0.0.1:2", "10.0.0.3:1"].map {
            try still.accept($0)
        }
        #expect(ends.map(isClosed) == [false, true, false, false])
        // All have the same number: the oldest.
        let fourth = try still.accept("10.0.0.4:1")
        #expect((ends + [fourth]).map(isClosed) == [true, true, false, false, false])
        for end in ends + [fourth] { Descriptors.close(end) }
    }

    @Test func `of stalled requests one of the client that has the most is closed to make room`()
        throws
    {
        let still = try StillWorker("limits: { connections: 3 }")
        let ends = try ["10.0.0.2:1", "10.0.0.1:1", "10.0.0.1:2"].map { address in
            let end = try still.accept(address)
            write("GET / HTTP/1.1\r\n", to: end)
            return end
        }
        still.turn(until: "all are read") {
            still.clientConnections.allSatisfy { $0.unfinishedBytes > 0 }
        }
        let refused = try still.accept("10.0.0.3:1")
        #expect((ends + [refused]).map(isClosed) == [false, false, false, true])
        for connection in still.clientConnections { connection.stalledSince -= 2000 }
        let admitted = try still.accept("10.0.0.3:2")
        #expect(readable(ends[1]).hasPrefix("HTTP/1.1 408 "))
        #expect([ends[0], ends[2], admitted].map(isClosed) == [false, false, false])
        for end in ends + [refused, admitted] { Descriptors.close(end) }
    }
}
