import Logging
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Operational log: limits")
struct LogLimiterTests {
    private let cause = LogLimiter.Cause(message: "request not served", reason: "loop-detected")

    private func admitted(
        _ count: Int, _ limiter: inout LogLimiter, _ cause: LogLimiter.Cause, at now: Int64
    ) -> Int {
        (0..<count).count { _ in limiter.admits(cause, level: .info, now: now) }
    }

    @Test func `a few of the same per second are written and the others counted`() {
        var limiter = LogLimiter()
        #expect(admitted(1000, &limiter, cause, at: 10_000) == LogLimiter.burst)
        #expect(limiter.ended(at: 10_999) == [])
        #expect(
            limiter.ended(at: 11_000) == [
                LogLimiter.Suppressed(
                    cause: cause, level: .info, count: 1000 - UInt64(LogLimiter.burst))
            ])
        #expect(limiter.ended(at: 20_000) == [])
        #expect(admitted(1000, &limiter, cause, at: 11_000) == LogLimiter.burst)
    }

    @Test func `what never exceeds the limit is never counted`() {
        var limiter = LogLimiter()
        for second in Int64(0)..<100 {
            #expect(admitted(3, &limiter, cause, at: second * 1000) == 3)
            #expect(limiter.ended(at: second * 1000 + 999) == [])
            #expect(limiter.ended(at: second * 1000 + 1000) == [])
        }
        #expect(limiter.nextEnd == .max)
    }

    @Test(
        arguments: [
            LogLimiter.Cause(message: "server refused", reason: "loop-detected"),
            LogLimiter.Cause(message: "request not served", reason: "tunnel-refused"),
            LogLimiter.Cause(
                message: "request not served", reason: "loop-detected", subject: "api"),
        ])
    func `messages that differ in text, reason or subject are not the same`(other: LogLimiter.Cause)
    {
        var limiter = LogLimiter()
        #expect(admitted(100, &limiter, cause, at: 0) == LogLimiter.burst)
        #expect(admitted(100, &limiter, other, at: 0) == LogLimiter.burst)
    }

    @Test
    func `with too many causes further ones of a message share a limit, and memory is bounded`() {
        var limiter = LogLimiter()
        var written = 0
        for number in 0..<100_000 {
            let cause = LogLimiter.Cause(message: "request not served", subject: "\(number)")
            written += admitted(1, &limiter, cause, at: 0)
        }
        #expect(written == LogLimiter.maximumCauses + LogLimiter.burst)
        let counted = limiter.ended(at: 1000)
        #expect(counted.count == 1)
        #expect(counted.first?.cause == LogLimiter.Cause(message: "request not served"))
        #expect(counted.first?.count == UInt64(100_000 - written))
    }

    @Test func `windows end each at its own time`() {
        var limiter = LogLimiter()
        let later = LogLimiter.Cause(message: "server refused")
        #expect(admitted(10, &limiter, cause, at: 0) == LogLimiter.burst)
        #expect(admitted(10, &limiter, later, at: 600) == LogLimiter.burst)
        #expect(limiter.nextEnd == 1000)
        #expect(limiter.ended(at: 1000).map(\.cause) == [cause])
        #expect(limiter.nextEnd == 1600)
        #expect(limiter.ended(at: 1600).map(\.cause) == [later])
    }
}
