import CachePolicy
import CacheStore
import Clocks
import Locking

/// What stands in for another process in the tests of the cache's levels: it keeps complete values
/// by key and variant, answers after a delay, and can be stopped or lose everything.
package final class RemoteServer: Sendable {
    struct Value: Sendable {
        let vary: [UInt8]
        var head: [UInt8]
        var times: StoredTimes
        var policy: UInt64
        /// The body, or the number of one that is kept apart.
        let body: Body
    }

    enum Body: Sendable {
        case whole([UInt8])
        case apart(Int64, count: Int)
    }

    private struct State {
        var values: [[UInt8]: [[UInt8]: Value]] = [:]
        var bodies: [Int64: [UInt8]] = [:]
        var lastBody: Int64 = 0
        var answered = 0
    }

    private let state = Locked(State())
    /// Whether it does not answer for the time being (as after SIGSTOP).
    private let gate = Monitor(false)
    let delayMicroseconds: Int64

    /// - Parameter delayMicroseconds: how long it takes over each command.
    package init(delayMicroseconds: Int64 = 0) { self.delayMicroseconds = delayMicroseconds }

    /// Commands answered so far.
    package var answered: Int { state.withLock { $0.answered } }
    /// Values, and bodies that are kept apart.
    package var counts: (values: Int, bodies: Int) {
        state.withLock { ($0.values.values.reduce(0) { $0 + $1.count }, $0.bodies.count) }
    }

    package func stop() { gate.withLock { $0 = true } }

    package func goOn() {
        gate.withLock { $0 = false }
        gate.broadcast()
    }

    /// Waits for its turn: called at the beginning of each command.
    private func takeItsTime() {
        let deadline = Clock.monotonicNanoseconds() + delayMicroseconds * 1000
        gate.wait { isStopped -> Waiting<Void> in
            if isStopped { return .signal }
            return Clock.monotonicNanoseconds() >= deadline ? .done(()) : .until(deadline)
        }
        state.withLock { $0.answered += 1 }
    }

    func get(_ key: [UInt8]) -> [Value] {
        takeItsTime()
        return state.withLock { $0.values[key].map { Array($0.values) } ?? [] }
    }

    /// - Parameter replaced: the Vary key of the value that it replaces besides its own.
    func set(_ key: [UInt8], _ value: Value, replacing replaced: [UInt8]? = nil) {
        takeItsTime()
        state.withLock { state in
            if let replaced { state.values[key]?[replaced] = nil }
            state.values[key, default: [:]][value.vary] = value
        }
    }

    /// Removes one variant, or all of them.
    func remove(_ key: [UInt8], vary: [UInt8]?) {
        takeItsTime()
        state.withLock { state in
            if let vary {
                state.values[key]?[vary] = nil
            } else {
                state.values[key] = nil
            }
        }
    }

    func removeAll() {
        takeItsTime()
        state.withLock { $0.values = [:] }
    }

    /// A number for a body to be kept apart; never given twice.
    func takeBodyNumber() -> Int64 {
        state.withLock { state in
            state.lastBody += 1
            return state.lastBody
        }
    }

    func setBody(_ id: Int64, _ bytes: [UInt8]) {
        takeItsTime()
        state.withLock { $0.bodies[id] = bytes }
    }

    func part(of id: Int64, from start: Int, count: Int) -> [UInt8]? {
        takeItsTime()
        return state.withLock { state in
            guard let body = state.bodies[id], start + count <= body.count else { return nil }
            return Array(body[start..<start + count])
        }
    }

    func removeBody(_ id: Int64) {
        takeItsTime()
        state.withLock { $0.bodies[id] = nil }
    }
}

/// What is asked of a `RemoteServer`.
enum RemoteCommand: Sendable {
    case load(LevelLoad, StoreFlight)
    case set([UInt8], RemoteServer.Value, replacing: [UInt8]?)
    case remove([UInt8], vary: [UInt8]?)
    case removeAll
    case setBody(Int64, [UInt8])
    case removeBody(Int64)
    case part(Int64, start: Int, count: Int, @Sendable (ChunkResult) -> Void)
    case barrier(@Sendable () -> Void)

    /// Bytes of a body in it.
    var bytes: Int {
        switch self {
        case .set(_, let value, _):
            if case .whole(let body) = value.body { body.count } else { 0 }
        case .setBody(_, let body): body.count
        default: 0
        }
    }
}
