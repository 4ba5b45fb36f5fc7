import CLinux
import Clocks
import TestSupport
import Testing

@testable import EventLoop

@Suite("Deadlines of the event loop")
struct EventLoopDeadlineTests {
    @Test func `a deadline fires once and not before its time`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        let due = loop.now + 20
        loop.setDeadline(handler, after: 20)
        #expect(handler.deadline == due)
        #expect(loop.runs { !handler.deadlines.isEmpty })
        #expect(handler.deadlines[0] >= due)
        #expect(handler.deadline == .max)
        loop.runs(for: 30)
        #expect(handler.deadlines.count == 1)
    }

    @Test func `a turn without limit ends in time for the deadline`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 10)
        // Would block forever if the deadline did not limit the wait.
        while handler.deadlines.isEmpty { loop.turn() }
        #expect(handler.deadlines.count == 1)
    }

    @Test func `a deadline moved later fires once at the later time`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 10)
        let due = loop.now + 60
        loop.setDeadline(handler, after: 60)
        #expect(loop.runs { !handler.deadlines.isEmpty })
        #expect(handler.deadlines[0] >= due)
        loop.runs(for: 20)
        #expect(handler.deadlines.count == 1)
    }

    @Test func `a deadline moved earlier fires once at the earlier time`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        let later = loop.now + 120
        loop.setDeadline(handler, after: 120)
        let due = loop.now + 10
        loop.setDeadline(handler, after: 10)
        #expect(handler.deadline == due)
        // The wait is limited by the earlier one: the first turn that finds an entry fires.
        var turns = 0
        while handler.deadlines.isEmpty {
            loop.turn()
            turns += 1
        }
        #expect(turns <= 2)
        #expect(handler.deadlines[0] >= due)
        // The first entry is stale when it becomes due.
        while loop.now < later + 2 * TimerWheel.tickMilliseconds { loop.turn(waitingAtMost: 8) }
        #expect(handler.deadlines.count == 1)
    }

    @Test func `a deadline taken back never fires`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 10)
        loop.setDeadline(handler, after: nil)
        #expect(handler.deadline == .max)
        loop.runs(for: 40)
        #expect(handler.deadlines.isEmpty)
        // The leftover entry does not prevent another deadline.
        loop.setDeadline(handler, after: 5)
        #expect(loop.runs { handler.deadlines.count == 1 })
    }

    @Test func `a deadline of nothing fires within the next ticks`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 0)
        #expect(handler.deadlines.isEmpty)
        #expect(loop.runs { handler.deadlines.count == 1 })
    }

    @Test func `a handler may set its deadline again when it fires`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        handler.onDeadline = { [unowned handler, unowned loop] in
            if handler.deadlines.count < 4 { loop.setDeadline(handler, after: 9) }
        }
        loop.setDeadline(handler, after: 9)
        #expect(loop.runs { handler.deadlines.count == 4 })
        for (one, next) in zip(handler.deadlines, handler.deadlines.dropFirst()) {
            #expect(next >= one + 9)
        }
        loop.runs(for: 30)
        #expect(handler.deadlines.count == 4)
    }

    @Test func `moving a deadline later many times leaves one entry`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 5)
        let entry = handler.wheelEntry
        for extra in 6...1000 { loop.setDeadline(handler, after: Int64(extra)) }
        #expect(handler.wheelEntry == entry)
        loop.setDeadline(handler, after: 4)
        #expect(handler.wheelEntry == loop.now + 4)
    }

    @Test func `a handler removed before its deadline is not called`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 8)
        loop.remove(handler)
        #expect(handler.token == .none)
        #expect(handler.deadline == .max)
        loop.runs(for: 30)
        #expect(handler.deadlines.isEmpty)
    }

    @Test func `a handler added again is not called for its old deadline`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 8)
        let old = handler.token
        loop.remove(handler)
        try loop.add(handler)
        #expect(handler.token != old)
        let due = loop.now + 50
        loop.setDeadline(handler, after: 50)
        #expect(loop.runs { !handler.deadlines.isEmpty })
        #expect(handler.deadlines[0] >= due)
        #expect(handler.deadlines.count == 1)
    }

    @Test func `a new handler in the slot inherits no deadline`() throws {
        let loop = try EventLoop()
        let (first, second) = (Recorder(loop), Recorder(loop))
        try loop.add(first)
        loop.setDeadline(first, after: 8)
        loop.remove(first)
        try loop.add(second)
        loop.runs(for: 30)
        #expect(first.deadlines.isEmpty && second.deadlines.isEmpty)
    }

    @Test func `one deadline may remove another handler that is due in the same turn`() throws {
        let loop = try EventLoop()
        let (first, second) = (Recorder(loop), Recorder(loop))
        for (handler, other) in [(first, second), (second, first)] {
            try loop.add(handler)
            loop.setDeadline(handler, after: 8)
            handler.onDeadline = { [unowned other, unowned loop] in loop.remove(other) }
        }
        loop.runs(for: 40)
        #expect(first.deadlines.count + second.deadlines.count == 1)
        #expect(loop.handlerCount == 1)
    }

    @Test func `many deadlines each fire once and in bounds`() throws {
        let loop = try EventLoop()
        var random = SeededRandom(seed: 11)
        var handlers: [(handler: Recorder, due: Int64)] = []
        for _ in 0..<500 {
            let handler = Recorder(loop)
            try loop.add(handler)
            loop.setDeadline(handler, after: .random(in: 0...60, using: &random))
            let delay = Int64.random(in: 0...60, using: &random)
            loop.setDeadline(handler, after: delay)
            handlers.append((handler, loop.now + delay))
        }
        #expect(loop.runs { handlers.allSatisfy { !$0.handler.deadlines.isEmpty } })
        loop.runs(for: 70)
        #expect(handlers.allSatisfy { $0.handler.deadlines.count == 1 })
        #expect(handlers.allSatisfy { $0.handler.deadlines[0] >= $0.due })
    }
}

@Suite("Turns of the event loop")
struct EventLoopTurnTests {
    @Test func `deferred work is dropped, with what it refers to`() throws {
        final class Witness {}
        let loop = try EventLoop()
        var ran = 0
        weak var witness: Witness?
        do {
            let kept = Witness()
            witness = kept
            for _ in 0..<100 {
                loop.afterTurn {
                    _ = kept
                    ran += 1
                }
            }
        }
        #expect(witness != nil)
        loop.forgetDeferred()
        #expect(witness == nil)
        loop.turn(waitingAtMost: 0)
        #expect(ran == 0)
        loop.afterTurn { ran += 1 }
        loop.turn(waitingAtMost: 0)
        #expect(ran == 1)
    }

    @Test func `work put off runs at the end of the turn in order`() throws {
        let loop = try EventLoop()
        var order: [String] = []
        loop.turnEnded = { order.append("ended") }
        loop.afterTurn { order.append("first") }
        loop.afterTurn { order.append("second") }
        #expect(order.isEmpty)
        loop.turn()  // does not wait: there is work
        #expect(order == ["first", "second", "ended"])
        loop.turn(waitingAtMost: 0)
        #expect(order == ["first", "second", "ended", "ended"])
    }

    @Test func `work that puts off work gets a fresh turn for it`() throws {
        let loop = try EventLoop()
        var order: [Int] = []
        loop.afterTurn { [unowned loop] in
            order.append(1)
            loop.afterTurn { order.append(2) }
        }
        loop.turn()
        #expect(order == [1])
        loop.turn()
        #expect(order == [1, 2])
    }

    @Test func `events and deadlines come before deferred work`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        var order: [String] = []
        let handler = Recorder()
        handler.onReady = { [unowned loop] _ in
            order.append("ready")
            loop.afterTurn { order.append("after") }
        }
        try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
        loop.turnEnded = { order.append("ended") }
        send("x", to: pair.right)
        loop.turn()
        #expect(order == ["ready", "after", "ended"])
    }

    @Test func `stop ends the run after the turn`() throws {
        let loop = try EventLoop()
        var turns = 0
        loop.turnEnded = { turns += 1 }
        loop.afterTurn { [unowned loop] in
            loop.stop()
            loop.afterTurn { turns += 100 }
        }
        loop.run()
        #expect(turns == 1)
    }

    @Test func `the wait is bounded by the limit`() throws {
        let loop = try EventLoop()
        let handler = Recorder(loop)
        try loop.add(handler)
        loop.setDeadline(handler, after: 1_000_000)
        let start = Clock.monotonicMilliseconds()
        loop.turn(waitingAtMost: 5)
        #expect(handler.deadlines.isEmpty)
        // Far below the horizon that the wheel alone would wait for.
        #expect(Clock.monotonicMilliseconds() - start < 8000)
    }

    @Test func `time stands still within a turn and advances with the next`() throws {
        let loop = try EventLoop()
        let before = loop.now
        while Clock.monotonicMilliseconds() == before {}
        #expect(loop.now == before)
        loop.turn(waitingAtMost: 0)
        #expect(loop.now > before)
    }
}

@Suite("Portions of a turn")
struct EventLoopPortionTests {
    @Test func `deadlines that pass together are served in portions`() throws {
        let loop = try EventLoop()
        let handlers = (0..<200).map { _ in Recorder(loop) }
        for handler in handlers {
            try loop.add(handler)
            loop.setDeadline(handler, after: 1)
        }
        var portions: [Int] = []
        while portions.reduce(0, +) < handlers.count {
            let before = portions.reduce(0, +)
            loop.turn()
            let served = handlers.count { !$0.deadlines.isEmpty } - before
            if served > 0 { portions.append(served) }
        }
        #expect(portions == [64, 64, 64, 8])
    }

    @Test func `events get their turn between portions`() throws {
        let loop = try EventLoop()
        let event = try Descriptors.event()
        defer { Descriptors.close(event) }
        let reader = Recorder(loop)
        try loop.add(reader, descriptor: event, trigger: .edge)
        loop.turn(waitingAtMost: 0)
        let handlers = (0..<200).map { _ in Recorder(loop) }
        for handler in handlers {
            try loop.add(handler)
            loop.setDeadline(handler, after: 1)
        }
        while handlers.allSatisfy({ $0.deadlines.isEmpty }) { loop.turn() }
        Descriptors.signal(event)
        let before = reader.events.count
        loop.turn()
        #expect(reader.events.count == before + 1)
        #expect(handlers.contains { $0.deadlines.isEmpty }, "others are still to be served")
    }

    @Test func `a deadline that is moved while it waits its turn does not fire`() throws {
        let loop = try EventLoop()
        let handlers = (0..<100).map { _ in Recorder(loop) }
        for handler in handlers {
            try loop.add(handler)
            loop.setDeadline(handler, after: 1)
        }
        while handlers.allSatisfy({ $0.deadlines.isEmpty }) { loop.turn() }
        let pending = handlers.filter { $0.deadlines.isEmpty }
        #expect(pending.count == 36)
        loop.setDeadline(pending[0], after: nil)
        loop.setDeadline(pending[1], after: 60_000)
        loop.remove(pending[2])
        loop.runs(for: 30)
        #expect(handlers.count { $0.deadlines.isEmpty } == 3)
    }

    @Test func `work put off is done in portions and in order`() throws {
        let loop = try EventLoop()
        var done: [Int] = []
        for number in 0..<150 { loop.afterTurn { done.append(number) } }
        loop.turn()
        #expect(done.count == 64)
        loop.turn()
        #expect(done.count == 128)
        loop.turn()
        #expect(done == Array(0..<150))
    }
}
