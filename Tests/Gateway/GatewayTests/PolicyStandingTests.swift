import PinfoldConfiguration
import PinfoldMetrics
import Testing

@testable import Gateway

@Suite("What is known of the policy")
struct PolicyStandingTests {
    private static let key = PolicyPublicKey(
        "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")!

    private func configuration(
        serial: Int64? = nil, expires: Int64 = 1_000,
        afterExpiry: PolicyConfiguration.AfterExpiry = .keep
    ) -> ConfigurationSnapshot {
        var snapshot = ConfigurationSnapshot(workers: .fixed(1), listeners: [])
        var policy = PolicyConfiguration()
        policy.url = ReportDestination(url: "https://policy.example/p?secret=1")
        policy.publicKeys = [Self.key]
        policy.intervalMilliseconds = 1_000
        policy.afterExpiry = afterExpiry
        snapshot.policy = policy
        snapshot.policyInForce = serial.map {
            PolicyInForce(serial: $0, expires: expires, keys: [Self.key])
        }
        return snapshot
    }

    @Test func `without a policy there is nothing to say`() {
        var standing = PolicyStanding()
        standing.adopt(ConfigurationSnapshot(workers: .fixed(1), listeners: []), at: 0)
        #expect(standing.alarms(at: 0) == [] && !standing.isMissing(at: 0))
        #expect(PolicyReport(standing, now: 0) == nil)
    }

    @Test func `before the first one it is missing`() {
        var standing = PolicyStanding()
        standing.adopt(configuration(), at: 0)
        #expect(standing.alarms(at: 0) == [.missing] && standing.isMissing(at: 0))
        standing.adopt(configuration(serial: 1), at: 5)
        standing.took(at: 5)
        #expect(standing.alarms(at: 5) == [] && !standing.isMissing(at: 5))
        #expect(standing.taken == 5 && standing.confirmed == 5)
    }

    @Test func `a refusal is an alarm until something better follows`() {
        var standing = PolicyStanding()
        standing.adopt(configuration(serial: 2), at: 0)
        let news = [
            standing.refuse(.older(serial: 1, known: 2), at: 1),
            // The same again is no news, another is.
            standing.refuse(.older(serial: 1, known: 2), at: 2),
            standing.refuse(.sameSerial(2), at: 3),
        ]
        #expect(news == [true, false, true])
        #expect(standing.alarms(at: 3) == [.refused])
        standing.confirm(at: 4)
        #expect(standing.alarms(at: 4) == [])
        #expect(standing.lastRefused?.refusal == .sameSerial(2))
        let isNews = standing.refuse(.sameSerial(2), at: 5)
        #expect(isNews)
        #expect(standing.refusals == ["older": 2, "same_serial": 2])
        #expect(standing.results[.refused] == 4)
    }

    @Test func `silence is an alarm after a while`() {
        var standing = PolicyStanding()
        standing.adopt(configuration(serial: 1), at: 10_000)
        #expect(standing.alarms(at: 1_000_000 - 1) == [])
        let news = [standing.fail("no route"), standing.fail("no route")]
        #expect(news == [true, false])
        #expect(standing.alarms(at: 15_000) == [])
        #expect(standing.alarms(at: 15_001) == [.unreachable])
        // A refusal is an answer.
        _ = standing.refuse(.sameSerial(1), at: 16_000)
        #expect(standing.alarms(at: 16_000) == [.refused])
        let isNews = standing.fail("no route")
        #expect(isNews)
        #expect(standing.alarms(at: 21_001) == [.refused, .unreachable])
    }

    @Test func `an expired one is missing only if it must not be used`() {
        for afterExpiry in PolicyConfiguration.AfterExpiry.allCases {
            var standing = PolicyStanding()
            standing.adopt(configuration(serial: 1, afterExpiry: afterExpiry), at: 0)
            #expect(!standing.isExpired(at: 999_999) && !standing.isMissing(at: 999_999))
            #expect(standing.alarms(at: 1_000_000) == [.expired])
            #expect(standing.isMissing(at: 1_000_000) == (afterExpiry == .refuse))
        }
    }

    @Test func `that it is not stored is told once`() {
        var standing = PolicyStanding()
        standing.adopt(configuration(serial: 1), at: 0)
        let news = [standing.store("full"), standing.store("full")]
        #expect(news == [true, false] && standing.alarms(at: 0) == [.unkept])
        let isOver = standing.store(nil)
        #expect(isOver && standing.alarms(at: 0) == [])
    }

    @Test func `another address is waited for anew`() {
        var standing = PolicyStanding()
        standing.adopt(configuration(serial: 1), at: 0)
        _ = standing.fail("no route")
        var other = configuration(serial: 1)
        other.policy?.url = ReportDestination(url: "https://other.example/")
        standing.adopt(other, at: 100_000)
        #expect(standing.failure == nil && standing.alarms(at: 100_000) == [])
    }

    @Test func `the report has no query`() throws {
        var standing = PolicyStanding()
        standing.adopt(configuration(), at: 0)
        let report = try #require(PolicyReport(standing, now: 0))
        let json = PolicyReport.shape.json(report)
        #expect("\(json)".contains(#""url":"https://policy.example/p""#))
        #expect(!"\(json)".contains("secret") && report.state == .missing)
    }

    @Test func `metrics are there before anything has happened`() {
        var none = ServiceMetrics()
        none.addPolicy(PolicyStanding(), now: 0)
        #expect(none.families.allSatisfy { $0.samples.isEmpty })
        var standing = PolicyStanding()
        standing.adopt(configuration(), at: 0)
        var some = ServiceMetrics()
        some.addPolicy(standing, now: 0)
        let counts = Dictionary(
            uniqueKeysWithValues: some.families.map { ($0.name.description, $0.samples.count) })
        #expect(
            counts == [
                "pinfold_policy_serial": 1, "pinfold_policy_expires_timestamp_seconds": 0,
                "pinfold_policy_confirmed_timestamp_seconds": 0, "pinfold_policy_fetches": 4,
                "pinfold_policy_refusals": 7, "pinfold_policy_alarm": 5, "pinfold_policy_info": 0,
            ])
    }
}

@Suite("When the policy is asked for")
struct PolicyScheduleTests {
    @Test func `it is asked for at once and then once in an interval`() {
        var schedule = PolicySchedule()
        #expect(schedule.next == nil)
        schedule.answered(at: 1_000, interval: 60_000, random: 0.5)
        #expect(schedule.next == 61_000)
        schedule.answered(at: 1_000, interval: 60_000, random: 0)
        #expect(schedule.next == 55_000)
        schedule.answered(at: 1_000, interval: 60_000, random: 1)
        #expect(schedule.next == 67_000)
    }

    @Test func `a failure is followed by longer and longer pauses up to the interval`() {
        var schedule = PolicySchedule()
        var pauses: [Int64] = []
        for _ in 0..<8 {
            schedule.failed(at: 0, interval: 60_000, asked: nil, random: 1)
            pauses.append(schedule.next ?? 0)
        }
        #expect(pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
        schedule.failed(at: 0, interval: 60_000, asked: nil, random: 0)
        #expect(schedule.next == 30_000)
        schedule.failed(at: 0, interval: 60_000, asked: 45_000, random: 0)
        #expect(schedule.next == 45_000)
        schedule.failed(at: 0, interval: 60_000, asked: .max, random: 0)
        #expect(schedule.next == 60_000)
        schedule.answered(at: 0, interval: 60_000, random: 0.5)
        schedule.failed(at: 0, interval: 60_000, asked: nil, random: 1)
        #expect(schedule.next == 1_000)
    }

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", true), ("\"\"", true), ("a", false), ("\"", false),
        ("", false), ("w/\"a\"", false), ("\"a\"b\"", false), ("\"a b\"", false),
        ("\"a\r\n\"", false),
    ])
    func `only a tag is sent back`(_ text: String, _ isTag: Bool) {
        #expect(PolicyFetch.isTag(Array(text.utf8)) == isTag)
    }
}
