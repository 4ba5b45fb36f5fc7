/// The four states of the activity indicator.
///
/// The indicator answers one question: should "there is traffic" be shown? It is shown and hidden
/// with a delay, so that it does not flash for short requests or flicker between requests.
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
    /// There is no activity, and nothing is shown.
    case notActive
    /// Activity began; it is shown if it continues until the end of the activation delay.
    case delayingStart
    /// There is activity, and it is shown.
    case active
    /// Activity has ended; it is hidden unless there is new activity before the end of the
    /// completion delay.
    case delayingEnd

    /// The state's name in metric labels and logs: `not_active`, `delaying_start`, `active`,
    /// `delaying_end`.
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

/// The state machine's events, reduced to what its transitions depend on.
package enum ActivityEvent: Sendable, Equatable {
    /// The count changed and is above zero.
    case activity
    /// The count changed and is zero.
    case noActivity
    /// The timer that an earlier transition started has fired; `busy` is true if the count is above
    /// zero at this moment.
    case timer(busy: Bool)
    /// The indicator was disabled.
    case reset
}

/// What the owner of the timer must do after a transition.
package enum ActivityTimerAction: Sendable, Equatable {
    /// The timer stays as it is.
    case none
    /// Start the timer: once, after this many milliseconds (0: in the next iteration of the loop).
    case start(milliseconds: Int64)
    /// Stop the running timer; it must not be reported any more.
    case cancel
}

/// The result of a transition: at most one action for the timer and one for the display.
package struct ActivityActions: Sendable, Equatable {
    /// The action for the machine's single timer.
    package var timer: ActivityTimerAction
    /// The new visibility if it changed, `nil` if it did not.
    package var visibilityChanged: Bool?

    /// Creates actions; the defaults do nothing.
    package init(timer: ActivityTimerAction = .none, visibilityChanged: Bool? = nil) {
        self.timer = timer
        self.visibilityChanged = visibilityChanged
    }

    /// No actions.
    package static let none = ActivityActions()
}

/// The delays before the indicator is shown and hidden.
package struct ActivityDelays: Sendable, Equatable {
    /// How long activity must last before it is shown, in milliseconds.
    package var activationMilliseconds: Int64
    /// How long there must be no activity before it is hidden, in milliseconds.
    package var completionMilliseconds: Int64

    /// Creates delays in milliseconds; negative values count as 0. The defaults are AFNetworking's:
    /// 1 s and 0.17 s.
    package init(activationMilliseconds: Int64 = 1000, completionMilliseconds: Int64 = 170) {
        self.activationMilliseconds = max(0, activationMilliseconds)
        self.completionMilliseconds = max(0, completionMilliseconds)
    }
}

extension ActivityState {
    /// The transition function: the next state and the actions.
    ///
    /// Pairs that change nothing are listed one by one: a timer that fires where none runs was
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
            // Activity would have left this state; handled in case it has not been reported yet.
            return (.active, .none)
        case (.delayingEnd, .timer(busy: false)):
            return (.notActive, ActivityActions(visibilityChanged: false))
        case (.delayingEnd, .reset):
            return (.notActive, ActivityActions(timer: .cancel, visibilityChanged: false))
        }
    }
}
