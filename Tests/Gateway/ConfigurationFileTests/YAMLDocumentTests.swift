import Testing

@testable import Gateway

@Suite("YAML")
struct YAMLDocumentTests {
    @Test func `every duplicate key is reported at its line together with the other errors`() {
        let text = """
            cache: { memory: 1MiB }
            limits:
              fields: 9
              "fields": 10
              fields: 11
            cache: {}
            workers: 0
            timeouts: { head: 1s, idle: 2s, head: 3s }
            """
        #expect(
            errors(of: text) == [
                "gateway.yaml:4: limits.fields: duplicate key (first on line 3); "
                    + "expected each key once",
                "gateway.yaml:5: limits.fields: duplicate key (first on line 3); "
                    + "expected each key once",
                "gateway.yaml:6: cache: duplicate key (first on line 1); expected each key once",
                "gateway.yaml:7: workers: 0 is out of range; "
                    + "expected a whole number from 1 to 256",
                "gateway.yaml:8: timeouts.head: duplicate key (first on line 8); "
                    + "expected each key once",
            ])
    }

    @Test func `duplicate pinsets and keys of unknown mappings are reported`() {
        let pinset = "{ mode: none, allowInvalidCertificates: false }"
        #expect(
            errors(of: "pinsets:\n  a: \(pinset)\n  'a': \(pinset)\n") == [
                "gateway.yaml:3: pinsets.a: duplicate key (first on line 2); "
                    + "expected each key once"
            ])
    }

    @Test func `a duplicate key that is an alias is reported at its line`() {
        #expect(
            errors(of: "workers: 0\n&x cache: {}\n*x : {}\n") == [
                "gateway.yaml:1: workers: 0 is out of range; expected a whole number from 1 to 256",
                "gateway.yaml:3: cache: duplicate key (first on line 2); expected each key once",
            ])
    }

    @Test func `any number of duplicate keys is reported`() {
        let text = (1...200).map { "k\($0): 1\nk\($0): 2\n" }
        #expect(errors(of: text.joined()).count { $0.contains(": duplicate key") } == 200)
    }

    @Test(arguments: [
        ("workers: [1", ": not valid YAML"),
        ("a: b: c", ":1: not valid YAML at column 5: a key is not allowed here"),
        (
            "workers: 1\n\tx: 2",
            ":2: not valid YAML at column 1: a tab in the indentation; expected spaces: YAML is"
        ),
        ("cache:\n  \tmemory: 1MiB\n", ":2: not valid YAML at column 3: a tab in the indentation"),
        ("cache:\n\tmemory: 1MiB\n\tdisk: 0\n", ":2: not valid YAML at column 1: a tab in"),
        (
            "cache:\n  memory: 1\n disk: 2\n",
            ":3: not valid YAML at column 2: the indentation does not match"
        ),
        ("cache: {memory: 1MiB\nworkers: 2", "a mapping in braces is not closed; expected `,`"),
        ("workers: 1\nlog\n", ":3: not valid YAML at column 1: a key has no colon"),
        ("log: \"a", ":1: not valid YAML at column 8: a quoted text is not closed"),
        ("log: @a", ":1: not valid YAML at column 6: a value begins with a character that has"),
        ("workers: *missing", ":1: not valid YAML"),
        ("workers: 1\n---\nworkers: 2", ": expected a single document"),
        ("x: \u{1}", "not valid YAML"),
        ("[a]: 1", ":1: a list or a mapping as a key; expected a name"),
        ("- a\n- b", ":1: is a list; expected a mapping with include, watch"),
        ("workers", ":1: is a single value; expected a mapping with include, watch"),
    ])
    func `what is not a YAML mapping is an error with its line`(text: String, expected: String) {
        let lines = errors(of: text)
        #expect(lines.count == 1)
        #expect(lines.allSatisfy { $0.hasPrefix("gateway.yaml") && $0.contains(expected) })
    }

    @Test(arguments: ["", " \n\n", "# nothing\n# at all\n", "---\n", "~", "\u{FEFF}"])
    func `a file without a key is an error`(text: String) {
        #expect(
            errors(of: text) == [
                "gateway.yaml: has no keys; expected at least one key; for the built-in defaults, "
                    + "omit --config or write {}"
            ])
    }

    @Test func `empty braces load the defaults`() throws {
        #expect(try load("{}") == loadDefaults())
    }

    @Test func `byte order marks and windows line ends are accepted`() throws {
        let snapshot = try load("\u{FEFF}workers: 2\r\nlimits:\r\n  fields: 9\r\n")
        #expect(snapshot.workers == .fixed(2))
        #expect(snapshot.limits.fields == 9)
        #expect(
            errors(of: "workers: 2\r\nworkers: 3\r\n").map { $0.prefix(15) } == ["gateway.yaml:2:"])
    }

    @Test func `bytes that are not UTF-8 are an error`() {
        #expect(throws: ConfigurationErrors.self) {
            try ConfigurationLoader(environment: testEnvironment)
                .load(text: [0x77, 0x3A, 0xFF], name: "x")
        }
    }

    @Test func `anchors and aliases work`() throws {
        let text = """
            hosts:
              - match: [a.example]
                tls: &strict { minimum: "1.3" }
              - match: [b.example]
                tls: *strict
            """
        #expect(try load(text).hosts.entries.map(\.tls.minimum) == [.tls13, .tls13])
    }

    @Test func `aliases that multiply cause an error instead of using up memory`() {
        var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...12 {
            let aliases = [String](repeating: "*a\(level - 1)", count: 10)
            text += "a\(level): &a\(level) [\(aliases.joined(separator: ", "))]\n"
        }
        let lines = errors(of: text)
        #expect(lines.count == 1)
        #expect(lines[0].contains("more than \(YAMLDocument.maximumNodes) values"))
    }

    @Test(arguments: [33, 200, 999, 2_000, 20_000])
    func `nesting beyond the limit is an error`(depth: Int) {
        let flow = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        #expect(errors(of: "hosts: " + flow).count == 1)
        #expect(errors(of: String(repeating: "- ", count: depth) + "x").count == 1)
        #expect(errors(of: String(repeating: "? ", count: depth) + "x").count == 1)
    }

    @Test func `nesting at the limit is not an error`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        let limit = YAMLDocument.maximumDepth
        #expect(throws: Never.self) { try YAMLDocument.parse(nested(limit + 1), name: "x") }
        #expect(throws: ConfigurationError.self) {
            try YAMLDocument.parse(nested(limit + 2), name: "x")
        }
    }

    @Test func `a file at the size limit is accepted and one byte more is not`() {
        let text = "workers: 1\n#"
        let rest = YAMLDocument.maximumBytes - text.utf8.count
        #expect(errors(of: text + String(repeating: "x", count: rest)).isEmpty)
        #expect(
            errors(of: text + String(repeating: "x", count: rest + 1)) == [
                "gateway.yaml: longer than 1048576 bytes; expected a configuration"
            ])
    }

    @Test func `errors stay on one line whatever the value contains`() {
        let lines = errors(of: "workers: \"a\\nb\\u202E\\e[31m\"\n\"k\\ney\": 1\n")
        #expect(lines.count == 2)
        for line in lines {
            #expect(line.unicodeScalars.allSatisfy { $0.isASCII && $0.value >= 0x20 })
        }
        #expect(lines[1].contains(#""k\ney": unknown key"#))
    }

    @Test func `long values are truncated in errors`() {
        let lines = errors(of: "workers: \(String(repeating: "9", count: 10_000))")
        #expect(lines.count == 1)
        #expect(lines[0].utf8.count < 300)
    }
}
