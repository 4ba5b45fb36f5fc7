import HTTPCore
import Testing

@testable import PinfoldEngine

/// A state that an expectation may change.
private final class Health {
    private var state: ParentHealth

    init(interval: Int64, at now: Int64) { state = ParentHealth(interval: interval, at: now) }

    var isDown: Bool { state.isDown }
    func answered(at now: Int64) -> Bool { state.answered(at: now) }
    func failed(at now: Int64) -> Bool { state.failed(at: now) }
    func suspect() { state.suspect() }
    func takeProbe(at now: Int64) -> Bool { state.takeProbe(at: now) }
    func probed(_ hasAnswered: Bool, at now: Int64) -> Bool { state.probed(hasAnswered, at: now) }
}

@Suite("The health of a parent")
struct ParentHealthTests {
    @Test func `it is down for longer after each failure in a row, within a limit`() {
        #expect(
            (1...9).map(ParentHealth.pause(after:))
                == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
        #expect(ParentHealth.pause(after: .max) == ParentHealth.longestPause)
        #expect(ParentHealth.pause(after: 0) == ParentHealth.shortestPause)
    }

    @Test func `it is asked again when its pause is over, until it answers`() {
        let health = Health(interval: 0, at: 0)
        var now: Int64 = 5
        #expect(!health.isDown)
        #expect(health.failed(at: now))
        for pause: Int64 in [1000, 2000, 4000] {
            #expect(health.isDown)
            #expect(!health.takeProbe(at: now + pause - 1))
            #expect(health.takeProbe(at: now + pause))
            #expect(!health.takeProbe(at: now + pause), "it has been asked")
            now += pause
            #expect(!health.probed(false, at: now), "it stays down")
        }
        #expect(health.takeProbe(at: now + 8000))
        #expect(health.probed(true, at: now + 8001))
        #expect(!health.isDown)
        #expect(health.failed(at: now + 8002), "it begins anew")
        #expect(health.takeProbe(at: now + 9002))
    }

    @Test func `failures at the same time count once`() {
        let health = Health(interval: 0, at: 0)
        #expect(health.failed(at: 10))
        for _ in 0..<20 { #expect(!health.failed(at: 500)) }
        #expect(health.takeProbe(at: 1010))
        #expect(!health.probed(false, at: 1010))
        #expect(!health.takeProbe(at: 3009))
        #expect(health.takeProbe(at: 3010))
    }

    @Test func `a request that gets through brings it up`() {
        let health = Health(interval: 0, at: 0)
        #expect(health.failed(at: 0))
        #expect(health.answered(at: 1))
        #expect(!health.isDown)
        #expect(!health.answered(at: 2))
    }

    @Test func `a suspicion has it asked at once, and alone changes nothing`() {
        let health = Health(interval: 0, at: 0)
        #expect(!health.takeProbe(at: 1_000_000))
        health.suspect()
        #expect(!health.isDown)
        #expect(health.takeProbe(at: 1_000_001))
        #expect(!health.probed(true, at: 1_000_002))
        #expect(!health.isDown)
        #expect(!health.takeProbe(at: 2_000_000))
        health.suspect()
        #expect(health.takeProbe(at: 2_000_001))
        #expect(health.probed(false, at: 2_000_002))
        #expect(health.isDown)
    }

    @Test func `it is asked when nothing has shown for a while that it answers`() {
        let health = Health(interval: 10_000, at: 0)
        #expect(!health.takeProbe(at: 9_999))
        _ = health.answered(at: 5_000)
        #expect(!health.takeProbe(at: 14_999))
        #expect(health.takeProbe(at: 15_000))
        #expect(!health.probed(true, at: 15_001))
        #expect(!health.takeProbe(at: 25_000))
        #expect(health.takeProbe(at: 25_001))
    }

    @Test func `whoever asked and is gone does not keep others from asking`() {
        let health = Health(interval: 1_000, at: 0)
        #expect(health.takeProbe(at: 1_000))
        #expect(!health.takeProbe(at: 1_000 + ParentHealth.forgottenAfter - 1))
        #expect(health.takeProbe(at: 1_000 + ParentHealth.forgottenAfter))
    }

    /// Every sequence of five events, at times that are within and after each pause.
    @Test func `it is down exactly if the last evidence was a failure`() {
        enum Event: CaseIterable { case answered, failed, suspect, probedWell, probedBadly }
        func run(_ events: [Event], _ step: Int64) {
            let health = Health(interval: 100, at: 0)
            var now: Int64 = 0
            var isDown = false
            for event in events {
                now += step
                switch event {
                case .answered:
                    #expect(health.answered(at: now) == isDown)
                    isDown = false
                case .failed:
                    #expect(health.failed(at: now) == !isDown)
                    isDown = true
                case .suspect: health.suspect()
                case .probedWell:
                    _ = health.takeProbe(at: now)
                    #expect(health.probed(true, at: now) == isDown)
                    isDown = false
                case .probedBadly:
                    _ = health.takeProbe(at: now)
                    #expect(health.probed(false, at: now) == !isDown)
                    isDown = true
                }
                #expect(health.isDown == isDown)
            }
        }
        func all(_ count: Int) -> [[Event]] {
            count == 0
                ? [[]] : all(count - 1).flatMap { head in Event.allCases.map { head + [$0] } }
        }
        for events in all(5) {
            for step: Int64 in [1, 1_000, 100_000] { run(events, step) }
        }
    }
}
