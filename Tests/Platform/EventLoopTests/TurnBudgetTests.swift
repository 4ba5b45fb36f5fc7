import CLinux
import Testing

@testable import EventLoop

@Suite("The share of a turn")
struct TurnBudgetTests {
    @Test(arguments: [
        (0, 1 << 20), (1, 1 << 20), (8, 1 << 20), (16, 1 << 19), (128, 1 << 16), (512, 1 << 16),
    ])
    func `a share is bounded on both sides`(connections: Int, share: Int) {
        #expect(TurnShare.share(among: connections) == share)
    }

    @Test func `a share is full once per turn`() throws {
        let loop = try EventLoop()
        var budget = TurnBudget()
        #expect(budget.isSpent)
        budget.renew(loop)
        #expect(!budget.isSpent)
        budget.spend(bytes: loop.turnShare)
        #expect(budget.isSpent)
        budget.renew(loop)
        #expect(budget.isSpent)
        loop.turn(waitingAtMost: 0)
        budget.renew(loop)
        #expect(!budget.isSpent)
    }

    /// Many small operations end a turn just as many bytes do.
    @Test(arguments: [
        (TurnBudget.Work.systemCall, 128), (.part, 4096), (.record, 256), (.dataFrame, 256),
        (.exchange, 64), (.report, 1),
    ])
    func `work is bounded besides bytes`(work: TurnBudget.Work, times: Int) throws {
        let loop = try EventLoop()
        var budget = TurnBudget()
        budget.renew(loop)
        #expect(budget.allowance(of: work) == times)
        for _ in 0..<times {
            #expect(!budget.isSpent)
            budget.spend(work)
        }
        #expect(budget.isSpent)
        #expect(budget.allowance(of: work) == 1)
    }
}

@Suite("Handlers that ask for another turn")
struct RunQueueTests {
    /// Requests another turn as long as it has something to do.
    private final class Worker: EventHandler {
        unowned let loop: EventLoop
        var left: Int
        var turns: [UInt64] = []
        var onWork: (() -> Void)?

        init(_ loop: EventLoop, steps: Int) {
            self.loop = loop
            left = steps
        }

        override func continueWork() {
            turns.append(loop.turnNumber)
            left -= 1
            if left > 0 { loop.requeue(self) }
            onWork?()
        }
    }

    @Test func `a requeued handler is called in the next turn without a wait`() throws {
        let loop = try EventLoop()
        let worker = Worker(loop, steps: 3)
        try loop.add(worker)
        loop.requeue(worker)
        loop.requeue(worker)
        while worker.left > 0 { loop.turn() }
        #expect(worker.turns == [1, 2, 3])
    }

    @Test func `events are delivered between two turns of a busy handler`() throws {
        let loop = try EventLoop()
        let worker = Worker(loop, steps: 100)
        try loop.add(worker)
        let pair = try SocketPair()
        let bystander = Recorder(loop)
        try loop.add(bystander, descriptor: pair.right.fd)
        loop.turn(waitingAtMost: 0)
        let seen = bystander.events.count
        worker.onWork = { [unowned worker] in
            if worker.left == 90 { send("x", to: pair.left) }
        }
        loop.requeue(worker)
        while worker.left > 89 { loop.turn() }
        #expect(bystander.events.count == seen + 1)
    }

    @Test func `a handler that is removed is not called`() throws {
        let loop = try EventLoop()
        let worker = Worker(loop, steps: 2)
        try loop.add(worker)
        loop.requeue(worker)
        loop.remove(worker)
        loop.turn(waitingAtMost: 0)
        #expect(worker.turns.isEmpty)
        loop.requeue(worker)
        try loop.add(worker)
        loop.requeue(worker)
        loop.turn(waitingAtMost: 0)
        #expect(worker.turns.count == 1)
    }
}
