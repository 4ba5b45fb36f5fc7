import Authentication
import EngineTestSupport
import PinfoldConfiguration
import PinfoldMetrics
import Testing
import Trust

@testable import PinfoldEngine

@Suite("Counts by group")
struct GroupCountersTests {
    private static let none = "none"
    private static let other = "other"

    /// - Parameters:
    ///   - named: the groups that a rule names.
    ///   - filed: lines of the file of groups.
    private func configuration(
        named: [String] = [], filed: [String] = [], tokens: [String] = [], asks: Bool = true
    ) throws -> ConfigurationSnapshot {
        var configuration = try testConfiguration(
            """
            listeners: [{ name: proxy, address: "127.0.0.1:8080" }]
            """)
        if asks { configuration.listeners[0].authentication = [.basic, .bearer] }
        configuration.authentication.groups = try GroupFile(
            path: "/groups", content: Array(filed.joined(separator: "\n").utf8))
        configuration.authentication.tokens = try TokenFile(
            path: "/tokens", content: Array(tokens.joined(separator: "\n").utf8))
        if !named.isEmpty {
            var rule = AccessRule()
            (rule.name, rule.groups) = ("r", named)
            configuration.access.rules = [rule]
        }
        return configuration
    }

    private func member(of groups: String...) -> Identity {
        Identity(user: "ann", groups: groups, by: .certificate(CertificateNames()))
    }

    private func token(_ name: String, _ digit: Character, _ groups: String) -> String {
        "\(name):\(String(repeating: digit, count: 64)):\(groups)"
    }

    /// An exchange as it is counted when it has ended.
    private let record: ExchangeRecord = {
        let route = RouteIndex(listener: .other, host: .other)
        return ExchangeRecord(
            route: route, method: .get, status: 200, cache: .miss, durationMicroseconds: 1,
            requestBytes: 0, responseBytes: 7)
    }()

    private func exchanges(_ labels: RouteLabels) -> [String: UInt64] {
        Dictionary(
            uniqueKeysWithValues: labels.countedGroups.map { ($0.name, $0.counts[.exchanges]) })
    }

    @Test func `those that rules name come first, then those of files`() throws {
        let made = try configuration(
            named: ["z", "jwt:x", "b"], filed: ["c: ann", "b: bea", "a: ann"],
            tokens: [token("ci", "1", "build,a")])
        #expect(
            GroupCounters.names(for: made)
                == [Self.none, Self.other, "z", "jwt:x", "b", "a", "build", "c"])
    }

    @Test func `where nobody is asked there are no counts`() throws {
        let made = try configuration(named: ["a"], filed: ["b: ann"], asks: false)
        #expect(GroupCounters.names(for: made) == [])
        #expect(GroupCounters(made, RouteLabels()) == nil)
        #expect(try testPolicy(made).groups == nil)
    }

    @Test func `a member of several groups counts in each`() throws {
        let labels = RouteLabels()
        let made = try configuration(filed: ["a: ann", "b: ann", "c: bea"])
        let groups = try #require(GroupCounters(made, labels))
        labels.activate(made)
        let recent = RecentMembers()
        recent.count(record, of: member(of: "a", "b"), by: groups)
        recent.count(record, of: member(of: "b"), by: groups)
        recent.count(record, of: member(), by: groups)
        #expect(exchanges(labels) == ["a": 1, "b": 2, "c": 0, Self.none: 1, Self.other: 0])
        let ofB = labels.countedGroups.first { $0.name == "b" }?.counts
        #expect(GroupEvent.allCases.map { ofB?[$0] } == [2, 0, 14])
    }

    @Test func `groups that nobody names count together, and each exchange once`() throws {
        let labels = RouteLabels()
        let made = try configuration(filed: ["a: ann", "none: ann", "other: ann"])
        let groups = try #require(GroupCounters(made, labels))
        labels.activate(made)
        let recent = RecentMembers()
        recent.count(record, of: member(of: "jwt:x", "jwt:y", "a"), by: groups)
        recent.count(record, of: member(of: "jwt:z"), by: groups)
        // Whose names are taken.
        recent.count(record, of: member(of: "none"), by: groups)
        recent.count(record, of: member(of: "other", "none"), by: groups)
        #expect(exchanges(labels) == ["a": 1, Self.none: 0, Self.other: 4])
    }

    @Test func `more than the limit count with the rest, those of rules last of all`() throws {
        let filed = (0..<GroupCounters.limit).map { "a\(1000 + $0): ann" }
        let made = try configuration(named: ["z"], filed: filed)
        let names = GroupCounters.names(for: made)
        #expect(names.count == GroupCounters.limit + 2)
        #expect(names.dropFirst(2).first == "z")
        let labels = RouteLabels()
        let groups = try #require(GroupCounters(made, labels))
        labels.activate(made)
        let (first, last) = ("a1000", "a\(999 + GroupCounters.limit)")
        let recent = RecentMembers()
        recent.count(record, of: member(of: "z", first, last), by: groups)
        let counted = exchanges(labels)
        #expect(counted.count == GroupCounters.limit + 2)
        #expect(
            [counted["z"], counted[first], counted[last], counted[Self.other]] == [1, 1, nil, 1])
    }

    @Test func `a reload keeps the counts of groups that stay`() throws {
        let labels = RouteLabels()
        let first = try configuration(filed: ["a: ann", "b: ann"])
        let before = try testPolicy(first, labels: labels)
        labels.activate(first)
        let ann = member(of: "a", "b", "c")
        let recent = RecentMembers()
        recent.count(record, of: ann, by: try #require(before.groups))
        #expect(exchanges(labels) == ["a": 1, "b": 1, Self.none: 0, Self.other: 1])

        let second = try configuration(named: ["c"], filed: ["a: ann"])
        let after = try testPolicy(second, generation: 2, following: before, labels: labels)
        // A thread that has not adopted it yet.
        recent.count(record, of: ann, by: try #require(before.groups))
        labels.activate(second)
        #expect(exchanges(labels) == ["a": 2, "c": 0, Self.none: 0, Self.other: 2])
        // The same identity, whose counts the thread remembers.
        recent.count(record, of: ann, by: try #require(after.groups))
        recent.count(record, of: ann, by: try #require(after.groups))
        #expect(exchanges(labels) == ["a": 4, "c": 2, Self.none: 0, Self.other: 4])
    }

    @Test func `a thread that meets many tells them apart`() throws {
        let labels = RouteLabels()
        let made = try configuration(filed: (0..<10).map { "g\($0): ann" })
        let groups = try #require(GroupCounters(made, labels))
        labels.activate(made)
        let members = (0..<2000).map { member(of: "g\($0 % 10)") }
        let recent = RecentMembers()
        for _ in 0..<2 { for one in members { recent.count(record, of: one, by: groups) } }
        let counted = exchanges(labels)
        #expect((0..<10).allSatisfy { counted["g\($0)"] == 400 })
    }
}
