import Testing

@testable import EventLoop

/// Records the order in which several handlers were called.
private final class Order {
    var names: [String] = []
}

private final class Named: EventHandler {
    private let name: String
    private let order: Order
    private let onReady: () -> Void

    init(_ name: String, _ order: Order, onReady: @escaping () -> Void = {}) {
        self.name = name
        self.order = order
        self.onReady = onReady
    }

    override func ready(_ readiness: Readiness) {
        order.names.append(name)
        onReady()
    }
}

@Suite("Handlers that expect nothing")
struct QuietTests {
    private let order = Order()

    @Test func `events of quiet handlers are delivered first and once`() throws {
        let loop = try EventLoop()
        let pairs = try (0..<3).map { _ in try SocketPair() }
        let handlers = ["a", "b", "c"].map { Named($0, order) }
        for (handler, pair) in zip(handlers, pairs) {
            try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
        }
        loop.setQuiet(handlers[2], true)
        for pair in pairs { send("x", to: pair.right) }
        loop.turn(waitingAtMost: 1000)
        #expect(order.names == ["c", "a", "b"])
        loop.setQuiet(handlers[2], false)
        loop.turn(waitingAtMost: 1000)
        #expect(order.names.dropFirst(3) == ["a", "b", "c"])
    }

    @Test func `a handler that an earlier event removes is not called`() throws {
        let loop = try EventLoop()
        let pairs = try (0..<2).map { _ in try SocketPair() }
        let busy = Named("busy", order)
        let quiet = Named("quiet", order) { [unowned loop] in
            loop.remove(busy, keepingOpen: pairs[0].left.fd)
        }
        try loop.add(busy, descriptor: pairs[0].left.fd, trigger: .levelReadable)
        try loop.add(quiet, descriptor: pairs[1].left.fd, trigger: .levelReadable)
        loop.setQuiet(quiet, true)
        for pair in pairs { send("x", to: pair.right) }
        loop.turn(waitingAtMost: 1000)
        #expect(order.names == ["quiet"])
    }

    @Test func `a removed handler is no longer quiet`() throws {
        let loop = try EventLoop()
        let handler = Named("a", order)
        try loop.add(handler)
        loop.setQuiet(handler, true)
        loop.setQuiet(handler, true)
        loop.remove(handler)
        #expect(!handler.isQuiet)
    }

    @Test func `a full batch reports that there may be more`() throws {
        let loop = try EventLoop(eventsPerTurn: 2)
        let pairs = try (0..<3).map { _ in try SocketPair() }
        let handlers = ["a", "b", "c"].map { Named($0, order) }
        for (handler, pair) in zip(handlers, pairs) {
            try loop.add(handler, descriptor: pair.left.fd, trigger: .levelReadable)
            send("x", to: pair.right)
        }
        loop.turn(waitingAtMost: 1000)
        #expect(loop.mayHaveMoreEvents)
        #expect(order.names.count == 2)
        for handler in handlers.dropFirst() { loop.remove(handler) }
        for pair in pairs.dropFirst() { pair.left.close() }
        loop.turn(waitingAtMost: 1000)
        #expect(!loop.mayHaveMoreEvents)
        #expect(loop.turnNumber == 2)
    }
}
