import EngineTestSupport
import HTTPCore
import Testing

@testable import CacheStore
@testable import PinfoldEngine

@Suite("An exchange object that is used again")
struct ExchangeReuseTests {
    private let still: StillEngine
    private let exchange: Exchange

    init() throws {
        still = try StillEngine()
        exchange = Exchange(environment: still.environment)
    }

    /// Whatever is added belongs into a part, where nothing more is needed to make it new.
    @Test func `has no variables but its parts and a few that concern the whole`() {
        #expect(
            ExchangeContents(exchange).variables == [
                "token", "deadline", "wheelEntry", "isQuiet", "isQueued",
                "environment", "metrics", "origins", "store", "state", "client", "request",
                "response", "intake", "forwarding", "report", "upload", "caching", "storing",
                "serving", "collapsing", "tunnel", "isInvolved", "nextInQueue", "previousInQueue",
            ])
    }

    /// Changes something in each part.
    private func use() throws {
        let peer = try #require(Endpoint("127.0.0.1:1"))
        #expect(exchange.register())
        exchange.state.step = .loading
        exchange.intake.begin(onBehalfOf: peer)
        exchange.intake.received(5)
        exchange.forwarding.begin(at: 7, wallTime: 8)
        exchange.forwarding.needFreshConnection()
        exchange.report.begin(1, at: 2)
        exchange.report.failed(.loopDetected)
        exchange.report.tried(FailedAttempts([]))
        exchange.upload.wait(until: 3)
        exchange.caching.forward(because: .stale)
        exchange.storing.pause(at: 4)
        exchange.serving.read(
            with: StoredBodyReader(
                exchange: exchange,
                source: .disk(DiskBody(id: 1, count: 1, chunkBytes: 1, source: FullLevel())),
                content: 0..<1))
        exchange.collapsing.lead(9)
        exchange.tunnel = Exchange.Tunnelling()
        exchange.tunnel?.intercept()
    }

    @Test func `holds nothing of the exchange before`() throws {
        #expect(exchange.remains == [])
        try use()
        let parts = Set(exchange.remains.compactMap { $0.split(separator: ".").first })
        let expected: Set<Substring> = [
            "intake", "forwarding", "report", "upload", "caching", "storing", "serving",
            "collapsing", "tunnel",
        ]
        #expect(parts.isSuperset(of: expected), "\(exchange.remains)")
        exchange.reset()
        #expect(exchange.remains == [])
    }

    @Test func `is not made new where a response from memory leaves it as it is`() throws {
        exchange.report.begin(1, at: 2)
        exchange.report.answered(200)
        exchange.forwarding.needFreshConnection()
        #expect(!exchange.remains.contains { $0.hasPrefix("isInvolved") })
        exchange.reset()
        #expect(exchange.remains == [])
    }
}
