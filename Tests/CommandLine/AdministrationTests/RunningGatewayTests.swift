import Documents
import Testing

@testable import pinfold

@Suite("Asking a running gateway")
struct RunningGatewayTests {
    static let addresses: [(String, RunningGateway.Target?)] = [
        ("127.0.0.1:9090", .url("http://127.0.0.1:9090")),
        ("[::1]:9090", .url("http://[::1]:9090")),
        ("localhost:9090", .url("http://localhost:9090")),
        ("http://gw.example:9090", .url("http://gw.example:9090")),
        ("https://gw.example", .url("https://gw.example")),
        ("https://gw.example/", .url("https://gw.example")),
        ("https://[::1]:1", .url("https://[::1]:1")),
        ("unix:/run/a.sock", .unix("/run/a.sock")), ("unix:a.sock", .unix("a.sock")),
        ("unix:", nil), ("", nil), (":9090", nil), ("localhost", nil), ("127.0.0.1", nil),
        ("127.0.0.1:0", nil), ("127.0.0.1:65536", nil), ("localhost:x", nil), ("::1:9090", nil),
        ("ftp://a:1", nil), ("http://", nil), ("http://a/b", nil), ("http://a?b", nil),
        ("https://user@a", nil), ("a/b:1", nil), ("a b:1", nil),
    ]

    @Test(arguments: addresses)
    func `an address is one of the network, a URL, or a Unix socket`(
        text: String, target: RunningGateway.Target?
    ) {
        #expect(RunningGateway.Target(text) == target)
    }

    @Test(
        arguments: [
            ("127.0.0.1:9090", "127.0.0.1"), ("https://[::1]:1", "::1"),
            ("https://gw.test", "gw.test"),
            ("http://gw.test:90", "gw.test"), ("unix:/a", nil),
        ] as [(String, String?)])
    func `the host is the one that certificates are shown to`(text: String, host: String?) {
        #expect(RunningGateway.Target(text)?.host == host)
    }

    @Test(
        arguments: [
            (0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3_599, "59 min 59 s"),
            (3_600, "1 h 0 min"),
            (86_399, "23 h 59 min"), (86_400, "1 d 0 h"), (1_000_000, "11 d 13 h"),
        ] as [(Int64, String)])
    func `a duration has its two largest units`(seconds: Int64, text: String) {
        #expect(StatusText.time(seconds) == text)
    }

    @Test func `an answer of something else is no state`() {
        for body in ["", "<html>", "[]", "{\"state\":1}", "{}"] {
            let answer = RunningGateway.Answer(status: 200, body: Array(body.utf8))
            #expect(answer.value?["state"]?.text == nil)
            #expect(answer.problem.contains("200"))
        }
        let refused = RunningGateway.Answer(
            status: 401, body: Array("{\"detail\":\"needs a token\"}".utf8))
        #expect(refused.problem == "needs a token")
    }

    @Test func `a state is shown even if it lacks most of what it could have`() throws {
        let least = try JSONDocument.value(of: Array("{\"explanation\":\"ready\"}".utf8))
        let text = StatusText.text(of: least)
        #expect(text.hasPrefix("ready (Pinfold ?, revision ?, process 0, running for 0 s)\n"))
        let more = try JSONDocument.value(
            of: Array(
                """
                {"explanation":"ready","configuration":{"hosts":1,"pinsets":2,
                "warnings":[{"text":"a.yaml:1: x"}],"unusableFiles":["/crl"]},
                "lastReload":{"result":"refused","time":"T","errors":[{"text":"a.yaml:2: y"}]},
                "listeners":[{"name":"p","kind":"forward","address":"a:1","tls":true,
                "accepting":false}],"load":{"connections":1,"requests":2},
                "cache":{"memory":{"state":"on","bytes":1024,"limitBytes":2048,"entries":1},
                "disk":{"state":"failed"}},"draining":{"since":"S","ends":"E"}}
                """.utf8))
        let lines = StatusText.text(of: more).split(separator: "\n").dropFirst().map {
            String($0)
        }
        #expect(
            lines == [
                "configuration  built-in defaults, number 0, loaded ?: 1 host entry, 2 pinsets",
                "warning        a.yaml:1: x",
                "unusable file  /crl",
                "last reload    refused T",
                "error          a.yaml:2: y",
                "listener       p (forward) on a:1 with TLS: accepts no connections",
                "in progress    1 client connection, 2 requests, 0 tunnels, 0 server connections",
                "cache          memory: 1.0 KiB of 2.0 KiB, 1 response",
                "cache          disk is failed",
                "draining       since S, until E at the latest",
            ])
    }

    @Test func `what needs attention comes first`() throws {
        let list = try JSONDocument.value(
            of: Array(
                """
                {"attention":[{"level":"critical","text":"a","host":"api"},
                {"level":"warning","text":"b"}]}
                """.utf8))
        let lines = StatusText.text(of: .null, attention: list.list("attention"))
            .split(separator: "\n").dropFirst().prefix(2)
        #expect(lines == ["attention      critical: api: a", "attention      warning: b"])
    }
}

@Suite("A listener or an administrative address, as options name it")
struct GatewayTargetTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1", 8080, false), ("localhost:80", "localhost", 80, false),
        ("[::1]:81", "::1", 81, false), ("http://a.test", "a.test", 80, false),
        ("https://a.test", "a.test", 443, true), ("https://a.test:8443/", "a.test", 8443, true),
        ("https://[::1]", "::1", 443, true), ("https://[::1]:82", "::1", 82, true),
    ])
    func `has a host, a port and perhaps TLS`(
        text: String, host: String, port: UInt16, isSecure: Bool
    ) throws {
        let target = try #require(RunningGateway.Target(text))
        #expect(target.host == host)
        #expect(target.port == port)
        #expect(target.isSecure == isSecure)
    }

    @Test(arguments: ["https://a.test:x", "https://a.test:0", "https://a.test:", "unix:/x"])
    func `has no port if what is written is none`(text: String) throws {
        #expect(try #require(RunningGateway.Target(text)).port == nil)
    }
}
