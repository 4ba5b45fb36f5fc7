import Clocks
import Locking
import PinReporting
import SharedCacheLevel

/// The fleet, for this gateway's operators: who else is there, and the policy that all have in
/// common.
package final class FleetAdministration: Sendable {
    /// The engine, as far as it is asked.
    struct Engine: Sendable {
        var readMembers: @Sendable (@escaping @Sendable ([FleetMember]?) -> Void) -> Void
        var publish:
            @Sendable (_ envelope: [UInt8], _ percent: Int, @escaping @Sendable (Bool) -> Void)
                -> Void
        /// Whether it is in use.
        var isReached: @Sendable () -> Bool
    }

    private struct State {
        var report: [UInt8] = []
        /// When the next one is written, of the monotonic clock, in milliseconds.
        var next: Int64 = 0
        var members: [FleetMember] = []
        /// What they say, once somebody has wanted to know.
        var view: FleetView?
        /// Whether the engine said so when it was asked last.
        var isCurrent = false
        var pins = PinUseTable()
        /// When that was read, of the monotonic clock, in milliseconds; `nil` if it never was.
        var pinsRead: Int64?
    }

    /// How often this gateway's report is written, and the others' are read.
    static let intervalMilliseconds: Int64 = 5000
    /// How often the file is read that says when pins have matched: it is written less often.
    static let pinsMilliseconds: Int64 = 60_000

    /// This gateway's name in the fleet.
    let name: [UInt8]
    let engine: Engine
    /// The policy that came by way of the engine.
    let offers = PolicyOffers()
    /// Whether a policy is verified here before it is published, and by what.
    let publishing: PolicyPublishing
    private let pinUseFile: String
    private let state = Locked(State())

    init(name: [UInt8], engine: Engine, publishing: PolicyPublishing, pinUseFile: String) {
        (self.name, self.engine, self.publishing) = (name, engine, publishing)
        self.pinUseFile = pinUseFile
    }

    var shownName: String { FleetText.shown(name, maximumBytes: 100) }

    /// What the others are told of this gateway.
    var report: [UInt8] { state.withLock { $0.report } }

    /// Whether the next report is to be written now.
    func isDue(at now: Int64) -> Bool {
        state.withLock { state in
            guard now >= state.next else { return false }
            state.next = now + Self.intervalMilliseconds
            return true
        }
    }

    /// There is something to be told at once.
    func becomeDue() { state.withLock { $0.next = 0 } }

    func tell(_ report: FleetReport) {
        let bytes = report.encoded()
        state.withLock { $0.report = bytes }
    }

    /// When pins have matched, across restarts. Reads a file from time to time.
    func pinUse() -> PinUseTable {
        let now = Clock.monotonicMilliseconds()
        let known = state.withLock { state -> PinUseTable? in
            guard let read = state.pinsRead, now - read < Self.pinsMilliseconds else { return nil }
            return state.pins
        }
        if let known { return known }
        let read = (try? PinUseFile.read(pinUseFile)) ?? nil
        return state.withLock { state in
            if let read { state.pins = read }
            state.pinsRead = now
            return state.pins
        }
    }

    /// The fleet as it was found last, without asking. What the gateways say is read when somebody
    /// wants to know, on that thread and once: it may be much.
    var lastView: FleetView {
        let (members, known, isCurrent) = state.withLock { ($0.members, $0.view, $0.isCurrent) }
        let now = Clock.wallSeconds()
        if var known {
            (known.isCurrent, known.now) = (isCurrent, now)
            return known
        }
        let view = FleetView(members, name: shownName, isCurrent: isCurrent, now: now)
        state.withLock { if $0.members == members { $0.view = view } }
        return view
    }

    /// Asks the engine who is there.
    /// - Parameter completion: called on any thread, also if the engine does not answer.
    func refresh(_ completion: @escaping @Sendable () -> Void = {}) {
        engine.readMembers { [self] members in
            state.withLock { state in
                state.isCurrent = members != nil
                guard let members, members != state.members else { return }
                (state.members, state.view) = (members, nil)
            }
            completion()
        }
    }
}

extension FleetAdministration.Engine {
    init(_ level: SharedLevel) {
        self.init(
            readMembers: { level.readMembers($0) },
            publish: { level.publishPolicy($0, canaryPercent: $1, $2) },
            isReached: { level.state == .ready })
    }
}
