import CLinux
import EngineTestSupport
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("An event that is impossible in the state of its exchange")
struct ImpossibleEventTests {
    @Test func `takes no connection, and cuts the exchange off when the turn ends`() throws {
        let still = try StillWorker()
        still.environment.trapsOnIllegalEvents = false
        let (client, far) = try still.connect()
        defer { close(far) }
        write("GET http://one.test/ HTTP/1.1\r\nHost: one.test\r\n\r\n", to: far)
        client.drive()
        let exchange = try #require(client.exchange)
        let origin = try #require(exchange.origin)
        #expect(exchange.state.name == "connecting")
        #expect(still.counts(origin).waiting == 1)
        still.pool.abandon(origin, exchange)
        exchange.state.step = .finishing

        exchange.forward()
        #expect(still.metrics.value(.illegalTransitions) == 1)
        #expect(still.counts(origin).waiting == 0)
        #expect(exchange.state.name == "finishing")
        still.settle()
        #expect(exchange.state.name == "ended")
        #expect(client.exchange == nil)
    }
}
