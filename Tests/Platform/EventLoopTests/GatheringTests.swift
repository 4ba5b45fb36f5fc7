import Testing

@testable import EventLoop

/// When a loop looks for more before it writes.
@Suite("A loop that gathers")
struct GatheringTests {
    /// How many of `turns` looked, if each look found `count` events and took this long.
    private static func looks(
        _ gathering: inout Gathering, turns: Int, finding count: Int, taking nanoseconds: Int64
    ) -> Int {
        var looks = 0
        for _ in 0..<turns where gathering.mayLook() {
            looks += 1
            gathering.looked(finding: count, taking: nanoseconds)
        }
        return looks
    }

    @Test func `always looks while that brings something`() {
        var gathering = Gathering()
        #expect(Self.looks(&gathering, turns: 1000, finding: 1, taking: 10_000) == 1000)
    }

    @Test func `looks ever more rarely where that brings nothing`() {
        var gathering = Gathering()
        #expect(Self.looks(&gathering, turns: 4, finding: 0, taking: 1000) == 4)
        #expect(Self.looks(&gathering, turns: 16, finding: 0, taking: 1000) == 0)
        #expect(Self.looks(&gathering, turns: 1 + 32 + 1, finding: 0, taking: 1000) == 2)
        // After a thousand turns or so at the most.
        _ = Self.looks(&gathering, turns: 10_000, finding: 0, taking: 1000)
        #expect((9...10).contains(Self.looks(&gathering, turns: 10_250, finding: 0, taking: 1000)))
    }

    @Test func `leaves it at once if the processor comes back late`() {
        var gathering = Gathering()
        #expect(Self.looks(&gathering, turns: 17, finding: 5, taking: 3_000_000) == 1)
    }

    @Test func `looks always again after one that brought something`() {
        var gathering = Gathering()
        _ = Self.looks(&gathering, turns: 10_000, finding: 0, taking: 1000)
        while !gathering.mayLook() {}
        gathering.looked(finding: 2, taking: 5000)
        #expect(Self.looks(&gathering, turns: 20, finding: 0, taking: 1000) == 4)
    }
}

private final class ReadyCall: EventHandler {
    private let onReady: () -> Void

    init(onReady: @escaping () -> Void) { self.onReady = onReady }

    override func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { onReady() }
    }
}

extension GatheringTests {
    /// What happens in the turn in which one handler makes another one ready.
    private static func order(expectingMore: Bool) throws -> [String] {
        var order: [String] = []
        let loop = try EventLoop()
        let first = try SocketPair()
        let second = try SocketPair()
        let one = ReadyCall { [unowned loop] in
            order.append("first")
            send("x", to: second.right)
            if expectingMore { loop.expectMore() }
            loop.afterTurn { order.append("written") }
        }
        let other = ReadyCall { order.append("second") }
        try loop.add(one, descriptor: first.left.fd)
        try loop.add(other, descriptor: second.left.fd)
        // Both are ready to be written to.
        loop.turn(waitingAtMost: 1000)
        order = []
        send("x", to: first.right)
        loop.turn(waitingAtMost: 1000)
        return order
    }

    @Test func `delivers what is ready by then before what is done at the turn's end`() throws {
        #expect(try Self.order(expectingMore: true) == ["first", "second", "written"])
        #expect(try Self.order(expectingMore: false) == ["first", "written"])
    }
}
