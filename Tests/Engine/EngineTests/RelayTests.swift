import CLinux
import EngineTestSupport
import EventLoop
import Testing

@testable import PinfoldEngine

@Suite("A relay")
struct RelayTests {
    private let still: StillEngine

    init() throws { still = try StillEngine() }

    // MARK: Bytes

    @Test func `passes bytes on in both directions, and counts them`() throws {
        let relay = try ScriptedRelay(still)
        for round in 1...3 {
            relay.client.send("question \(round);")
            relay.upstream.send("answer \(round);")
            still.turn(until: "the question arrives") {
                relay.upstream.read().hasSuffix("question \(round);")
            }
            still.turn(until: "the answer arrives") {
                relay.client.read().hasSuffix("answer \(round);")
            }
        }
        #expect(relay.upstream.text == "question 1;question 2;question 3;")
        #expect(relay.client.text == "answer 1;answer 2;answer 3;")
        relay.client.finishSending()
        relay.upstream.finishSending()
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        #expect(relay.endings == [.init(toUpstream: 33, toClient: 27)])
    }

    @Test func `sends first what either side had received before it began`() throws {
        let relay = try ScriptedRelay(
            still, earlyFromClient: "early ", earlyFromUpstream: "first ",
            pendingForClient: "200 OK ")
        relay.client.send("late")
        relay.upstream.send("then")
        still.turn(until: "the upstream has all") { relay.upstream.read() == "early late" }
        still.turn(until: "the client has all") { relay.client.read() == "200 OK first then" }
        relay.client.reset()
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        // What is pending is the gateway's own.
        #expect(relay.endings == [.init(toUpstream: 10, toClient: 10)])
        #expect(still.loop.buffers.outstanding == 0)
    }

    // MARK: Ends

    @Test(arguments: [true, false])
    func `passes one side's end on, and the other side's bytes as before`(_ isClientFirst: Bool)
        throws
    {
        let handlers = still.loop.handlerCount
        let relay = try ScriptedRelay(still)
        let (first, second) =
            isClientFirst ? (relay.client, relay.upstream) : (relay.upstream, relay.client)
        first.send("last words")
        first.finishSending()
        still.turn(until: "the end arrives") { second.hasEnded }
        #expect(second.text == "last words")
        #expect(second.end == .closed)
        for part in ["and ", "so ", "on"] {
            second.send(part)
            still.turn(until: "it arrives") { first.read().hasSuffix(part) }
        }
        #expect(relay.endings.isEmpty)
        second.finishSending()
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        #expect(first.hasEnded)
        #expect(first.text == "and so on" && first.end == .closed)
        let (forth, back) = isClientFirst ? (10, 9) : (9, 10)
        #expect(relay.endings == [.init(toUpstream: UInt64(forth), toClient: UInt64(back))])
        #expect(still.loop.handlerCount == handlers)
    }

    @Test(arguments: [true, false])
    func `resets one side when the other one does`(_ isClient: Bool) throws {
        let handlers = still.loop.handlerCount
        let relay = try ScriptedRelay(still)
        still.settle()
        let (first, second) =
            isClient ? (relay.client, relay.upstream) : (relay.upstream, relay.client)
        first.reset()
        still.turn(until: "the other ends") { second.hasEnded }
        #expect(second.end == .reset)
        #expect(relay.endings == [.init(toUpstream: 0, toClient: 0)])
        #expect(still.loop.handlerCount == handlers)
    }

    @Test(arguments: [true, false])
    func `notices the reset of a peer that had finished sending`(_ isClient: Bool) throws {
        let relay = try ScriptedRelay(still)
        let (first, second) =
            isClient ? (relay.client, relay.upstream) : (relay.upstream, relay.client)
        first.finishSending()
        still.turn(until: "the end arrives") { second.hasEnded }
        #expect(second.end == .closed)
        first.reset()
        still.turn(until: "it ends") { !relay.endings.isEmpty }
    }

    @Test func `ends when it writes to a peer that has closed`() throws {
        let relay = try ScriptedRelay(still)
        relay.client.close()
        still.turn(until: "the end arrives") { relay.upstream.hasEnded }
        #expect(relay.endings.isEmpty, "that may be the end of one direction only")
        for _ in 0..<2 where relay.endings.isEmpty {
            relay.upstream.send("for nobody")
            still.settle()
        }
        still.turn(until: "it ends") { !relay.endings.isEmpty }
    }

    @Test func `leaves both descriptors to its caller when it cannot begin`() throws {
        let handlers = still.loop.handlerCount
        #expect(throws: Errno.self) { try ScriptedRelay(still, upstreamDescriptor: -1) }
        #expect(still.loop.handlerCount == handlers)
        still.settle()
    }

    // MARK: Backpressure

    @Test(arguments: [true, false])
    func `reads no more than its peers accept, and loses nothing`(_ isFromClient: Bool) throws {
        let relay = try ScriptedRelay(still)
        let (source, sink) =
            isFromClient ? (relay.client, relay.upstream) : (relay.upstream, relay.client)
        var sent = 0
        while true {
            let count = source.fill(1 << 20, with: UInt8(ascii: "a") + UInt8(sent % 26))
            sent += count
            still.settle()
            if count == 0, source.fill(0) == 0 { break }
        }
        // Two sockets' buffers on each side, and a pipe.
        #expect(sent < 64 << 20)
        #expect(still.loop.buffers.outstanding == 0, "they stay in the kernel")

        // The other direction is not held up.
        sink.send("meanwhile")
        still.turn(until: "it arrives") { source.read() == "meanwhile" }

        source.finishSending()
        var received = 0
        still.turn(until: "all has arrived") {
            sink.read()
            received += sink.text.utf8.count
            sink.forget()
            return sink.end != nil
        }
        #expect(received == sent)
        #expect(sink.end == .closed)
    }

    // MARK: Pipes

    @Test func `takes a pipe only while it holds bytes, and gives it back empty`() throws {
        let pool = still.environment.pipes
        let known = try Set([#require(pool.take()), #require(pool.take())].map(Kept.init))
        for kept in known { pool.give(kept.pipe) }
        let relay = try ScriptedRelay(still)
        for (from, to) in [(relay.client, relay.upstream), (relay.upstream, relay.client)] {
            from.send("through a pipe")
            still.turn(until: "it arrives") { to.read() == "through a pipe" }
        }
        still.settle()
        let idle = try Set([#require(pool.take()), #require(pool.take())].map(Kept.init))
        #expect(idle == known)
        #expect(idle.allSatisfy { !Transfers.isReadable($0.pipe.readEnd) })
    }

    @Test func `closes a pipe that still holds bytes when it breaks`() throws {
        let pool = still.environment.pipes
        weak var pipe: Pipe?
        do {
            let taken = try #require(pool.take())
            pipe = taken
            pool.give(taken)
        }
        let relay = try ScriptedRelay(still)
        while relay.upstream.fill(1 << 20) > 0 { still.settle() }
        #expect(pipe != nil)
        relay.client.reset()
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        still.settle()
        #expect(pipe == nil)
        let next = try #require(pool.take())
        #expect(!Transfers.isReadable(next.readEnd))
    }

    private struct Kept: Hashable {
        let pipe: Pipe
        static func == (a: Kept, b: Kept) -> Bool { a.pipe === b.pipe }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(pipe)) }
    }

    // MARK: Time

    @Test func `ends when nothing has moved for its time`() throws {
        let relay = try ScriptedRelay(still, idleMilliseconds: 50)
        let began = still.loop.now
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        #expect(still.loop.now - began >= 50)
        #expect(relay.endings == [.init(toUpstream: 0, toClient: 0, wasIdle: true)])
        #expect(relay.client.hasEnded && relay.upstream.hasEnded)
    }

    @Test func `counts its time from the last movement`() throws {
        let relay = try ScriptedRelay(still, idleMilliseconds: 1000)
        let loop = still.loop
        let began = loop.now
        still.turn(until: "a while has passed") { loop.now >= began + 100 }
        let sent = loop.now
        relay.client.send("x")
        still.turn(until: "it arrives") { relay.upstream.read() == "x" }
        still.turn(until: "it ends") { !relay.endings.isEmpty }
        #expect(loop.now - sent >= 1000)
    }

    @Test func `does not count what is sent and not read as movement`() throws {
        let relay = try ScriptedRelay(still, idleMilliseconds: 300)
        still.turn(until: "it ends") {
            _ = relay.upstream.fill(1 << 16)
            return !relay.endings.isEmpty
        }
        #expect(relay.endings.map(\.wasIdle) == [true])
        #expect(relay.endings.first.map { $0.toClient > 0 } ?? false)
        still.settle()
        #expect(still.loop.buffers.outstanding == 0)
    }
}
