import Testing

@testable import Gateway

@Suite("Which workers' loops turn") struct LoopTurnsTests {
    private func ask(_ turns: LoopTurns, now: Int64 = 0) -> UInt64 {
        var asked: UInt64 = 0
        turns.ask(now: now) { asked = $0 }
        return asked
    }

    /// Whether all have answered by now.
    private func haveAllAnswered(_ turns: LoopTurns) -> Bool { turns.waitForAll(until: 0) }

    @Test func `all turn once each has answered the last question`() {
        let turns = LoopTurns(workers: 2)
        #expect(haveAllAnswered(turns), "nobody was asked")
        let first = ask(turns)
        turns.answered(0, round: first)
        #expect(!haveAllAnswered(turns))
        turns.answered(1, round: first)
        #expect(haveAllAnswered(turns))
        let second = ask(turns)
        #expect(second != first)
        turns.answered(0, round: second)
        // A late answer to an earlier question shows nothing about the last one.
        turns.answered(1, round: first)
        #expect(!haveAllAnswered(turns))
        turns.answered(1, round: second)
        #expect(haveAllAnswered(turns))
    }

    @Test func `those that are silent are known, and for how long`() {
        let turns = LoopTurns(workers: 3)
        let round = ask(turns, now: 1_000_000)
        turns.answered(1, round: round)
        #expect(
            turns.silent(now: 8_000_000) == [
                LoopTurns.Silence(worker: 0, milliseconds: 7),
                LoopTurns.Silence(worker: 2, milliseconds: 7),
            ])
        for worker in 0..<3 { turns.answered(worker, round: round) }
        #expect(turns.silent(now: 8_000_000).isEmpty)
    }

    @Test func `at the end nobody is waited for`() {
        let turns = LoopTurns(workers: 1)
        _ = ask(turns)
        turns.end()
        #expect(haveAllAnswered(turns))
        _ = ask(turns)
        #expect(haveAllAnswered(turns))
    }
}
