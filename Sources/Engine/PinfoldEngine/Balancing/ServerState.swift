import HTTPCore
import Locking
import PinfoldConfiguration
import Synchronization

/// What all workers know about one server of a set. It outlasts reloads that keep the server.
///
/// What every request needs is read and written without a lock; times are in milliseconds of the
/// monotonic clock.
package final class ServerState: Sendable {
    /// A change that is logged.
    enum Change: Equatable {
        case up
        case down
        case ejected(milliseconds: Int64)
    }

    /// What has been counted.
    package struct Counts: Sendable, Equatable {
        package var requests: UInt64 = 0
        /// By ``ServerFailureReason``.
        package var failures = [UInt64](repeating: 0, count: ServerFailureReason.allCases.count)
        package var ejections: UInt64 = 0
        package var checksPassed: UInt64 = 0
        package var checksFailed: UInt64 = 0
        package var retries: UInt64 = 0

        package init() {}
    }

    /// What it is used for now.
    package enum Standing: String, Sendable, CaseIterable {
        case up
        case down
        case ejected
        /// Its weight is 0.
        case draining
    }

    private struct Record {
        var ejection = EjectionRecord()
        var check = CheckRecord()
        var counts = Counts()
        /// Why it was last found not to work, for people.
        var cause = ""
    }

    /// The server's URL, by which it is known.
    package let url: String
    /// Decides what it draws for a hashed value.
    let seed: UInt64

    /// Requests under way, of all workers.
    private let underWay = Atomic<Int>(0)
    private let requests = Atomic<UInt64>(0)
    private let isDown = Atomic<Bool>(false)
    /// 0 if it is not ejected.
    private let ejectedUntil = Atomic<Int64>(0)
    /// When it came or came back; 0 if it is there from the beginning.
    private let cameAt: Atomic<Int64>
    /// Whether its last request failed.
    private let hasFailed = Atomic<Bool>(false)
    private let record = Locked(Record())

    /// - Parameter time: when it came to a set that was there before; 0 for one of the first.
    init(url: String, cameAt time: Int64) {
        self.url = url
        seed = mixed(FNV1a.hash(url))
        cameAt = Atomic(time)
    }

    // MARK: Load

    package var requestsUnderWay: Int { underWay.load(ordering: .relaxed) }

    func requestBegins() {
        underWay.add(1, ordering: .relaxed)
        requests.add(1, ordering: .relaxed)
    }

    func requestEnds() { underWay.subtract(1, ordering: .relaxed) }

    // MARK: State

    /// Whether the checks have not found it down.
    var isUp: Bool { !isDown.load(ordering: .relaxed) }

    /// Whether it is left out. The first one who asks after the end ends it.
    func isEjected(at now: Int64) -> Bool {
        let until = ejectedUntil.load(ordering: .relaxed)
        if until == 0 { return false }
        if now < until { return true }
        let ended = ejectedUntil.compareExchange(expected: until, desired: 0, ordering: .relaxed)
        if ended.exchanged { cameAt.store(until, ordering: .relaxed) }
        return false
    }

    /// When it came back or came; 0 if it did not.
    var since: Int64 { cameAt.load(ordering: .relaxed) }

    package func standing(weight: Int, at now: Int64) -> Standing {
        if !isUp { return .down }
        if now < ejectedUntil.load(ordering: .relaxed) { return .ejected }
        return weight == 0 ? .draining : .up
    }

    /// Why it was last found not to work; empty if it never was.
    package var cause: String { record.withLock { $0.cause } }

    package var counts: Counts {
        var counts = record.withLock { $0.counts }
        counts.requests = requests.load(ordering: .relaxed)
        return counts
    }

    // MARK: Results

    /// A request was answered.
    @inline(__always)
    func succeeded() {
        if hasFailed.load(ordering: .relaxed) { endRun() }
    }

    @inline(never)
    private func endRun() {
        hasFailed.store(false, ordering: .relaxed)
        record.withLock { $0.ejection.succeeded() }
    }

    /// A request failed.
    /// - Parameter mayEject: whether the server may be left out.
    func failed(
        _ failure: ServerFailureReason, _ cause: String, at now: Int64,
        by rules: UpstreamSet.Ejection, mayEject: () -> Bool
    ) -> Change? {
        hasFailed.store(true, ordering: .relaxed)
        let until = record.withLock { record -> Int64? in
            record.counts.failures[failure.rawValue] += 1
            record.cause = cause
            guard record.ejection.failed(at: now, by: rules), !isEjected(at: now), mayEject() else {
                return nil
            }
            record.counts.ejections += 1
            let until = record.ejection.eject(at: now, by: rules)
            ejectedUntil.store(until, ordering: .relaxed)
            return until
        }
        return until.map { .ejected(milliseconds: $0 - now) }
    }

    /// A check has ended.
    /// - Parameter cause: why it failed; `nil` if it passed.
    func checked(
        _ cause: String?, at now: Int64, by check: UpstreamSet.HealthCheck
    ) -> Change? {
        record.withLock { record in
            if let cause {
                record.counts.checksFailed += 1
                record.cause = cause
            } else {
                record.counts.checksPassed += 1
            }
            switch record.check.ended(passed: cause == nil, by: check) {
            case .up:
                let wasDown = isDown.exchange(false, ordering: .relaxed)
                if wasDown { cameAt.store(now, ordering: .relaxed) }
                return wasDown ? .up : nil
            case .down:
                isDown.store(true, ordering: .relaxed)
                return .down
            case .unknown, nil: return nil
            }
        }
    }

    /// A request that another server failed is sent to this one.
    func countRetry() { record.withLock { $0.counts.retries += 1 } }

    /// Its checks have ended: nothing is known about it any more.
    package func endChecks() {
        record.withLock { $0.check = CheckRecord() }
        isDown.store(false, ordering: .relaxed)
    }
}
