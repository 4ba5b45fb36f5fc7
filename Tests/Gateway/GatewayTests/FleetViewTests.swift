import Testing

@testable import Gateway
@testable import SharedCacheLevel

@Suite("All gateways of a fleet at a glance")
struct FleetViewTests {
    private static let day: Int64 = 86_400
    private static let now: Int64 = 100 * 86_400
    private static let hash = String(repeating: "ab", count: 32)

    private func member(
        _ name: String, age: Int64 = 0, isCurrent: Bool = true,
        _ report: FleetReport? = FleetReport()
    ) -> FleetMember {
        FleetMember(
            name: Array(name.utf8), instance: Array("0a".utf8), age: age, isCurrent: isCurrent,
            isSelf: false, report: report?.encoded() ?? [])
    }

    private func view(_ members: [FleetMember]) -> FleetView {
        FleetView(members, name: "a", now: Self.now)
    }

    private func report(serial: Int64?, hash: String = hash) -> FleetReport {
        var report = FleetReport()
        report.policy = FleetReport.Policy(serial: serial, hash: serial == nil ? "" : hash)
        return report
    }

    @Test func `gateways that have the same policy agree`() {
        let same = view(["b", "a"].map { member($0, report(serial: 7)) })
        #expect(same.agrees && same.policies.map(\.gateways) == [["a", "b"]])
        let other = String(repeating: "cd", count: 32)
        let split = view([
            member("a", report(serial: 7)), member("b", report(serial: 7)),
            member("c", report(serial: 8)), member("d", report(serial: 7, hash: other)),
            member("e", report(serial: nil)),
        ])
        #expect(!split.agrees)
        #expect(split.policies.map(\.gateways) == [["a", "b"], ["c"], ["d"], ["e"]])
    }

    @Test func `a gateway that is away, or says nothing, does not disagree`() {
        let view = view([
            member("a", report(serial: 7)),
            member("b", age: FleetView.awayMilliseconds + 1, isCurrent: false, report(serial: 6)),
            member("c", nil),
        ])
        #expect(view.agrees && view.count == 2 && view.behind == 0)
        #expect(view.gateways.map(\.isAway) == [false, true, false])
        #expect(view.gateways[2].report == .failure(.missing))
    }

    @Test func `those that have yet to carry out purges are counted`() {
        let view = view([member("a"), member("b", isCurrent: false), member("c", isCurrent: false)])
        #expect(view.behind == 2)
    }

    @Test func `hosts are in the order of how many gateways see something wrong`() {
        func seeing(_ hosts: [(String, Int, Int64)]) -> FleetReport {
            var report = FleetReport()
            report.hosts.worst = hosts.map {
                FleetReport.Host(name: $0.0, notReachable: $0.1, failures: $0.2)
            }
            return report
        }
        let view = view([
            member("a", seeing([("one", 1, 0), ("both", 1, 0), ("fails", 0, 9)])),
            member("b", seeing([("both", 2, 0), ("well", 0, 0)])),
        ])
        #expect(view.hosts.map(\.name) == ["both", "one", "fails", "well"])
        #expect(view.hosts[0].seen.map(\.gateway) == ["a", "b"])
    }

    @Test func `the hits of all gateways are added up`() {
        var report = FleetReport()
        report.cache = FleetReport.Cache(memoryHits: 1, diskHits: 2, sharedHits: 3, lookups: 9)
        let sum = view([member("a", report), member("b", report)]).cache
        #expect(
            sum == FleetReport.Cache(memoryHits: 2, diskHits: 4, sharedHits: 6, lookups: 18))
    }

    // MARK: Pins

    private func idle(
        _ pins: [(String, since: Int64, matched: Int64?)], evaluated: Int64? = now,
        isComplete: Bool = true
    ) -> FleetReport {
        var report = FleetReport()
        report.pinsets = [
            FleetReport.Pinset(
                name: "p", evaluated: evaluated, isComplete: isComplete,
                idle: pins.map { FleetReport.Pin(text: $0.0, since: $0.since, matched: $0.matched) }
            )
        ]
        return report
    }

    @Test func `a pin is named that nobody has seen for a week`() {
        let long = Self.now - 10 * Self.day
        let view = view([
            member("a", idle([("k", since: long, matched: nil), ("m", since: 0, matched: long)])),
            // Began to watch yesterday, and has not seen it either.
            member(
                "b",
                idle([
                    ("k", since: Self.now - Self.day, matched: nil),
                    ("m", since: 0, matched: long - Self.day),
                ])),
            // Has other pinsets.
            member("c"),
        ])
        #expect(
            view.unseenPins == [
                .init(pinset: "p", pin: "k", since: long, hasMatched: false, gateways: 2),
                .init(pinset: "p", pin: "m", since: long, hasMatched: true, gateways: 2),
            ])
    }

    @Test func `a pin is not named that somebody may have seen`() {
        let long = Self.now - 10 * Self.day
        let unseen = idle([("k", since: long, matched: nil)])
        // Another gateway does not list it: it has seen it, or has no room for it.
        #expect(view([member("a", unseen), member("b", idle([]))]).unseenPins == [])
        #expect(
            view([member("a", unseen), member("b", idle([], isComplete: false))]).unseenPins == [])
        // Nothing is known of another gateway, or not of all its pinsets.
        #expect(view([member("a", unseen), member("b", nil)]).unseenPins == [])
        var cut = FleetReport()
        cut.hasAllPinsets = false
        #expect(view([member("a", unseen), member("b", cut)]).unseenPins == [])
        // It was watched for less than a week, or no server was judged since.
        let young = idle([("k", since: Self.now - 6 * Self.day, matched: nil)])
        #expect(view([member("a", young)]).unseenPins == [])
        let quiet = idle([("k", since: long, matched: nil)], evaluated: long)
        #expect(view([member("a", quiet)]).unseenPins == [])
        #expect(view([member("a", unseen)]).unseenPins.count == 1)
    }

    @Test func `names of other gateways are bounded and cannot change a terminal`() {
        let view = view([member("\u{1B}[31m" + String(repeating: "n", count: 500))])
        #expect(view.gateways[0].name.hasPrefix("?[31mnnn"))
        #expect(view.gateways[0].name.utf8.count <= 103)
    }

    @Test func `the whole view has the shape that is described`() {
        let view = view([member("a", FleetReportTests.sample()), member("b", nil)])
        let json = FleetView.shape.json(view)
        #expect(json["agree"] == .boolean(true))
        guard case .array(let gateways)? = json["gateways"] else {
            Issue.record("there are no gateways")
            return
        }
        #expect(gateways.count == 2 && gateways[0]["policy"]?["serial"] == .number(7))
        #expect(gateways[1]["problem"] == .string("its report is not there yet"))
        #expect(gateways[1]["version"] == nil)
    }
}

@Suite("Which gateways take a policy first")
struct FleetShareTests {
    @Test func `about a tenth of all gateways are the first tenth`() {
        for form in ["gw-", "gateway-eu-west-", "10.0.0."] {
            let first = (0..<1_000).count { FleetShare.has("\(form)\($0)".utf8, within: 10) }
            #expect(80...120 ~= first, "\(form): \(first)")
        }
    }

    @Test func `a larger share contains the smaller one, and all of them everybody`() {
        for number in 0..<1_000 {
            let name = Array("gw-\(number)".utf8)
            let least = FleetShare.least(for: name)
            #expect(1...100 ~= least)
            #expect(!FleetShare.has(name, within: least - 1))
            #expect(FleetShare.has(name, within: least))
            #expect(FleetShare.has(name, within: 100))
        }
    }

    @Test func `the first gateways are the same ones in every version`() {
        let found = (0..<6).map { FleetShare.least(for: "gateway-\($0)".utf8) }
        #expect(found == [97, 88, 65, 48, 55, 30])
    }

    @Test(
        arguments: [
            ("10", 10), ("10%", 10), ("100 %", 100), ("1", 1), ("0", nil), ("101", nil), ("", nil),
            ("%", nil), ("1.5%", nil), ("-5", nil), ("+5", nil), ("5%%", nil), ("٣", nil),
        ] as [(String, Int?)])
    func `shares are read`(text: String, percent: Int?) {
        #expect(FleetShare.percent(text) == percent)
    }
}

@Suite("A policy that came by way of the engine")
struct PolicyOffersTests {
    @Test func `each one is judged once, and again if what it is judged by is another`() {
        let offers = PolicyOffers()
        #expect(offers.take() == nil)
        offers.judgeAgain()
        #expect(offers.take() == nil)
        offers.put([1], percent: 10)
        offers.put([2], percent: 20)
        #expect(offers.take() == PolicyOffers.Offer(envelope: [2], percent: 20))
        #expect(offers.take() == nil && offers.last?.envelope == [2])
        offers.judgeAgain()
        #expect(offers.take()?.envelope == [2] && offers.take() == nil)
    }
}
