import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The section hosts")
struct HostsTests {
    @Test func `an entry has its defaults filled in`() throws {
        let snapshot = try load(
            """
            tls: { minimum: 1.3 }
            hosts:
              - match: ["api.example.com", "*.pay.example.com"]
                upgrade: https
                tunnel: refuse
                request: { timeout: 30s }
                cache: { store: false, key: [Accept-Language, x-tenant] }
                probe: { interval: 5s, path: "/health?deep=1" }
              - match: [other.example]
                tls: { minimum: "1.2" }
            """)
        let first = snapshot.hosts.entries[0]
        #expect(first.match.map(\.description) == ["api.example.com", "*.pay.example.com"])
        #expect(first.upgradesToHTTPS)
        #expect(first.tunnel == .refuse)
        #expect(first.timeouts.firstByteMilliseconds == 30_000)
        #expect(!first.cacheStores)
        #expect(first.cacheKeyFields == ["accept-language", "x-tenant"])
        #expect(first.probe?.intervalMilliseconds == 5_000)
        #expect(first.probe?.path == "/health?deep=1")
        #expect(first.tls.minimum == .tls13)
        let second = snapshot.hosts.entries[1]
        #expect(!second.upgradesToHTTPS)
        #expect(second.tunnel == .auto)
        #expect(second.pinsets.isEmpty)
        #expect(second.timeouts == HostTimeouts())
        #expect(second.cacheStores)
        #expect(second.cacheKeyFields.isEmpty)
        #expect(second.probe == nil)
        #expect(second.tls.minimum == .tls12)
    }

    @Test(arguments: [("auto", ServerHTTP2.auto), ("require", .require), ("off", .off)])
    func `HTTP/2 is spoken with servers as their entry says`(
        _ text: String, _ http2: ServerHTTP2
    ) throws {
        #expect(try load("hosts: [{ match: [a], http2: \(text) }]").hosts.entries[0].http2 == http2)
    }

    @Test func `the timeouts of an entry override the general ones`() throws {
        let snapshot = try load(
            """
            timeouts: { body: 7s, tunnel: 1h }
            hosts:
              - match: [a]
                timeouts: { connect: 1s, firstByte: 2s, body: 3s, tunnel: 4s, eventStream: 5s }
              - match: [b]
                timeouts: { eventStream: 1d }
            """)
        let all = snapshot.timeouts
        #expect(all.tunnelMilliseconds == 3_600_000 && all.eventStreamMilliseconds == 600_000)
        let first = all.replaced(by: snapshot.hosts.entries[0].timeouts)
        #expect(first.connectMilliseconds == 1_000 && first.firstByteMilliseconds == 2_000)
        #expect(first.bodyMilliseconds == 3_000 && first.tunnelMilliseconds == 4_000)
        #expect(first.eventStreamMilliseconds == 5_000)
        #expect(first.headMilliseconds == all.headMilliseconds)
        let second = all.replaced(by: snapshot.hosts.entries[1].timeouts)
        #expect(second.bodyMilliseconds == 7_000 && second.tunnelMilliseconds == 3_600_000)
        #expect(second.eventStreamMilliseconds == 86_400_000)
    }

    @Test func `a probe has defaults`() throws {
        let entry = try load("hosts: [{ match: [a], probe: {} }]").hosts.entries[0]
        #expect(entry.probe?.intervalMilliseconds == 30_000)
        #expect(entry.probe?.path == "/")
    }

    @Test(arguments: [
        Wrong("hosts: {}", "1: hosts: is a mapping; expected a list of entries with match"),
        Wrong(
            "hosts: [{ match: [a], timeouts: { idle: 1s } }]",
            "1: hosts[0].timeouts.idle: unknown key; "
                + "expected one of connect, firstByte, body, tunnel, eventStream"),
        Wrong(
            "hosts: [{ match: [a], timeouts: { firstByte: 1s }, request: { timeout: 2s } }]",
            "1: hosts[0].request.timeout: means the same as timeouts.firstByte of this entry; "
                + "expected only one of the two"),
        Wrong("hosts: [~]", "1: hosts[0]: is empty; expected a mapping with match"),
        Wrong(
            "hosts: [{ upgrade: https }]",
            "1: hosts[0].match: is missing; expected a list of host patterns"),
        Wrong(
            "hosts: [{ match: [] }]",
            "1: hosts[0].match: matches nothing; expected a list of host patterns"),
        Wrong(
            "hosts: [{ match: }]",
            "1: hosts[0].match: has no value; expected a list of host patterns"),
        Wrong(
            "hosts: [{ match: a }]",
            "1: hosts[0].match: is a single value; expected a list of host patterns"),
        Wrong(
            "hosts: [{ match: [a], upgrade: http }]",
            "1: hosts[0].upgrade: \"http\" is not valid; expected one of https, none"),
        Wrong(
            "hosts: [{ match: [a], tunnel: open }]",
            "1: hosts[0].tunnel: \"open\" is not valid; expected one of auto, pass, inspect, "
                + "refuse"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: ['a b', A, a] } }]",
            "1: hosts[0].cache.key[0]: \"a b\" is not valid; "
                + "expected the name of a request header field",
            "1: hosts[0].cache.key[2]: the field \"a\" is listed twice; expected each once"),
        Wrong(
            "hosts: [{ match: [a], probe: { interval: 1ms, path: health } }]",
            "1: hosts[0].probe.interval: 1ms is out of range; "
                + "expected a duration from 10ms to 1d, with ms, s, m, h or d",
            "1: hosts[0].probe.path: \"health\" is not valid; "
                + "expected an absolute path such as /health"),
        Wrong(
            "hosts: [{ match: ['*.a'], probe: {} }]",
            "1: hosts[0].probe: has no host to probe, because all patterns of the entry have "
                + "wildcards; expected an exact host name in match"),
        Wrong(
            "hosts: [{ match: [a], pinsets: [paymets] }]\npinsets: { payments: { mode: none } }",
            "1: hosts[0].pinsets[0]: there is no pinset \"paymets\" (did you mean \"payments\"?); "
                + "expected a key of pinsets"),
        Wrong(
            "hosts: [{ match: [a], pinsets: [b] }]",
            "1: hosts[0].pinsets[0]: there is no pinset \"b\"; expected a key of pinsets"),
        Wrong(
            "hosts: [{ match: [a], pinsets: [b, b] }]\npinsets: { b: { mode: none } }",
            "1: hosts[0].pinsets[1]: the pinset \"b\" is listed twice; expected each pinset once"),
        // The pinset has an error; the reference to it does not.
        Wrong(
            "hosts: [{ match: [a], pinsets: [b] }]\npinsets: { b: { mode: key } }",
            "2: pinsets.b.mode: \"key\" is not valid; "
                + "expected one of none, publicKey, certificate"),
    ])
    func `a wrong entry is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }
}
