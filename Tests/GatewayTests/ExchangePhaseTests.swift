import Foundation
import Testing

@testable import Gateway

@Suite("The phases of an exchange")
struct ExchangePhaseTests {
    private static func successors(_ phase: ExchangePhase) -> [ExchangePhase] {
        ExchangePhase.allCases.filter { phase.successors.contains($0) }
    }

    /// The table of the page, as the code has it.
    private static var rows: String {
        ExchangePhase.allCases.map { phase in
            "| \(phase) | \(successors(phase).map { "\($0)" }.joined(separator: ", ")) |\n"
        }.joined()
    }

    @Test func thePageShowsTheTransitionsThatTheCodeAllows() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = tests.deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/Gateway/Gateway.docc/Phases.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let isThere = text.contains("| from | to |\n|---|---|\n" + Self.rows)
        #expect(isThere, "the table should be:\n\(Self.rows)")
    }

    @Test func anExchangeThatHasEndedBeginsWithItsRoute() {
        #expect(Self.successors(.ended) == [.routing])
    }

    @Test func everyPhaseButTheFirstCanEnd() {
        for phase in ExchangePhase.allCases where phase != .ended {
            #expect(phase.successors.contains(.ended))
        }
    }

    @Test func everyPhaseCanBeReached() {
        var reached: Set<ExchangePhase> = [.ended]
        var last: Set<ExchangePhase> = []
        while reached != last {
            last = reached
            for phase in last { reached.formUnion(Self.successors(phase)) }
        }
        #expect(reached == Set(ExchangePhase.allCases))
    }

    /// Nothing goes upstream without a connection that was waited for, whose trust was judged.
    @Test func onlyAConnectionThatWasWaitedForForwards() {
        let before = ExchangePhase.allCases.filter { $0.successors.contains(.forwarding) }
        #expect(before == [.connecting, .forwarding])
    }

    @Test func whatHasBegunToReplyOrToTunnelDoesNotGoUpstreamAnyMore() {
        for phase in [ExchangePhase.replying, .tunnelling] {
            let isSubset = phase.successors.isSubset(of: [.ended, .replying, .tunnelling])
            #expect(isSubset)
        }
    }
}
