import Testing

@testable import Activity

/// A display and a timer that perform the actions and record them.
struct Display {
    var indicator: ActivityTracker
    var isTimerRunning = false
    var changes: [Bool] = []

    init(_ indicator: ActivityTracker = ActivityTracker()) {
        self.indicator = indicator
    }

    mutating func perform(_ body: (inout ActivityTracker) -> ActivityActions) {
        let actions = body(&indicator)
        switch actions.timer {
        case .none: break
        case .start:
            #expect(!isTimerRunning, "a timer was started while one was running")
            isTimerRunning = true
        case .cancel:
            #expect(isTimerRunning, "a timer was cancelled while none was running")
            isTimerRunning = false
        }
        if let visible = actions.visibilityChanged { changes.append(visible) }
    }

    mutating func fire() {
        #expect(isTimerRunning)
        isTimerRunning = false
        perform { $0.timerFired() }
    }
}

@Suite("Activity indicator: the rules in words")
struct ActivityTrackerTests {
    @Test func `a request shorter than the activation delay is never shown`() {
        var display = Display()
        display.perform { $0.begin() }
        display.perform { $0.end() }
        display.fire()
        #expect(display.changes == [])
        #expect(display.indicator.state == .notActive)
    }

    @Test func `a request longer than the activation delay is shown, and hidden after its end`() {
        var display = Display()
        display.perform { $0.begin() }
        display.fire()
        #expect(display.changes == [true])
        display.perform { $0.end() }
        #expect(display.changes == [true])
        display.fire()
        #expect(display.changes == [true, false])
    }

    @Test func `two overlapping requests show and hide once`() {
        var display = Display()
        display.perform { $0.begin() }
        display.fire()
        display.perform { $0.begin() }
        display.perform { $0.end() }
        display.perform { $0.end() }
        display.fire()
        #expect(display.changes == [true, false])
    }

    @Test func `a request within the completion delay keeps it shown`() {
        var display = Display()
        display.perform { $0.begin() }
        display.fire()
        display.perform { $0.end() }
        display.perform { $0.begin() }
        #expect(!display.isTimerRunning)
        #expect(display.indicator.state == .active)
        display.perform { $0.end() }
        display.fire()
        #expect(display.changes == [true, false])
    }

    @Test func `another request in place of the first counts when the activation delay is over`() {
        var display = Display()
        display.perform { $0.begin() }
        display.perform { $0.end() }
        display.perform { $0.begin() }
        display.fire()
        #expect(display.changes == [true])
    }

    @Test func `the count never goes below zero`() {
        var display = Display()
        display.perform { $0.end() }
        #expect(display.indicator.count == 0)
        display.perform { $0.begin() }
        #expect(display.indicator.count == 1)
        #expect(display.indicator.state == .delayingStart)
        display.perform { $0.observe(count: -5) }
        #expect(display.indicator.count == 0)
    }

    @Test func `an observed count acts when it changes and not otherwise`() {
        var indicator = ActivityTracker()
        #expect(indicator.observe(count: 0) == .none)
        #expect(indicator.observe(count: 3).timer == .start(milliseconds: 1000))
        #expect(indicator.observe(count: 3) == .none)
        #expect(indicator.timerFired().visibilityChanged == true)
        #expect(indicator.observe(count: 1) == .none)
        #expect(indicator.observe(count: 0).timer == .start(milliseconds: 170))
    }

    @Test func `configured delays are those of the timers`() {
        let delays = ActivityDelays(activationMilliseconds: 5, completionMilliseconds: 7)
        var indicator = ActivityTracker(delays: delays)
        #expect(indicator.begin().timer == .start(milliseconds: 5))
        _ = indicator.timerFired()
        #expect(indicator.end().timer == .start(milliseconds: 7))
    }

    @Test(arguments: 0..<4)
    func `disabling resets from every state`(steps: Int) {
        var display = Display()
        if steps > 0 { display.perform { $0.begin() } }
        if steps > 1 { display.fire() }
        if steps > 2 { display.perform { $0.end() } }
        let wasVisible = display.indicator.isVisible
        display.perform { $0.setEnabled(false) }
        #expect(display.indicator.state == .notActive)
        #expect(!display.isTimerRunning)
        #expect(display.changes == (wasVisible ? [true, false] : []))
    }

    @Test func `while disabled, requests have no effect, but are counted for the time after`() {
        var display = Display(ActivityTracker(isEnabled: false))
        display.perform { $0.begin() }
        display.perform { $0.begin() }
        display.perform { $0.end() }
        #expect(display.indicator.state == .notActive)
        display.perform { $0.setEnabled(true) }
        #expect(display.indicator.count == 1)
        #expect(display.indicator.state == .delayingStart)
        #expect(display.isTimerRunning)
    }

    @Test func `enabling or disabling twice does nothing the second time`() {
        var indicator = ActivityTracker()
        #expect(indicator.setEnabled(true) == .none)
        _ = indicator.begin()
        #expect(indicator.setEnabled(false).timer == .cancel)
        #expect(indicator.setEnabled(false) == .none)
    }

    @Test func `transitions count the states entered`() {
        var display = Display()
        display.perform { $0.begin() }
        display.fire()
        display.perform { $0.end() }
        display.perform { $0.begin() }
        display.perform { $0.end() }
        display.fire()
        let counts = ActivityState.allCases.map {
            display.indicator.transitions[Int($0.rawValue)]
        }
        #expect(counts == [1, 1, 2, 2])
    }

    @Test(arguments: 0..<20)
    func `whatever happens, timers and visibility stay consistent`(seed: UInt64) {
        var display = Display()
        var random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        for _ in 0..<2000 {
            random ^= random << 13
            random ^= random >> 7
            random ^= random << 17
            switch random % 6 {
            case 0, 1: display.perform { $0.begin() }
            case 2, 3: display.perform { $0.end() }
            case 4: if display.isTimerRunning { display.fire() }
            default:
                let enabled = random & 64 == 0
                display.perform { $0.setEnabled(enabled) }
            }
            let state = display.indicator.state
            #expect(display.isTimerRunning == (state == .delayingStart || state == .delayingEnd))
            #expect((display.changes.last ?? false) == display.indicator.isVisible)
            #expect(display.indicator.count >= 0)
        }
        // Shown and hidden alternate.
        #expect(zip(display.changes, display.changes.dropFirst()).allSatisfy { $0 != $1 })
    }
}
