import Testing

@testable import Gateway

/// One invalid text and the complete error lines that it must cause.
struct Wrong: CustomTestStringConvertible, Sendable {
    var text: String
    var lines: [String]

    init(_ text: String, _ lines: String...) {
        self.text = text
        self.lines = lines.map { "gateway.yaml:" + $0 }
    }

    var testDescription: String { text }
}

private let size = "in bytes or with KB, MB, GB, TB, KiB, MiB, GiB or TiB"
private let units = "with ms, s, m, h or d"

@Suite("Errors of single keys")
struct KeyErrorTests {
    @Test(arguments: [
        Wrong("workers: 0", "1: workers: 0 is out of range; expected a whole number from 1 to 256"),
        Wrong(
            "workers: 257", "1: workers: 257 is out of range; expected a whole number from 1 to 256"
        ),
        Wrong(
            "workers: many",
            "1: workers: \"many\" is not a number of threads; "
                + "expected auto, or a whole number from 1 to 256"),
        Wrong("workers: [1]", "1: workers: is a list; expected a whole number from 1 to 256"),
        Wrong("workers:", "1: workers: has no value; expected a whole number from 1 to 256"),
        Wrong(
            "limits: { connections: 0 }",
            "1: limits.connections: 0 is out of range; expected a whole number from 1 to 1000000"),
        Wrong(
            "limits:\n  fields: ten",
            "2: limits.fields: \"ten\" is not valid; expected a whole number from 1 to 10000"),
        Wrong(
            "limits: { pending: -1 }",
            "1: limits.pending: \"-1\" is not valid; expected a whole number from 0 to 1000000"),
        Wrong(
            "limits: { upstreamPerHost: 65536 }",
            "1: limits.upstreamPerHost: 65536 is out of range; "
                + "expected a whole number from 1 to 65535"),
        Wrong(
            "limits: { streams: 0 }",
            "1: limits.streams: 0 is out of range; expected a whole number from 1 to 10000"),
        Wrong(
            "limits: { resets: 9 }",
            "1: limits.resets: 9 is out of range; expected a whole number from 10 to 100000"),
        Wrong(
            "listeners:\n  - address: 127.0.0.1:1\n    http2: require",
            "3: listeners[0].http2: \"require\" is not valid; expected one of auto, off"),
        Wrong(
            "hosts:\n  - match: [a]\n    http2: on",
            "3: hosts[0].http2: \"on\" is not valid; expected one of auto, require, off"),
        Wrong(
            "limits: { bufferBytes: 1KiB }",
            "1: limits.bufferBytes: 1KiB is out of range; "
                + "expected a size from 1MiB to 1024TiB, in bytes or with KB, MB, GB, TB, KiB, "
                + "MiB, GiB or TiB"),
        Wrong(
            "limits: { perClient: { connections: 0 } }",
            "1: limits.perClient.connections: 0 is out of range; "
                + "expected a whole number from 1 to 1000000"
        ),
        Wrong(
            "limits: { perClient: { requests: 1 } }",
            "1: limits.perClient.requests: unknown key; "
                + "expected one of connections, exchanges"
        ),
        Wrong(
            "limits: { headBytes: 1023 }",
            "1: limits.headBytes: 1023 is out of range; "
                + "expected a size from 1KiB to 1MiB, \(size)"
        ),
        Wrong(
            "limits: { headBytes: 2MiB }",
            "1: limits.headBytes: 2MiB is out of range; "
                + "expected a size from 1KiB to 1MiB, \(size)"),
        Wrong(
            "cache: { memory: 64mb }",
            "1: cache.memory: \"64mb\" is not valid (did you mean 64MB?); "
                + "expected a size from 0 to 1024TiB, \(size)"),
        Wrong(
            "cache: { disk: 65535 }",
            "1: cache.disk: 65535 is too small; expected 0 for no disk tier, or at least 64KiB"),
        Wrong(
            "cache: { enabled: yes }",
            "1: cache.enabled: \"yes\" is not a boolean; expected true or false"),
        Wrong(
            "cache: { enabled: 'true' }",
            "1: cache.enabled: \"true\" is not a boolean; expected true or false"),
        Wrong(
            "cache: 5",
            "1: cache: is a single value; expected a mapping with enabled, memory, "
                + "disk, entries, variants, path, maximumObject, fill, "
                + "bypassFields, purge, shared"),
        Wrong(
            "cache: { entries: some }",
            "1: cache.entries: \"some\" is not valid; expected auto, or a whole number from 1 to "
                + "50000000"),
        Wrong(
            "cache: { entries: 0 }",
            "1: cache.entries: \"0\" is not valid; expected auto, or a whole number from 1 to "
                + "50000000"),
        Wrong(
            "cache: { variants: 1025 }",
            "1: cache.variants: 1025 is out of range; expected a whole number from 1 to 1024"),
        Wrong(
            "cache: { path: '' }",
            "1: cache.path: \"\" is not valid; expected a path (`~` requires HOME to be set)"),
        Wrong(
            "timeouts: { head: 0s }",
            "1: timeouts.head: 0s is out of range; expected a duration from 1ms to 1d, \(units)"),
        Wrong(
            "timeouts: { idle: 25h }",
            "1: timeouts.idle: 25h is out of range; expected a duration from 1ms to 1d, \(units)"),
        Wrong(
            "timeouts: { connect: 5 }",
            "1: timeouts.connect: \"5\" is not valid (did you mean 5s?); "
                + "expected a duration from 1ms to 1d, \(units)"),
        Wrong(
            "pins: { observe: none }",
            "1: pins.observe: \"none\" is not valid; expected one of listed, all"),
        Wrong(
            "tracing: { traceparent: on }",
            "1: tracing.traceparent: \"on\" is not valid; expected one of pass, begin, off"),
        Wrong(
            "tracing: { sample: 0.1 }",
            "1: tracing.sample: \"0.1\" is not valid; expected a share from 0% to 100%, with at "
                + "most four decimals, such as 0.5%"),
        Wrong(
            "tracing: { otlp: '127.0.0.1:4318' }",
            "1: tracing.otlp: \"127.0.0.1:4318\" is not valid; expected none, or the URL of a "
                + "collector such as http://127.0.0.1:4318"),
        Wrong(
            "activity: { activationDelay: soon }",
            "1: activity.activationDelay: \"soon\" is not valid; "
                + "expected a duration from 0s to 1h, \(units)"),
        Wrong(
            "resolver: { minimumTTL: 500ms }",
            "1: resolver.minimumTTL: 500ms is not a whole number of seconds; "
                + "expected a duration in s, m, h or d"),
        Wrong(
            "resolver: { minimumTTL: 2m, maximumTTL: 1m }",
            "1: resolver.minimumTTL: exceeds maximumTTL (1m); expected at most maximumTTL"),
        Wrong(
            "resolver: { servers: none }",
            "1: resolver.servers: \"none\" is not a list; "
                + "expected system, or a list of addresses, each optionally with a :port"),
        Wrong(
            "resolver: { servers: [] }",
            "1: resolver.servers: has 0 servers; expected system, or 1 to 16 addresses"),
        Wrong(
            "resolver: { servers: [dns.example, '1.1.1.1:0'] }",
            "1: resolver.servers[0]: \"dns.example\" is not valid; "
                + "expected an address such as 192.0.2.53 or [2001:db8::53]:5353",
            "1: resolver.servers[1]: \"1.1.1.1:0\" is not valid; "
                + "expected an address such as 192.0.2.53 or [2001:db8::53]:5353"),
        Wrong(
            "log: { level: verbose }",
            "1: log.level: \"verbose\" is not valid; expected one of trace, debug, info, notice, "
                + "warning, error, critical"),
        Wrong(
            "log: { access: { format: xml } }",
            "1: log.access.path: is missing; expected the path of the access log",
            "1: log.access.format: \"xml\" is not valid; expected one of json, combined"),
        Wrong(
            "tls: { minimum: 1.1 }",
            "1: tls.minimum: \"1.1\" is not valid; expected one of 1.2, 1.3"),
        Wrong(
            "tls: { roots: [] }",
            "1: tls.roots: has no trust anchors; expected `system` or certificate files"),
        Wrong(
            "tls: { roots: system }",
            "1: tls.roots: is a single value; expected a list of `system` and certificate files"),
    ])
    func `a wrong value is reported with its line, its key and what was expected`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(arguments: [
        ("listner: []", "listner", "listeners"),
        ("cache: { memry: 1MiB }", "cache.memry", "memory"),
        ("access: { destinations: { alow: [] } }", "access.destinations.alow", "allow"),
        ("hosts: [{ match: [a], upgarde: https }]", "hosts[0].upgarde", "upgrade"),
        ("hosts: [{ match: [a], cache: { stored: true } }]", "hosts[0].cache.stored", "store"),
        ("pinsets: { a: { mode: none, pin: [] } }", "pinsets.a.pin", "pins"),
        ("log: { access: { path: x, formt: json } }", "log.access.formt", "format"),
        ("admin: { adress: 127.0.0.1:1 }", "admin.adress", "address"),
        (
            "listeners: [{ addres: 127.0.0.1:1, address: 127.0.0.1:1 }]", "listeners[0].addres",
            "address"
        ),
    ])
    func `an unknown key is an error that suggests the nearest one of its mapping`(
        text: String, key: String, nearest: String
    ) {
        let lines = errors(of: text)
        #expect(lines.count == 1)
        let start =
            "gateway.yaml:1: \(key): unknown key (did you mean \"\(nearest)\"?); expected one of "
        #expect(lines.allSatisfy { $0.hasPrefix(start) })
    }

    @Test func `all errors are reported in the order of the file`() {
        let text = """
            workers: 0
            timeouts: { head: never }
            listeners:
              - { address: here }
              - { kind: reverse, address: "127.0.0.1:1" }
            limits: { fields: none }
            cache: { disk: big }
            """
        let places = errors(of: text).map { $0.split(separator: " ")[..<2].joined(separator: " ") }
        #expect(
            places == [
                "gateway.yaml:1: workers:", "gateway.yaml:2: timeouts.head:",
                "gateway.yaml:4: listeners[0].address:", "gateway.yaml:5: listeners[1].upstream:",
                "gateway.yaml:6: limits.fields:", "gateway.yaml:7: cache.disk:",
            ])
    }

    @Test func `a file with many errors causes a limited number of them`() {
        let ports = (1...5_000).map { "p\($0)" }.joined(separator: ", ")
        #expect(
            errors(of: "access: { connectPorts: [\(ports)] }").count
                == ConfigurationValidation.maximumErrors)
    }

    @Test func `a missing file and a folder are errors`() throws {
        try withTemporaryFolder { folder in
            let loader = ConfigurationLoader(environment: testEnvironment)
            #expect(
                throws: ConfigurationErrors(errors: [
                    ConfigurationError(
                        origin: .file(name: folder + "/none.yaml", line: 0), key: "",
                        problem: "cannot be read: No such file or directory",
                        expected: "a readable configuration file")
                ])
            ) { try loader.load(file: folder + "/none.yaml") }
            #expect(throws: ConfigurationErrors.self) { try loader.load(file: folder) }
        }
    }
}
