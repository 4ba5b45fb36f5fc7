import Testing

@testable import Activity

/// A row of the transition table: a state, an event, and what must follow.
struct ActivityRow: Sendable, CustomTestStringConvertible {
    var state: ActivityState
    var event: ActivityEvent
    var next: ActivityState
    var timer: ActivityTimerAction = .none
    var visible: Bool?

    var testDescription: String { "\(state) + \(event)" }
}

@Suite("Activity indicator: the transition table")
struct ActivityStateTests {
    static let events: [ActivityEvent] = [
        .activity, .noActivity, .timer(busy: true), .timer(busy: false), .reset,
    ]

    static let table = [
        ActivityRow(
            state: .notActive, event: .activity, next: .delayingStart,
            timer: .start(milliseconds: 1000)),
        ActivityRow(state: .notActive, event: .noActivity, next: .notActive),
        ActivityRow(state: .notActive, event: .timer(busy: true), next: .notActive),
        ActivityRow(state: .notActive, event: .timer(busy: false), next: .notActive),
        ActivityRow(state: .notActive, event: .reset, next: .notActive),

        ActivityRow(state: .delayingStart, event: .activity, next: .delayingStart),
        ActivityRow(state: .delayingStart, event: .noActivity, next: .delayingStart),
        ActivityRow(
            state: .delayingStart, event: .timer(busy: true), next: .active, visible: true),
        ActivityRow(state: .delayingStart, event: .timer(busy: false), next: .notActive),
        ActivityRow(state: .delayingStart, event: .reset, next: .notActive, timer: .cancel),

        ActivityRow(state: .active, event: .activity, next: .active),
        ActivityRow(
            state: .active, event: .noActivity, next: .delayingEnd,
            timer: .start(milliseconds: 170)),
        ActivityRow(state: .active, event: .timer(busy: true), next: .active),
        ActivityRow(state: .active, event: .timer(busy: false), next: .active),
        ActivityRow(state: .active, event: .reset, next: .notActive, visible: false),

        ActivityRow(state: .delayingEnd, event: .activity, next: .active, timer: .cancel),
        ActivityRow(state: .delayingEnd, event: .noActivity, next: .delayingEnd),
        ActivityRow(state: .delayingEnd, event: .timer(busy: true), next: .active),
        ActivityRow(
            state: .delayingEnd, event: .timer(busy: false), next: .notActive, visible: false),
        ActivityRow(
            state: .delayingEnd, event: .reset, next: .notActive, timer: .cancel, visible: false),
    ]

    @Test(arguments: table)
    func `every state answers every event as in the table`(row: ActivityRow) {
        let (next, actions) = row.state.next(after: row.event, delays: ActivityDelays())
        #expect(next == row.next)
        #expect(actions == ActivityActions(timer: row.timer, visibilityChanged: row.visible))
    }

    @Test func `the table names every pair once`() {
        for state in ActivityState.allCases {
            for event in Self.events {
                #expect(Self.table.count { $0.state == state && $0.event == event } == 1)
            }
        }
        #expect(Self.table.count == ActivityState.allCases.count * Self.events.count)
    }

    @Test(arguments: table)
    func `the visibility is reported exactly when it changes`(row: ActivityRow) {
        let (next, actions) = row.state.next(after: row.event, delays: ActivityDelays())
        let expected = next.isVisible == row.state.isVisible ? nil : next.isVisible
        #expect(actions.visibilityChanged == expected)
    }

    @Test func `the labels are distinct`() {
        let labels = ActivityState.allCases.map { String(describing: $0.label) }
        #expect(labels == ["not_active", "delaying_start", "active", "delaying_end"])
    }

    static let delayRows: [(Int64, Int64)] = [
        (-1, 0), (0, 0), (1, 1), (.min, 0), (.max, .max),
    ]

    @Test(arguments: delayRows)
    func `a negative delay counts as none`(given: Int64, effective: Int64) {
        let delays = ActivityDelays(
            activationMilliseconds: given, completionMilliseconds: given)
        #expect(delays.activationMilliseconds == effective)
        #expect(delays.completionMilliseconds == effective)
    }
}
