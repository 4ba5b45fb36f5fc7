import CLinux
import EngineTestSupport
import HTTPCore
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("An event that is impossible in the state of its exchange")
struct ImpossibleEventTests {
    private static let request = "GET http://one.test/ HTTP/1.1\r\nHost: one.test\r\n\r\n"

    @Test func `takes no connection, and cuts the exchange off when the turn ends`() throws {
        let still = try StillWorker()
        still.environment.trapsOnIllegalEvents = false
        let (client, far) = try still.connect()
        defer { close(far) }
        write(Self.request, to: far)
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

    /// The beginning of a request, in an object that was given back before its exchange had ended.
    @Test(arguments: [request, "GET / HTTP/1.1\r\nBad Name: x\r\n\r\n"])
    func `begins no exchange: the request is neither routed nor answered`(
        _ request: String
    ) throws {
        let still = try StillWorker()
        still.environment.trapsOnIllegalEvents = false
        let (client, far) = try still.connect()
        defer { close(far) }
        let exchange = still.environment.takeExchange()
        exchange.state.step = .finishing
        // The former exchange is still counted.
        still.environment.exchangeBegan()
        client.exchange = exchange
        write(request, to: far)
        client.drive()
        #expect(still.metrics.value(.illegalTransitions) == 1)
        #expect(exchange.state.name == "finishing")
        #expect(exchange.origin == nil)
        #expect(exchange.remarks.fault == nil)
        #expect(still.metrics.value(.poolWaiting) == 0)
        #expect(client.http.phase == .awaiting && client.isFlushed)

        still.settle()
        #expect(exchange.state.name == "ended")
        #expect(client.isClosed && client.exchange == nil)
        #expect(still.metrics.value(.exchangesInFlight) == 0)
        #expect(readable(far).isEmpty)
    }

    /// The answer to a CONNECT, on a connection of which the request asks for no other protocol.
    @Test func `opens no tunnel, and closes both connections`() throws {
        let server = try ScriptedServer()
        let still = try StillWorker.reachingLoopback(connectPorts: [server.port])
        still.environment.trapsOnIllegalEvents = false
        let (client, far) = try still.connect()
        defer { close(far) }
        write("CONNECT \(server.endpoint) HTTP/1.1\r\nHost: \(server.endpoint)\r\n\r\n", to: far)
        client.drive()
        let exchange = try #require(client.exchange)
        #expect(exchange.state.name == "opening")
        var other = HTTP1Connection(.server, isOpen: true)
        _ = other.handle(.requestHead(.init(hasContent: false, maySwitch: false)))
        client.http = other

        still.turn(until: "it ends") { exchange.state.name == "ended" }
        #expect(still.metrics.value(.illegalTransitions) == 1)
        #expect(still.metrics.value(.tunnelsOpen) == 0)
        #expect(still.metrics.value(.exchangesInFlight) == 0)
        #expect(client.isClosed && client.exchange == nil)
        #expect(readable(far).isEmpty)
        #expect(openConnections(toPort: server.port) == 0)
    }
}
