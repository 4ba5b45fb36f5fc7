import HTTPCore
import Testing

@testable import Trust

@Suite("Lists of logs")
struct TransparencyLogListTests {
    /// SHA-256 is the key's first byte, 32 times; no log may have a key that begins with 0.
    private static func read(_ bytes: [UInt8]) throws(LogListError) -> TransparencyLogList {
        try TransparencyLogList(
            json: bytes, digest: { SHA256Digest([UInt8](repeating: $0[0], count: 32).span) },
            isKnownKey: { $0[0] > 0 })
    }

    private static func read(_ text: String) throws(LogListError) -> TransparencyLogList {
        try read(Array(text.utf8))
    }

    /// A log with this key, and other members.
    private static func log(_ byte: UInt8, _ members: String = "") -> String {
        let id = Base64.encode([UInt8](repeating: byte, count: 32))
        return #"{"key":"\#(Base64.encode([byte, 9]))","log_id":"\#(id)"\#(members)}"#
    }

    private static func list(_ logs: String, _ members: String = "") -> String {
        #"{\#(members)"operators":[{"name":"o","email":["a@b"],"logs":[\#(logs)]}]}"#
    }

    private static let usable = #","state":{"usable":{"timestamp":"1970-01-01T00:01:00Z"}}"#

    @Test func `the form that Google and Apple publish is read`() throws {
        let first =
            #","description":"Öne 1","url":"https://x/","mmd":86400"# + Self.usable
            + #","temporal_interval":{"start_inclusive":"1970-01-01T00:00:10Z","#
            + #""end_exclusive":"1970-01-01T00:00:20Z"}"#
        let text = """
            {
              "version": "32.1", "log_list_timestamp": "1970-01-01T00:02:00Z",
              "operators": [
                { "name": "A", "email": [], "logs": [
                  \(Self.log(1, first)) ] },
                { "name": "B", "logs": [], "tiled_logs": [
                  \(Self.log(2, #","url":"https://two/","log_type":"prod","#
                    + #""state":{"retired":{"timestamp":"1970-01-01T00:00:30Z"}}"#)),
                  \(Self.log(3)) ] },
                { "name": "C" }
              ]
            }
            """
        let list = try Self.read(text)
        #expect(list.timestamp == 120)
        #expect(list.logs.count == 3)
        let one = list.logs[0]
        #expect((one.name, one.key, one.state, one.stateSince) == ("??ne 1", [1, 9], .usable, 60))
        #expect(one.expiries == 10..<20)
        let two = list.logs[1]
        #expect((two.name, two.state, two.stateSince) == ("https://two/", .retired, 30))
        #expect(two.expiries == nil)
        let three = list.logs[2]
        #expect(three.state == nil && !three.mayCount && one.mayCount && two.mayCount)
        #expect(three.name == Base64.encode([UInt8](repeating: 3, count: 32)))
    }

    @Test(arguments: TransparencyLog.State.allCases)
    func `every state is known`(state: TransparencyLog.State) throws {
        let since = #","state":{"\#(state.rawValue)":{"timestamp":"2026-01-01T00:00:00Z","x":1}}"#
        let log = try #require(try Self.read(Self.list(Self.log(1, since))).logs.first)
        #expect(log.state == state)
    }

    @Test(
        arguments: [
            ("", "line 1, byte 1", "no value"), ("[]", "", "an object"),
            ("{}", "operators", "missing"),
            ("{\n\"operators\": [}", "line 2, byte 15", "not a JSON value"),
            (#"{"a":1,"a":2}"#, "line 1, byte 11", "duplicate"),
            (String(repeating: "[", count: 100_000), "line 1, byte 33", "deep"),
            (#"{"operators":{}}"#, "operators", "an array"),
            (#"{"operators":[]}"#, "operators", "no log"),
            (#"{"operators":[1]}"#, "operators[0]", "an object"),
            (list("", #""log_list_timestamp":"soon","#), "log_list_timestamp", "a time"),
            (list("", #""log_list_timestamp":7,"#), "log_list_timestamp", "a string"),
            (list("3"), "operators[0].logs[0]", "an object"),
            (list("{}"), "operators[0].logs[0].key", "missing"),
            (list(#"{"key":"?"}"#), "operators[0].logs[0].key", "base64"),
            (list(#"{"key":""}"#), "operators[0].logs[0].key", "base64"),
            (list(#"{"key":null}"#), "operators[0].logs[0].key", "missing"),
            (list(#"{"key":"AQkA"}"#), "operators[0].logs[0].log_id", "missing"),
            (list(#"{"key":"AQkA","log_id":"AAAA"}"#), "operators[0].logs[0].log_id", "SHA-256"),
            (
                list(log(1) + "," + log(1)), "operators[0].logs[1]",
                "same log as operators[0].logs[0]"
            ),
            (list(log(1, #","state":{}"#)), "operators[0].logs[0].state", "one of pending"),
            (list(log(1, #","state":"usable""#)), "operators[0].logs[0].state", "one of pending"),
            (
                list(log(1, #","state":{"great":{"timestamp":"2026-01-01T00:00:00Z"}}"#)),
                "operators[0].logs[0].state", "one of pending"
            ),
            (
                list(log(1, #","state":{"usable":{},"retired":{}}"#)),
                "operators[0].logs[0].state", "one of pending"
            ),
            (
                list(log(1, #","state":{"retired":{}}"#)),
                "operators[0].logs[0].state.retired.timestamp", "missing"
            ),
            (
                list(log(1, #","temporal_interval":{"start_inclusive":"2026-01-01T00:00:00Z"}"#)),
                "operators[0].logs[0].temporal_interval.end_exclusive", "missing"
            ),
            (
                list(
                    log(
                        1,
                        #","temporal_interval":{"start_inclusive":"2026-01-01T00:00:00Z","#
                            + #""end_exclusive":"2026-01-01T00:00:00Z"}"#)),
                "operators[0].logs[0].temporal_interval", "ends before"
            ),
        ] as [(String, String, String)])
    func `a malformed list is refused with its place`(text: String, place: String, words: String) {
        let problem = #expect(throws: LogListError.self) { try Self.read(text) }
        #expect(problem?.location == place)
        #expect(problem?.text.contains(words) == true, "\(problem?.text ?? "")")
    }

    @Test func `a truncated list is refused`() {
        let whole = Array(Self.list(Self.log(1, Self.usable)).utf8)
        for count in 0..<whole.count {
            #expect(throws: LogListError.self) {
                try Self.read(Array(whole.prefix(count)))
            }
        }
    }

    @Test func `a log with a key of an unknown kind is of the list, and does not count`() throws {
        let logs = [Self.log(0, Self.usable), Self.log(1, Self.usable)]
        let list = try Self.read(Self.list(logs.joined(separator: ",")))
        #expect(list.logs.map(\.hasKnownKey) == [false, true])
        #expect(list.logs.map(\.mayCount) == [false, true])
    }

    @Test func `null is like an absent member`() throws {
        let text = """
            { "log_list_timestamp": null, "operators": [ { "logs": [
                \(Self.log(1, #","description":null,"state":null,"temporal_interval":null"#))
              ], "tiled_logs": null } ] }
            """
        let list = try Self.read(text)
        #expect(list.timestamp == nil)
        #expect(list.logs.map(\.state) == [nil])
        #expect(list.logs.map(\.expiries) == [nil])
    }

    @Test func `logs suffice that are not retired and whose certificates have not expired`()
        throws
    {
        let interval =
            #","temporal_interval":{"start_inclusive":"1970-01-01T00:00:10Z","#
            + #""end_exclusive":"1970-01-01T00:00:20Z"}"#
        let retired = #","state":{"retired":{"timestamp":"2026-01-01T00:00:00Z"}}"#
        let logs = try Self.read(
            Self.list(
                [
                    Self.log(0, Self.usable), Self.log(1, Self.usable),
                    Self.log(2, Self.usable + interval), Self.log(3, retired), Self.log(4),
                ].joined(separator: ","))
        ).logs
        #expect(logs.map { $0.suffices(at: 19) } == [false, true, true, false, false])
        #expect(logs.map { $0.suffices(at: 20) } == [false, true, false, false, false])
    }
}
