/// Decides when the activity indicator is shown, from the number of exchanges in flight.
///
/// It holds the count, the state and the transition counters, and turns events into actions; its
/// owner has the single timer and the display. It is owned by one thread.
///
/// The count may be kept in two ways, of which an owner should choose one: step by step with
/// `begin` and `end`, or as an absolute number with `observe`, which suits a sampled sum of
/// per-worker gauges.
package struct ActivityTracker: Sendable, Equatable {
    /// The current state.
    package private(set) var state: ActivityState = .notActive
    /// Exchanges in flight; never below zero. Also kept while disabled, so that enabling it during
    /// traffic shows it (AFNetworking would wait for the next change).
    package private(set) var count: Int = 0
    /// Whether changes of the count have an effect.
    package private(set) var isEnabled: Bool
    /// The delays before it is shown and hidden.
    package let delays: ActivityDelays
    /// How often each state was entered from another one, indexed by the state's raw value.
    package private(set) var transitions: InlineArray<4, UInt64> = .init(repeating: 0)

    /// Creates a tracker at rest: nothing is in flight, and the indicator is hidden.
    package init(delays: ActivityDelays = ActivityDelays(), isEnabled: Bool = true) {
        self.delays = delays
        self.isEnabled = isEnabled
    }

    /// Whether the indicator is currently shown.
    package var isVisible: Bool { state.isVisible }

    /// An exchange began.
    package mutating func begin() -> ActivityActions {
        observe(count: count + 1)
    }

    /// An exchange ended. An end without a beginning is ignored: the count stays at zero.
    package mutating func end() -> ActivityActions {
        observe(count: count - 1)
    }

    /// The number of exchanges in flight is now `count`; a negative number counts as zero. An
    /// unchanged number is not an event.
    package mutating func observe(count newCount: Int) -> ActivityActions {
        let newCount = max(0, newCount)
        guard newCount != count else { return .none }
        count = newCount
        return isEnabled ? apply(count > 0 ? .activity : .noActivity) : .none
    }

    /// The timer that an action started has fired.
    package mutating func timerFired() -> ActivityActions {
        apply(.timer(busy: count > 0))
    }

    /// Enables or disables the indicator. Disabling resets it; enabling uses the current count.
    package mutating func setEnabled(_ enabled: Bool) -> ActivityActions {
        guard enabled != isEnabled else { return .none }
        isEnabled = enabled
        guard enabled else { return apply(.reset) }
        return apply(count > 0 ? .activity : .noActivity)
    }

    private mutating func apply(_ event: ActivityEvent) -> ActivityActions {
        let (next, actions) = state.next(after: event, delays: delays)
        if next != state { transitions[Int(next.rawValue)] += 1 }
        state = next
        return actions
    }

    /// Whether everything observable is equal.
    package static func == (one: ActivityTracker, other: ActivityTracker) -> Bool {
        one.state == other.state && one.count == other.count && one.isEnabled == other.isEnabled
            && one.delays == other.delays
            && one.transitions.indices.allSatisfy { one.transitions[$0] == other.transitions[$0] }
    }
}
