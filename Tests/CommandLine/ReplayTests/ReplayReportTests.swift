import Testing

@testable import pinfold

@Suite("What a replay prints")
struct ReplayReportTests {
    private func change(_ before: String, _ after: String) -> [ReplayChange] {
        ReplayChange.all(from: Standing(handling: before), to: Standing(handling: after))
    }

    private func example(_ user: String, target: String = "/") -> ReplaySummary.Example {
        ReplaySummary.Example(
            time: "t", client: "192.0.2.1", user: user, method: "GET", target: target, id: nil)
    }

    private func report(_ summary: ReplaySummary) -> ReplayReport {
        ReplayReport(
            summary: summary, new: "new.yaml", old: nil, files: ["log"], observedHosts: nil)
    }

    @Test(arguments: [
        ("a", "a"), ("\u{E9} \u{1F600}", "\u{E9} \u{1F600}"), ("x\ny", "x\\u{A}y"),
        ("\u{1B}[31m\u{7}", "\\u{1B}[31m\\u{7}"), ("\u{7F}\u{9B}", "\\u{7F}\\u{9B}"),
        ("\u{202E}a\u{2028}", "\\u{202E}a\\u{2028}"),
    ])
    func `is escaped where a terminal would act on it`(text: String, shown: String) {
        #expect(text.printable == shown)
        var summary = ReplaySummary(examples: 1)
        summary.add(change("a", "b"), host: text, network: "n", user: text) { example(text) }
        let lines = report(summary).text.split(separator: "\n")
        #expect(lines.contains { $0.hasSuffix("192.0.2.1 \(shown) GET /") })
        #expect(lines.filter { $0 == "  1  \(shown)" }.count == 2)
    }

    @Test func `is cut where a log has more`() {
        #expect("abc".cut(after: 3) == "abc")
        #expect("abcd".cut(after: 3) == "abc…")
        #expect("\u{E9}\u{E9}\u{E9}".cut(after: 3) == "\u{E9}\u{E9}\u{E9}")
        let long = String(repeating: "a", count: 100_000)
        var summary = ReplaySummary(examples: 1)
        summary.add(change(long, "b"), host: long, network: "n", user: long) { example("u") }
        summary.skip(.undecided(long))
        #expect(report(summary).text.utf8.count < 5_000)
        #expect(report(summary).json.utf8.count < 5_000)
    }
}
