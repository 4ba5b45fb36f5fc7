import CLinux
import Testing

@testable import EventLoop

/// Registers a handler where errors cannot be thrown.
private func added(_ loop: EventLoop, _ handler: Recorder, _ descriptor: Int32? = nil) {
    do {
        try loop.add(handler, descriptor: descriptor, trigger: .levelReadable)
    } catch {
        Issue.record("\(error)")
    }
}

@Suite("Readiness")
struct ReadinessTests {
    @Test func `edge reports both directions at once and then changes only`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        let handler = Recorder()
        try loop.add(handler, descriptor: pair.left.fd)
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events == [.writable])
        loop.turn(waitingAtMost: 0)
        #expect(handler.events.count == 1)
        send("a", to: pair.right)
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events.last == [.readable, .writable])
        // Unread, but not reported again until more arrives.
        loop.turn(waitingAtMost: 0)
        #expect(handler.events.count == 2)
        send("b", to: pair.right)
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events.count == 3)
        #expect(receive(from: pair.left.fd).bytes == Array("ab".utf8))
    }

    @Test func `level reports as long as there is something to read`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        let handler = Recorder()
        try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
        loop.turn(waitingAtMost: 0)
        #expect(handler.events.isEmpty)
        send("a", to: pair.right)
        for turn in 1...3 {
            loop.turn(waitingAtMost: 1000)
            #expect(handler.events.count == turn)
        }
        #expect(handler.events.allSatisfy { $0 == .readable })
        _ = receive(from: pair.left.fd)
        loop.turn(waitingAtMost: 0)
        #expect(handler.events.count == 3)
    }

    @Test func `a full socket is reported once it has room again`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair(sendBuffer: 4096)
        let handler = Recorder()
        try loop.add(handler, descriptor: pair.left.fd)
        loop.turn(waitingAtMost: 1000)
        let block = pattern(1000)
        var sent = 0
        while case .bytes(let count) = block.withUnsafeBytes({ Transfers.write(pair.left.fd, $0) })
        {
            sent += count
        }
        loop.turn(waitingAtMost: 0)
        #expect(handler.events.count == 1)
        #expect(receive(from: pair.right.fd).bytes.count == sent)
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events.count == 2)
        #expect(handler.events.last?.mayWrite == true)
    }

    @Test func `the peer's end is reported`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        let handler = Recorder()
        try loop.add(handler, descriptor: pair.left.fd)
        loop.turn(waitingAtMost: 1000)
        Sockets.shutdownWrite(pair.right.fd)
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events.last?.contains(.peerFinished) == true)
        #expect(handler.events.last?.contains(.hungUp) == false)
        pair.right.close()
        loop.turn(waitingAtMost: 1000)
        #expect(handler.events.last?.contains(.hungUp) == true)
    }

    @Test(
        arguments: [
            ([.readable], true, false), ([.writable], false, true),
            ([.peerFinished], true, false), ([.hungUp], true, true), ([.failed], true, true),
            ([.readable, .writable], true, true), ([], false, false),
        ] as [(Readiness, Bool, Bool)])
    func `readiness shows whether to read and whether to write`(
        readiness: Readiness, mayRead: Bool, mayWrite: Bool
    ) {
        #expect(readiness.mayRead == mayRead)
        #expect(readiness.mayWrite == mayWrite)
    }

    @Test func `a descriptor that cannot be polled is an error and leaves nothing`() throws {
        let loop = try EventLoop()
        let handler = Recorder()
        #expect(throws: Errno(code: EBADF)) { try loop.add(handler, descriptor: -1) }
        let file = try memoryFile([])
        #expect(throws: Errno(code: EPERM)) { try loop.add(handler, descriptor: file.fd) }
        #expect(handler.token == .none)
        #expect(loop.handlerCount == 0)
        #expect(loop.handlers.isEmpty)
    }

    @Test func `a descriptor is registered once`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        try loop.add(Recorder(), descriptor: pair.left.fd)
        #expect(throws: Errno(code: EEXIST)) {
            try loop.add(Recorder(), descriptor: pair.left.fd)
        }
        #expect(loop.handlerCount == 1)
    }

    @Test
    func `a descriptor that stays open is silent after removal and can be added again`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        let (first, second) = (Recorder(), Recorder())
        try loop.add(first, descriptor: pair.left.fd, trigger: .levelReadable)
        loop.remove(first, keepingOpen: pair.left.fd)
        send("x", to: pair.right)
        loop.turn(waitingAtMost: 0)
        #expect(first.events.isEmpty)
        try loop.add(second, descriptor: pair.left.fd, trigger: .levelReadable)
        loop.turn(waitingAtMost: 1000)
        #expect(first.events.isEmpty)
        #expect(second.events == [.readable])
    }

    @Test func `an event of a registration that ended reaches no handler`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        let (first, newHandler) = (Recorder(), Recorder())
        try loop.add(first, descriptor: pair.left.fd, trigger: .levelReadable)
        // The descriptor stays in epoll under the old token; the new handler takes the slot.
        loop.remove(first)
        try loop.add(newHandler)
        #expect(newHandler.token.slot == 0)
        send("x", to: pair.right)
        loop.turn(waitingAtMost: 1000)
        #expect(first.events.isEmpty && newHandler.events.isEmpty)
    }

    @Test func `a handler removed during the turn gets no event of it`() throws {
        let loop = try EventLoop()
        let (one, two) = (try SocketPair(), try SocketPair())
        let (first, second) = (Recorder(), Recorder())
        let newHandler = Recorder()
        for (handler, other, pair, otherPair) in [
            (first, second, one, two), (second, first, two, one),
        ] {
            try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
            handler.onReady = { [unowned other, unowned loop] _ in
                loop.remove(other)
                otherPair.left.close()
                // Takes the slot that was freed, while its event is still in the batch.
                added(loop, newHandler)
            }
        }
        send("x", to: one.right)
        send("x", to: two.right)
        loop.turn(waitingAtMost: 1000)
        #expect(first.events.count + second.events.count == 1)
        #expect(newHandler.events.isEmpty)
        #expect(loop.handlerCount == 2)
    }

    @Test func `a handler may remove itself`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair()
        weak var weakHandler: Recorder?
        do {
            let handler = Recorder()
            weakHandler = handler
            handler.onReady = { [unowned handler] _ in
                loop.remove(handler, keepingOpen: pair.left.fd)
            }
            try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
        }
        #expect(weakHandler != nil)
        send("x", to: pair.right)
        loop.turn(waitingAtMost: 1000)
        #expect(weakHandler == nil)
        #expect(loop.handlerCount == 0)
    }

    @Test func `a handler added during the turn gets its events with the next`() throws {
        let loop = try EventLoop()
        let (one, two) = (try SocketPair(), try SocketPair())
        let (first, second) = (Recorder(), Recorder())
        first.onReady = { [unowned first] _ in
            loop.remove(first, keepingOpen: one.left.fd)
            added(loop, second, two.left.fd)
        }
        try loop.add(first, descriptor: one.left.fd, trigger: .levelReadable)
        send("x", to: one.right)
        send("x", to: two.right)
        loop.turn(waitingAtMost: 1000)
        #expect(second.events.isEmpty)
        loop.turn(waitingAtMost: 1000)
        #expect(second.events == [.readable])
    }

    @Test func `more events than fit into one wait come with the next turns`() throws {
        let loop = try EventLoop()
        var pairs: [SocketPair] = []
        var handlers: [Recorder] = []
        for _ in 0..<600 {
            let (pair, handler) = (try SocketPair(), Recorder())
            try loop.add(handler, descriptor: pair.left.fd)
            pairs.append(pair)
            handlers.append(handler)
        }
        loop.turn(waitingAtMost: 1000)
        #expect(handlers.reduce(0) { $0 + $1.events.count } == 512)
        #expect(loop.runs { handlers.allSatisfy { $0.events.count == 1 } })
    }

    @Test func `tokens find their handlers for answers of other threads`() throws {
        let loop = try EventLoop()
        let handler = Recorder()
        try loop.add(handler)
        let token = handler.token
        #expect(loop.handler(for: token) === handler)
        #expect(loop.handlers.count == 1)
        loop.remove(handler)
        #expect(loop.handler(for: token) == nil)
    }
}
