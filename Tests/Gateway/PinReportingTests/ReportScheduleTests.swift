import Testing

@testable import PinReporting

@Suite("Whose report is delivered next")
struct ReportScheduleTests {
    private let routes = ["p": "one", "q": "other", "r": "one"]

    private func item(_ name: String, _ pinset: String, attempts: Int = 0) -> ReportSpool.Item {
        ReportSpool.Item(
            name: name, pinset: pinset, expires: 0, bytes: 2, attempts: attempts)
    }

    @Test func `is the oldest of those that were tried least`() {
        var schedule = ReportSchedule()
        let items = [item("1", "p", attempts: 1), item("2", "r"), item("3", "p")]
        #expect(schedule.begin(items, routes, now: 0)?.item.name == "2")
        schedule.end("one")
        #expect(schedule.begin([items[0]], routes, now: 0)?.item.name == "1")
        schedule.end("one")
        #expect(schedule.begin([item("4", "of nobody")], routes, now: 0) == nil)
    }

    @Test func `is one of each destination at a time`() {
        var schedule = ReportSchedule()
        let items = [item("1", "p"), item("2", "p"), item("3", "q")]
        #expect(schedule.begin(items, routes, now: 0)?.item.name == "1")
        #expect(schedule.begin(items, routes, now: 0)?.item.name == "3")
        #expect(schedule.begin(items, routes, now: 0) == nil)
        schedule.end("other")
        #expect(schedule.begin(items, routes, now: 0)?.item.name == "3")
    }

    @Test func `is not one whose destination a reload has changed while it is under way`() {
        var schedule = ReportSchedule()
        var items = [item("1", "p")]
        #expect(schedule.begin(items, routes, now: 0)?.destination == "one")
        items[0].isUnderWay = true
        #expect(schedule.begin(items, ["p": "another"], now: 0) == nil)
    }

    @Test func `is for the destination whose last turn was longest ago`() {
        var schedule = ReportSchedule()
        // All of the first one's are older.
        let items = (0..<9).map { item("\($0)", "p") } + [item("last", "q")]
        #expect(schedule.begin(items, routes, now: 0)?.destination == "one")
        schedule.end("one")
        #expect(schedule.begin(items, routes, now: 0)?.item.name == "last")
        schedule.end("other")
        #expect(schedule.begin(items, routes, now: 0)?.destination == "one")
    }

    @Test func `is given to no delivery while the maximum is in progress`() {
        var schedule = ReportSchedule()
        let names = (0...ReportSchedule.maximumUnderWay).map { "p\($0)" }
        let routes = Dictionary(uniqueKeysWithValues: names.map { ($0, "to \($0)") })
        let items = names.map { item($0, $0) }
        for name in names.dropLast() {
            #expect(schedule.begin(items, routes, now: 0)?.item.name == name)
        }
        #expect(schedule.begin(items, routes, now: 0) == nil)
        schedule.end("to p0")
        // One that has waited precedes one that has had its turn.
        #expect(schedule.begin(items, routes, now: 0)?.item.name == names.last)
    }

    @Test func `is for no destination that has to wait, and returns until when`() {
        var schedule = ReportSchedule()
        let items = [item("1", "p"), item("2", "q")]
        #expect(schedule.begin(items, routes, now: 0)?.destination == "one")
        #expect(schedule.failed("one", now: 0, asked: nil) == true)
        schedule.end("one")
        #expect(schedule.nextAttempt(items, routes, now: 10) == 1000)
        #expect(schedule.begin(items, routes, now: 10)?.destination == "other")
        #expect(schedule.begin(items, routes, now: 999) == nil)
        // It waits for the end of what is under way, not for a time that has passed.
        #expect(schedule.nextAttempt(items, routes, now: 1000) == nil)
        #expect(schedule.begin(items, routes, now: 1000)?.destination == "one")
        #expect(schedule.answered("one") == true)
        #expect(schedule.answered("one") == false)
    }
}
