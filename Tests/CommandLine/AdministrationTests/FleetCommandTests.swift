import Documents
import Testing

@testable import pinfold

@Suite("pinfold fleet")
struct FleetCommandTests {
    private static let hash = String(repeating: "ab", count: 32)

    private func value(_ text: String) throws -> DocumentValue {
        try JSONDocument.value(of: Array(text.utf8))
    }

    /// Gateways of a fleet that is told of a policy with the serial 8.
    private func rollout(_ gateways: String, percent: Int = 100) throws -> FleetRollout {
        let published = PublishedText(serial: 8, hash: Self.hash, percent: percent)
        var rollout = FleetRollout(published: published) { .null }
        rollout.read(try value("{\"gateways\": [\(gateways)]}"))
        return rollout
    }

    private func gateway(_ name: String, share: Int = 50, _ rest: String) -> String {
        "{\"name\": \"\(name)\", \"share\": \(share), \"away\": false\(rest)}"
    }

    private var taken: String { ", \"policy\": {\"serial\": 8, \"hash\": \"\(Self.hash)\"}" }

    @Test func `what has become of a policy is told for each gateway`() throws {
        let former = "\"serial\": 7, \"hash\": \"00\""
        let refusal = "{\"serial\": 8, \"hash\": \"\(Self.hash)\", \"refusal\": \"line 5\"}"
        let rollout = try rollout(
            [
                gateway("a", taken), gateway("b", ", \"policy\": {\(former)}"),
                gateway("c", ", \"policy\": {\(former), \"offered\": \(refusal)}"),
                gateway("d", share: 80, ", \"policy\": {\(former)}"),
                gateway("e", share: 80, ", \"policy\": {}"),
                gateway("f", ", \"problem\": \"its report is not there yet\""), gateway("g", ""),
                "{\"name\": \"h\", \"away\": true}",
            ].joined(separator: ","), percent: 60)
        #expect(
            rollout.gateways.map(\.outcome) == [
                .taken, .waiting, .refused("line 5"), .notMeant(from: 80), .waiting,
                .silent("its report is not there yet"),
                .silent("it has no policy by way of the engine"), .away,
            ])
        #expect(!rollout.isComplete)
        #expect(rollout.text.hasPrefix("a  taken\nb  not yet\nc  refused: line 5\nd  keeps"))
    }

    @Test func `the same serial with other content is not what was published`() throws {
        let other = ", \"policy\": {\"serial\": 8, \"hash\": \"00\"}"
        #expect(try rollout(gateway("a", other)).gateways[0].outcome == .waiting)
    }

    @Test func `it is complete when all that are meant and are there have taken it`() throws {
        let former = ", \"policy\": {\"serial\": 7, \"hash\": \"00\"}"
        let list = gateway("a", taken) + "," + gateway("b", share: 90, former)
        #expect(try rollout(list, percent: 60).isComplete)
        #expect(try !rollout(list, percent: 95).isComplete)
        #expect(try rollout(list, percent: 60).warnings == [])
    }

    @Test func `a share without any gateway is told`() throws {
        let former = ", \"policy\": {\"serial\": 7, \"hash\": \"00\"}"
        let list = gateway("a", share: 70, former) + "," + gateway("b", share: 90, former)
        let found = try rollout(list, percent: 10)
        #expect(found.isComplete && found.warnings.count == 1)
        #expect(found.warnings[0].contains("from 70 % on"))
    }

    @Test func `names cannot change what a terminal shows`() throws {
        let found = try rollout(gateway("\\u001b[2J", taken))
        #expect(found.text == "?[2J  taken\n")
    }

    @Test(
        arguments: [("10%", 10), ("10", 10), ("100%", 100), ("0", nil), ("101%", nil), ("x", nil)]
            as [(String, Int?)])
    func `shares are read`(text: String, percent: Int?) {
        #expect(CanaryShare(argument: text)?.percent == percent)
    }

    @Test func `the state of a fleet has what is wrong first`() throws {
        let fleet = try value(
            """
            {"name": "a", "current": true, "agree": false,
             "gateways": [
               {"name": "a", "age_ms": 1000, "purged": true, "away": false, "version": "1",
                "started": "2026-11-30T12:00:00.000Z",
                "policy": {"serial": 7, "hash": "\(Self.hash)", "alarms": ["refused"],
                           "offered": {"serial": 8, "hash": "", "percent": 100, "refusal": "no"}},
                "cache": {"lookups": 10, "memoryHits": 5, "diskHits": 2, "sharedHits": 1}},
               {"name": "b", "age_ms": 90000, "purged": false, "away": true,
                "problem": "its report is not there yet"},
               {"name": "c", "age_ms": 0, "purged": false, "away": false, "version": "1",
                "started": "2026-11-30T12:00:00.000Z", "cache": {"lookups": 0}}],
             "policies": [{"serial": 7, "hash": "\(Self.hash)", "gateways": ["a"]},
                          {"hash": "", "gateways": ["c"]}],
             "cache": {"lookups": 10, "memoryHits": 5, "diskHits": 2, "sharedHits": 1},
             "hosts": [
               {"entry": "api", "gateways": [
                 {"gateway": "a", "reachable": 1, "notReachable": 2, "unknown": 0,
                  "trouble": ["not_reachable", "failures"]},
                 {"gateway": "c", "reachable": 3, "notReachable": 0, "unknown": 0,
                  "trouble": []}]},
               {"entry": "well", "gateways": [
                 {"gateway": "a", "reachable": 1, "notReachable": 0, "unknown": 0,
                  "trouble": []}]}],
             "unseenPins": [{"pinset": "p", "pin": "sha256/A", "since": "2026-11-01T00:00:00Z",
                             "hasMatched": false, "gateways": 2}]}
            """)
        #expect(!FleetStatusText.isWell(fleet))
        let lines = FleetStatusText.text(of: fleet).split(separator: "\n").map { String($0) }
        #expect(
            Array(lines.prefix(5)) == [
                "3 gateways; purges are not carried out yet by c",
                "policy serial 7 (abababababab): a", "no policy: c",
                "alarm of a: the policy is refused", "a refuses serial 8: no",
            ])
        #expect(lines[6].hasPrefix("a ") && lines[6].hasSuffix(" 10    50 %  20 %    10 %"))
        #expect(lines[7].contains(" away ") && lines[8].contains(" behind "))
        #expect(
            lines.suffix(2) == [
                "host  api: a (2 of 3 servers not reachable, failures)",
                "pin  p sha256/A: no gateway has ever seen it, watched since 2026-11-01",
            ])
    }
}
