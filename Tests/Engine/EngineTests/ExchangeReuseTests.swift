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
                "response", "intake", "forwarding", "report", "remarks", "caller", "upload",
                "caching", "storing", "serving", "collapsing", "tunnel", "limiting", "waits",
                "trace", "balanced", "changed", "nextInQueue", "previousInQueue",
            ])
    }

    /// A change of each part.
    private var changes: [(name: String, change: (Exchange) -> Void)] {
        [
            ("intake", { $0.intake.received(5) }),
            ("forwarding", { $0.forwarding.needFreshConnection() }),
            ("report", { $0.report.answered(200) }),
            ("remarks", { $0.remarks.failed(.access(.loopDetected)) }),
            ("caller", { $0.caller.offers(.basic) }),
            ("upload", { $0.upload.wait(until: 3) }),
            ("caching", { $0.caching.forward(because: .stale) }),
            ("storing", { $0.storing.pause(at: 4) }),
            (
                "serving",
                {
                    let body = LevelBody(id: 1, count: 1, chunkBytes: 1, source: FullLevel())
                    $0.serving.read(
                        with: StoredBodyReader(
                            exchange: $0, source: .disk(body), of: nil, content: 0..<1))
                }
            ),
            ("collapsing", { $0.collapsing.lead(9) }),
            ("tunnel", { $0.tunnel = Exchange.Tunnelling(isRequested: true) }),
            ("limiting", { $0.limiting = Exchange.Limiting(nil, reported: []) }),
            ("waits", { $0.waits.begin(at: 5) }),
            (
                "trace",
                {
                    let id = TraceID(high: 1, low: 2)
                    $0.trace = ExchangeTrace(id: id, span: 3, parent: 4, isSampled: true)
                }
            ),
        ]
    }

    private var changedParts: Set<String> {
        Set(exchange.remains.compactMap { $0.split(separator: ".").first.map(String.init) })
    }

    @Test func `holds nothing of the exchange before`() throws {
        #expect(exchange.remains == [])
        #expect(exchange.register())
        for (_, change) in changes { change(exchange) }
        #expect(changedParts.isSuperset(of: changes.map(\.name)), "\(exchange.remains)")
        exchange.reset()
        #expect(exchange.remains == [])
    }

    /// Which parts have been changed is remembered for each of them.
    @Test func `is made new where any one part was changed`() {
        for (name, change) in changes {
            change(exchange)
            #expect(exchange.remains.contains { $0.hasPrefix(name) }, "\(name)")
            exchange.reset()
            #expect(exchange.remains == [], "\(name)")
        }
    }

    @Test func `keeps its id until the next exchange begins, for late events`() {
        exchange.report.begin(7, at: 2)
        exchange.reset()
        #expect(exchange.report.id == 7)
    }

    /// The next exchange would then be reported as impossible, and be cut off.
    @Test func `stays in its state if it is made new before its end`() {
        exchange.state.step = .loading
        exchange.reset()
        guard case .loading = exchange.state.step else {
            Issue.record("\(exchange.state.name)")
            return
        }
    }
}
