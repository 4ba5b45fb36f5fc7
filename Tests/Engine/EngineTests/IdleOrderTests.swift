import Testing

@testable import PinfoldEngine

private final class Connection: IdleOrdered {
    var isIdle = true
    var isClosed = false
    var idleSince: Int64 = 0
    var queuedAt: Int64?

    func close(_ order: inout IdleOrder<Connection>) {
        (isIdle, isClosed) = (false, true)
        order.closed(self)
    }
}

@Suite("The order of idle connections")
struct IdleOrderTests {
    private func filled(_ count: Int) -> (IdleOrder<Connection>, [Connection]) {
        var order = IdleOrder<Connection>()
        let connections = (0..<count).map { _ in Connection() }
        for (time, connection) in connections.enumerated() {
            order.becameIdle(connection, at: Int64(time))
        }
        return (order, connections)
    }

    @Test func `without connections none is the longest idle`() {
        var order = IdleOrder<Connection>()
        #expect(order.longestIdle() == nil)
    }

    @Test func `the one that has been idle the longest comes first`() {
        var (order, connections) = filled(3)
        for connection in connections {
            #expect(order.longestIdle() === connection)
            // Looking takes nothing away.
            #expect(order.longestIdle() === connection)
            connection.close(&order)
        }
        #expect(order.longestIdle() == nil)
    }

    @Test func `one that was used since is later in the order`() {
        var (order, connections) = filled(3)
        order.becameIdle(connections[0], at: 10)
        #expect(order.longestIdle() === connections[1])
        order.becameIdle(connections[1], at: 11)
        order.becameIdle(connections[2], at: 12)
        #expect(order.longestIdle() === connections[0])
    }

    @Test func `one in use is left out until it is idle again`() {
        var (order, connections) = filled(2)
        connections[0].isIdle = false
        #expect(order.longestIdle() === connections[1])
        connections[1].isIdle = false
        #expect(order.longestIdle() == nil)
        connections[0].isIdle = true
        order.becameIdle(connections[0], at: 20)
        #expect(order.longestIdle() === connections[0])
    }

    @Test func `closed connections are let go`() {
        var order = IdleOrder<Connection>()
        let kept = Connection()
        order.becameIdle(kept, at: 0)
        var held: [() -> Connection?] = []
        for time in 1...1000 {
            let connection = Connection()
            held.append { [weak connection] in connection }
            order.becameIdle(connection, at: Int64(time))
            connection.close(&order)
        }
        #expect(held.count { $0() != nil } <= 64)
        #expect(order.longestIdle() === kept)
    }
}
