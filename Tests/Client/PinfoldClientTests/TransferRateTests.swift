import Testing

@testable import PinfoldClient

@Suite("The rate of a transfer")
struct TransferRateTests {
    private func rate(_ marks: [(time: Int64, bytes: Int64)]) -> Int64? {
        var rate = TransferRate()
        for mark in marks { rate.note(mark.bytes, at: mark.time) }
        return rate.perSecond
    }

    @Test func `is unknown after a single record`() {
        #expect(rate([]) == nil)
        #expect(rate([(7, 100)]) == nil)
        #expect(rate([(7, 100), (7, 200)]) == nil)
    }

    @Test(arguments: [Int64(1), 5, 40, 199, 200, 201, 1000], [Int64(2), 3, 10, 100])
    func `is steady for steady transfers, however often they are recorded`(
        step: Int64, count: Int64
    ) {
        #expect(rate((0..<count).map { ($0 * step, $0 * step * 3) }) == 3000)
    }

    @Test func `is that of the last seconds`() {
        let fast = (Int64(0)...100).map { (time: $0 * 100, bytes: $0 * 1000) }
        let slow = (Int64(1)...60).map { (time: 10_000 + $0 * 100, bytes: 100_000 + $0 * 10) }
        #expect(rate(fast) == 10_000)
        #expect(rate(fast + slow) == 100)
    }

    @Test func `falls if nothing is transferred`() {
        #expect(rate([(0, 0), (100, 1000), (2000, 1000)]) == 500)
    }
}
