import CLinux
import EngineTestSupport
import EventLoop
import Testing

@testable import CacheStore
@testable import Gateway
@testable import PinfoldEngine

@Suite("A deadline of an exchange")
struct ExchangeDeadlineTests {
    private func get(_ host: String) -> String {
        "GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n"
    }

    @Test
    func `that ends it does not affect the pipelined request that reuses its object`() throws {
        let still = try StillWorker()
        let (client, far) = try still.connect()
        defer { close(far) }
        write(get("one.test") + get("two.test"), to: far)
        client.drive()
        let exchange = try #require(client.exchange)
        #expect(exchange.state.name == "connecting")

        // As if the first were being served from the disk, whose queue stays full.
        still.pool.abandon(try #require(exchange.origin), exchange)
        exchange.state.step = .serving
        let head = client.makeHead(status: 200, phrase: nil, room: 64)
        client.sendHead(head, framing: .lengthInFields(10), closing: false)
        exchange.serving.read(
            with: StoredBodyReader(
                exchange: exchange,
                source: .disk(LevelBody(id: 1, count: 10, chunkBytes: 10, source: FullLevel())),
                of: nil, content: 0..<10))
        let first = exchange.report.id
        for _ in 0..<1000 where exchange.report.id == first { exchange.deadlineReached() }

        let answers = readable(far)
        // The first is sent to its server instead, which takes too long; the second continues.
        #expect(answers.ranges(of: "HTTP/1.1 504 ").count == 1)
        #expect(answers.contains("pool-wait-timeout"))
        #expect(client.exchange === exchange)
        #expect(exchange.state.name == "connecting")
        client.cutOff()
    }
}
