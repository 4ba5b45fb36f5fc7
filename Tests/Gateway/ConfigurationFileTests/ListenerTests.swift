import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The section listeners")
struct ListenerTests {
    @Test func `a forward and a reverse listener are parsed`() throws {
        let snapshot = try load(
            """
            listeners:
              - { name: proxy, address: "[::1]:0", kind: forward }
              - { name: pay.ments_1-a, address: localhost:8081, kind: reverse,
                  upstream: "https://API.example.com" }
            """)
        #expect(snapshot.listeners.map(\.name) == ["proxy", "pay.ments_1-a"])
        #expect(snapshot.listeners.map(\.address.description) == ["[::1]:0", "127.0.0.1:8081"])
        #expect(
            snapshot.listeners[1].kind
                == .reverse(UpstreamOrigin(scheme: .https, host: "api.example.com", port: 443)))
    }

    @Test(
        arguments: [
            ("http://a", "http", "a", 80, "http://a"),
            ("https://a.example./", "https", "a.example", 443, "https://a.example"),
            ("HTTPS://A:8443", "https", "a", 8443, "https://a:8443"),
            ("http://127.0.0.1:8080", "http", "127.0.0.1", 8080, "http://127.0.0.1:8080"),
            ("https://[2001:DB8::1]", "https", "2001:db8::1", 443, "https://[2001:db8::1]"),
            ("https://[::1]:443/", "https", "::1", 443, "https://[::1]"),
            ("http://a:443", "http", "a", 443, "http://a:443"),
        ] as [(String, String, String, UInt16, String)])
    func `an upstream is a scheme, a host and an optional port`(
        text: String, scheme: String, host: String, port: UInt16, url: String
    ) throws {
        let origin = try #require(UpstreamOrigin(url: text))
        #expect(origin.scheme.rawValue == scheme)
        #expect(origin.host == host)
        #expect(origin.port == port)
        #expect(origin.url == url)
        #expect(UpstreamOrigin(url: url) == origin)
    }

    @Test(arguments: [
        "", "a", "ftp://a", "http:/a", "http://", "http:///", "https://a/b", "https://a//",
        "https://a?q", "https://a#f", "https://u@a", "https://a:0", "https://a:65536", "https://a:",
        "https://*.a", "https://::1", "https://[::1", "https://[a]", "https://a b", "https://1.2.3",
        "https://ä.example", "https://a\n",
    ])
    func `an upstream with anything else is refused`(text: String) {
        #expect(UpstreamOrigin(url: text) == nil)
    }

    @Test(arguments: [
        Wrong("listeners: []", "1: listeners: has no listeners; expected 1 to 256 listeners"),
        Wrong(
            "listeners: [{ kind: forward }]",
            "1: listeners[0].address: is missing; expected an address and a port, such as "
                + "127.0.0.1:8080 or [::1]:8080 (port 0 lets the system choose), unix: and the "
                + "path of a Unix socket, or fd:NAME for a socket from the service manager"),
        Wrong(
            "listeners: [~]",
            "1: listeners[0]: is empty; expected a mapping with name, address, kind"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', kind: reverse }]",
            "1: listeners[0].upstream: is missing; "
                + "expected http://host[:port] or https://host[:port], without a path, or "
                + "unix: and the path of a Unix socket, or upstreams"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', upstream: 'http://a' }]",
            "1: listeners[0].upstream: does not apply to a forward listener; "
                + "expected kind: reverse, or no upstream"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', kind: socks }]",
            "1: listeners[0].kind: \"socks\" is not valid; expected one of forward, reverse, "
                + "socks5, transparent"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', kind: socks5, http2: off }]",
            "1: listeners[0].http2: does not apply to a socks5 listener; expected no http2"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', mode: \"0660\" }]",
            "1: listeners[0].mode: applies only to a Unix socket; "
                + "expected address: unix:PATH, or no mode"),
        Wrong(
            "listeners: [{ address: 'unix:/a' }, { address: 'unix:/a' }]",
            "1: listeners[1].address: unix:/a is used by another listener or by admin; "
                + "expected a different address"),
        Wrong(
            "access: { clients: [0.0.0.0] }",
            "1: access.clients[0]: 0.0.0.0 is no client's address; expected a network, an "
                + "address, or unix for the clients of Unix sockets"),
        Wrong(
            "listeners: [{ address: '127.0.0.1:1', name: 'a b' }]",
            "1: listeners[0].name: \"a b\" is not valid; "
                + "expected 1 to 64 letters, digits, `.`, `_` and `-`"),
        Wrong(
            """
            listeners:
              - { name: a, address: "127.0.0.1:1" }
              - { name: a, address: "127.0.0.1:1" }
            """,
            "3: listeners[1].name: another listener is named \"a\"; expected a unique name",
            "3: listeners[1].address: 127.0.0.1:1 is used by another listener or by "
                + "admin; expected a different address"),
        Wrong(
            "listeners:\n  - address: 127.0.0.1:9090",
            "2: listeners[0].address: 127.0.0.1:9090 is used by another listener or by "
                + "admin; expected a different address"),
        Wrong(
            "admin: { address: '127.0.0.1:8080' }",
            "1: admin.address: 127.0.0.1:8080 is used by the default listener; "
                + "expected a different address, or listeners that do not use it"),
        Wrong(
            "listeners:\nadmin:\n  address: localhost:8080",
            "3: admin.address: 127.0.0.1:8080 is used by the default listener; "
                + "expected a different address, or listeners that do not use it"),
    ])
    func `a wrong listener is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(arguments: [
        "", "8080", "127.0.0.1", ":8080", "example.com:80", "::1:80", "127.0.0.1:65536",
    ])
    func `an address is a literal and a port`(address: String) {
        let lines = errors(of: "listeners: [{ address: '\(address)' }]")
        #expect(lines.count == 1)
        #expect(
            lines.allSatisfy { $0.contains("listeners[0].address: \"\(address)\" is not valid") })
    }

    @Test func `ephemeral ports are not duplicates`() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:0" }, { address: "127.0.0.1:0" }]
            admin: { address: "127.0.0.1:0" }
            """
        #expect(try load(text).listeners.map(\.name) == ["forward", "forward-2"])
    }

    @Test func `the default listener's address is free if other listeners are configured`() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:8081" }]
            admin: { address: "127.0.0.1:8080" }
            """
        #expect(try load(text).admin.address.description == "127.0.0.1:8080")
    }

    @Test(arguments: ["0.0.0.0:8080", "[::]:8080", "192.168.1.1:8080", "[fe80::1]:8080"])
    func `a listener on other addresses needs client networks`(address: String) {
        let listener = "listeners: [{ address: '\(address)' }]\n"
        for access in ["", "access: {}", "access: { clients: [] }", "access: { clients: }"] {
            #expect(
                errors(of: listener + access) == [
                    "gateway.yaml:1: listeners[0].address: \(address) is not a loopback address "
                        + "and access.clients names no networks: this would be an open proxy; "
                        + "expected access.clients with the networks to serve, "
                        + "or a loopback address"
                ])
        }
        #expect(errors(of: listener + "access: { clients: [10.0.0.0/8] }").isEmpty)
        #expect(errors(of: listener + "access: { clients: ['0.0.0.0/0', '::/0'] }").isEmpty)
    }

    @Test func `a reverse listener on other addresses needs client networks too`() {
        let text = """
            listeners: [{ address: "0.0.0.0:80", kind: reverse, upstream: "http://a" }]
            """
        #expect(errors(of: text).count == 1)
    }

    @Test(arguments: [
        "127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1",
    ])
    func `a loopback listener needs no client networks`(address: String) {
        #expect(errors(of: "listeners: [{ address: '\(address)' }]").isEmpty)
    }

    @Test func `an admin address other than loopback needs a token`() throws {
        #expect(
            errors(of: "admin: { address: '0.0.0.0:9090' }") == [
                "gateway.yaml:1: admin.address: 0.0.0.0:9090 is not a loopback address and "
                    + "admin.tokenFile is missing; expected admin.tokenFile, admin.tls with "
                    + "clientRoots, admin.metrics: open, or a loopback address"
            ])
        try withTemporaryFolder { folder in
            try write(" s3cret.~\n", to: "admin.token", in: folder)
            let snapshot = try load(
                "admin: { address: '0.0.0.0:9090', tokenFile: admin.token }", folder: folder)
            #expect(snapshot.admin.token?.bytes == Array("s3cret.~".utf8))
            #expect(snapshot.admin.token?.path == folder + "/admin.token")
        }
    }

    @Test func `a token file must have a token`() throws {
        try withTemporaryFolder { folder in
            try write(" \n", to: "empty", in: folder)
            try write("two words", to: "words", in: folder)
            for (name, problem) in [
                ("none", "cannot be read: No such file or directory; expected a readable file"),
                ("empty", "is empty; expected a file with one token of visible ASCII characters"),
                (
                    "words",
                    "has no valid token; expected a file with one token of visible ASCII characters"
                ),
            ] {
                #expect(
                    errors(of: "admin: { tokenFile: \(name) }", folder: folder) == [
                        "gateway.yaml:1: admin.tokenFile: \"\(folder)/\(name)\" \(problem)"
                    ])
            }
        }
    }
}
