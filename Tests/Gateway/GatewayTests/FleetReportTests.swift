import Documents
import PinReporting
import SharedCacheLevel
import Testing

@testable import Gateway

@Suite("What a gateway tells the fleet of itself")
struct FleetReportTests {
    static func sample() -> FleetReport {
        var report = FleetReport()
        (report.version, report.started, report.time, report.generation) = ("1.2", 5, 9, 3)
        report.policy = FleetReport.Policy(
            serial: 7, hash: String(repeating: "ab", count: 32), expires: 1_000,
            offered: FleetReport.Offer(
                serial: 8, hash: String(repeating: "cd", count: 32), percent: 10,
                refusal: "line 5"),
            alarms: ["refused"])
        report.cache = FleetReport.Cache(memoryHits: 4, diskHits: 3, sharedHits: 2, lookups: 10)
        report.hosts = FleetReport.Reachability(
            reachable: 1, notReachable: 2, unknown: 3, entries: 2,
            worst: [
                FleetReport.Host(
                    name: "a.example", reachable: 1, notReachable: 2, unknown: 3, requests: 40,
                    failures: 4, troubles: ["not_reachable"])
            ])
        report.pinsets = [
            FleetReport.Pinset(
                name: "api", evaluated: 8, isComplete: false,
                idle: [FleetReport.Pin(text: "sha256/AAAA", since: 1, matched: 2)])
        ]
        return report
    }

    @Test func `a report is read as it was written`() throws {
        let report = Self.sample()
        #expect(try FleetReport(report.encoded()) == report)
        #expect(try FleetReport(FleetReport().encoded()) == FleetReport())
    }

    @Test(arguments: [
        ("", FleetReportError.missing), ("{", .malformed), ("[]", .malformed), ("7", .malformed),
        ("{}", .malformed), ("{\"format\":\"1\"}", .malformed), ("{\"format\":1}", .malformed),
        ("{\"format\":2,\"time\":1,\"started\":1}", .otherFormat),
        ("{\"format\":1,\"time\":-1,\"started\":1}", .malformed),
        ("{\"format\":1,\"time\":1e3,\"started\":1}", .malformed),
        ("{\"format\":1,\"time\":99999999999999999,\"started\":1}", .malformed),
    ])
    func `what is no report is refused`(text: String, error: FleetReportError) {
        #expect(throws: error) { try FleetReport(Array(text.utf8)) }
    }

    @Test func `a report that is too long is not read`() {
        let start = "{\"format\":1,\"time\":1,\"started\":1,\"version\":\""
        var bytes = Array(start.utf8)
        bytes += [UInt8](repeating: 0x61, count: FleetMember.maximumReportBytes)
        bytes += Array("\"}".utf8)
        #expect(throws: FleetReportError.tooLong) { try FleetReport(bytes) }
    }

    @Test func `members of other kinds are left out, and lists are cut`() throws {
        let hosts = (0..<1_000).map { "{\"name\":\"h\($0)\"}" }.joined(separator: ",")
        let text = """
            {"format":1,"time":1,"started":1,"version":5,"generation":"x","cache":[1],
             "policy":{"serial":-3,"hash":"<script>","alarms":{"a":1},"offered":{"percent":3}},
             "hosts":{"reachable":1.5,"worst":[7,{"name":9},\(hosts)]},
             "pinsets":[{"idle":[]},{"name":"p","idle":[{"pin":"x"},{"since":1},4]}]}
            """
        let report = try FleetReport(Array(text.utf8))
        #expect(report.version == "" && report.generation == 0)
        #expect(report.cache == FleetReport.Cache())
        let policy = try #require(report.policy)
        #expect(policy == FleetReport.Policy())
        #expect(report.hosts.reachable == 0)
        #expect(report.hosts.worst.count <= FleetReport.maximumHosts)
        #expect(report.hosts.worst.first?.name == "h0")
        let pinset = try #require(report.pinsets.first)
        #expect(report.pinsets.count == 1 && pinset.name == "p" && pinset.idle.isEmpty)
        // What does not say so is not complete.
        #expect(!pinset.isComplete && !report.hasAllPinsets)
    }

    @Test func `texts cannot change what a terminal shows`() throws {
        let text = """
            {"format":1,"time":1,"started":1,"version":"a\\u001b[2Jb\\u202ec\\u0085d\\ne"}
            """
        #expect(try FleetReport(Array(text.utf8)).version == "a?[2Jb?c?d?e")
        let long = String(repeating: "ä", count: 1_000)
        #expect(FleetText.shown(long) == String(repeating: "ä", count: 150) + "…")
        #expect(FleetText.shown([0x61, 0xFF, 0x62]) == "a\u{FFFD}b")
    }

    @Test func `a report always fits, with the worst of what there is`() throws {
        var report = Self.sample()
        let name = String(repeating: "x", count: 290)
        report.hosts.worst = (0..<FleetReport.maximumHosts).map {
            FleetReport.Host(
                name: "\($0)\(name)", troubles: Array(repeating: name, count: 16))
        }
        report.pinsets = (0..<FleetReport.maximumPinsets).map {
            FleetReport.Pinset(
                name: "\($0)\(name)", idle: [FleetReport.Pin(text: name, since: 1)])
        }
        let bytes = report.encoded()
        #expect(bytes.count <= FleetMember.maximumReportBytes)
        let read = try FleetReport(bytes)
        #expect(!read.hosts.worst.isEmpty && !read.pinsets.isEmpty)
        #expect(read.hosts.worst[0].name.hasPrefix("0x") && !read.hasAllPinsets)
        // There is room for nothing.
        #expect(report.encoded(maximumBytes: 10) == [])
    }

    @Test func `pins that have not matched for a week are told, the longest first`() throws {
        let day: Int64 = 86_400
        let now = 100 * day
        let text = """
            pinset \(now) p
            pin 0 \(now - day) seen
            pin 0 \(now - 8 * day) old
            pin \(now - day) - never
            pin 0 \(now - 9 * day) older

            """
        let table = try #require(PinUseTable(text: text))
        let told = FleetReport.Pinset.all(table, now: now)
        #expect(told.map(\.name) == ["p"])
        #expect(told[0].idle.map(\.text) == ["never", "older", "old"])
        #expect(told[0].isComplete && told[0].evaluated == now)
        let many = (0..<1_000).map { "pin 0 - k\($0)\n" }.joined()
        let more = try #require(PinUseTable(text: text + "pinset - q\n" + many))
        let cut = FleetReport.Pinset.all(more, now: now)
        #expect(cut.map(\.isComplete) == [true, false])
        var all = 0
        for pinset in cut { all += pinset.idle.count }
        #expect(all == FleetReport.maximumPins)
    }
}
