import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("Traces that begin here")
struct TraceSamplingTests {
    private func settings(_ millionths: Int) -> TraceSettings {
        var configuration = TracingConfiguration()
        configuration.sampleMillionths = millionths
        return TraceSettings(configuration)
    }

    @Test(arguments: [0, 100, 10_000, 250_000, 999_900, 1_000_000])
    func `are sampled as often as the share says`(_ millionths: Int) {
        let settings = settings(millionths)
        var numbers = TraceNumbers(seed: (1, 2, 3, 4))
        let count = 200_000
        let sampled = (0..<count).count { _ in settings.samples(numbers.trace()) }
        let share = Double(millionths) / 1_000_000
        let expected = Double(count) * share
        // Five standard deviations of a binomial distribution.
        let bound = 5 * (expected * (1 - share)).squareRoot()
        #expect(abs(Double(sampled) - expected) <= bound)
    }

    @Test func `are sampled by all that have a share, if one with a lower share samples them`() {
        var numbers = TraceNumbers(seed: (5, 6, 7, 8))
        let (few, more) = (settings(10_000), settings(300_000))
        for _ in 0..<10_000 {
            let trace = numbers.trace()
            if few.samples(trace) { #expect(more.samples(trace)) }
        }
    }

    @Test func `are decided by the last 56 bits of their numbers`() {
        let half = settings(500_000)
        #expect(half.samples(TraceID(high: 0, low: 1 << 55)))
        #expect(!half.samples(TraceID(high: .max, low: (1 << 55) - 1)))
        #expect(!half.samples(TraceID(high: .max, low: .max << 56)))
    }

    @Test func `have numbers of their own, and never 0`() {
        var numbers = TraceNumbers()
        var others = TraceNumbers()
        var seen: Set<TraceID> = []
        for _ in 0..<1000 {
            seen.insert(numbers.trace())
            seen.insert(others.trace())
        }
        #expect(seen.count == 2000)
        #expect(seen.allSatisfy { $0.low != 0 })
        var empty = TraceNumbers(seed: (0, 0, 0, 0))
        let spans = (0..<100).map { _ in empty.span() }
        #expect(Set(spans).count == 100 && !spans.contains(0))
    }
}
