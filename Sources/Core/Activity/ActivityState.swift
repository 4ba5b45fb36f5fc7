/// The four states of the activity indicator.
///
/// The indicator answers one question: should "traffic is going on" be shown? It is slow to show
/// and slow to hide, so that short requests do not flash and gaps between requests do not flicker.
///
///                     activity / start activation timer
///      ┌───────────┐ ─────────────────────────────────► ┌───────────────┐
///      │ notActive │                                    │ delayingStart │──┐ activity,
///      └───────────┘ ◄───────────────────────────────── └───────────────┘◄─┘ no activity: ignored
///            ▲            timer, activity is gone               │
///            │                                                  │ timer, activity is still there
///            │ timer / hide                                     │ / show
///            │                                                  ▼
///      ┌─────────────┐ ◄─────────────────────────────── ┌───────────────┐
///      │ delayingEnd │   no activity / start completion │    active     │
///      └─────────────┘ ───────────────────────────────► └───────────────┘
///                          activity / cancel timer
///
///      reset (the indicator is disabled), from every state: to notActive, a running timer is
///      cancelled, and what was shown is hidden.
///
/// The indicator is visible in `active` and in `delayingEnd`.
package enum ActivityState: UInt8, Sendable, Equatable, CaseIterable {
    /// Nothing is going on, nothing is shown.
    case notActive
    /// Something began; it is shown if it is still going on when the activation delay is over.
    case delayingStart
    /// Something is going on and is shown.
    case active
    /// All has ended; it is hidden unless something begins before the completion delay is over.
    case delayingEnd

    /// The state's name as a metric's label value and a log's word: `not_active`, `delaying_start`,
    /// `active`, `delaying_end`.
    package var label: StaticString {
        switch self {
        case .notActive: "not_active"
        case .delayingStart: "delaying_start"
        case .active: "active"
        case .delayingEnd: "delaying_end"
        }
    }

    /// Whether the indicator is shown in this state.
    package var isVisible: Bool {
        switch self {
        case .notActive, .delayingStart: false
        case .active, .delayingEnd: true
        }
    }
}

/// What happens to the state machine, already reduced to what its transitions depend on.
package enum ActivityEvent: Sendable, Equatable {
    /// The count changed and is above zero.
    case activity
    /// The count changed and is zero.
    case noActivity
    /// The timer that an earlier transition started is over; `busy` tells whether the count is
    /// above zero at this moment.
    case timer(busy: Bool)
    /// The indicator was disabled.
    case reset
}

/// What the owner of the timer has to do after a transition.
package enum ActivityTimerAction: Sendable, Equatable {
    /// The timer stays as it is.
    case none
    /// Start the timer: one shot, after so many milliseconds (0: at the loop's next turn).
    case start(milliseconds: Int64)
    /// Stop the running timer; it must not be reported any more.
    case cancel
}

/// The result of a transition: at most one thing to do with the timer and one with the display.
package struct ActivityActions: Sendable, Equatable {
    /// What to do with the one timer that the machine uses.
    package var timer: ActivityTimerAction
    /// The new visibility if it changed, `nil` if it did not.
    package var visibilityChanged: Bool?

    /// Nothing to do, unless an argument says otherwise.
    package init(timer: ActivityTimerAction = .none, visibilityChanged: Bool? = nil) {
        self.timer = timer
        self.visibilityChanged = visibilityChanged
    }

    /// Nothing to do.
    package static let none = ActivityActions()
}

/// How slow the indicator is to show and to hide.
package struct ActivityDelays: Sendable, Equatable {
    /// Milliseconds that activity must last before it is shown.
    package var activationMilliseconds: Int64
    /// Milliseconds without activity before it is hidden.
    package var completionMilliseconds: Int64

    /// Both delays in milliseconds; negative values count as 0.
    /// The defaults are AFNetworking's: 1 s and 0.17 s.
    package init(activationMilliseconds: Int64 = 1000, completionMilliseconds: Int64 = 170) {
        self.activationMilliseconds = max(0, activationMilliseconds)
        self.completionMilliseconds = max(0, completionMilliseconds)
    }
}

extension ActivityState {
    /// The transition function: the next state and what has to be done.
    ///
    /// Pairs that change nothing say so one by one: a timer that fires where none runs was
    /// cancelled too late to be stopped, and is harmless.
    package func next(
        after event: ActivityEvent, delays: ActivityDelays
    ) -> (state: ActivityState, actions: ActivityActions) {
        switch (self, event) {
        case (.notActive, .activity):
            let timer = ActivityTimerAction.start(milliseconds: delays.activationMilliseconds)
            return (.delayingStart, ActivityActions(timer: timer))
        case (.notActive, .noActivity), (.notActive, .timer), (.notActive, .reset):
            return (.notActive, .none)

        case (.delayingStart, .activity), (.delayingStart, .noActivity):
            return (.delayingStart, .none)
        case (.delayingStart, .timer(busy: true)):
            return (.active, ActivityActions(visibilityChanged: true))
        case (.delayingStart, .timer(busy: false)):
            return (.notActive, .none)
        case (.delayingStart, .reset):
            return (.notActive, ActivityActions(timer: .cancel))

        case (.active, .activity), (.active, .timer):
            return (.active, .none)
        case (.active, .noActivity):
            let timer = ActivityTimerAction.start(milliseconds: delays.completionMilliseconds)
            return (.delayingEnd, ActivityActions(timer: timer))
        case (.active, .reset):
            return (.notActive, ActivityActions(visibilityChanged: false))

        case (.delayingEnd, .activity):
            return (.active, ActivityActions(timer: .cancel))
        case (.delayingEnd, .noActivity):
            return (.delayingEnd, .none)
        case (.delayingEnd, .timer(busy: true)):
            // Activity would have left this state; kept for the case that it was not reported yet.
            return (.active, .none)
        case (.delayingEnd, .timer(busy: false)):
            return (.notActive, ActivityActions(visibilityChanged: false))
        case (.delayingEnd, .reset):
            return (.notActive, ActivityActions(timer: .cancel, visibilityChanged: false))
        }
    }
}
