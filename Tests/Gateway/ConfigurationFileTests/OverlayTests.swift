import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

@Suite("Options on top of a file")
struct OverlayTests {
    private func overlay(_ change: (inout CommandLineOverlay) -> Void) -> CommandLineOverlay {
        var overlay = CommandLineOverlay()
        change(&overlay)
        return overlay
    }

    @Test func `--listen replaces the forward listeners and keeps the reverse ones`() throws {
        let options = overlay { $0.listen = ["127.0.0.1:1", "[::1]:0"] }
        #expect(
            try loadDefaults(overlay: options).listeners.map(\.address.description)
                == ["127.0.0.1:1", "[::1]:0"])
        let snapshot = try load(
            """
            listeners:
              - { name: a, address: "127.0.0.1:2" }
              - { name: b, address: "127.0.0.1:3", kind: reverse, upstream: "http://b" }
            """, overlay: options)
        #expect(snapshot.listeners.map(\.name) == ["forward", "forward-2", "b"])
    }

    @Test func `--reverse adds a listener or replaces the one at its address`() throws {
        let options = overlay {
            $0.reverse = ["127.0.0.1:8081=https://a.example", "127.0.0.1:0=http://[::1]:8000/"]
        }
        let defaults = try loadDefaults(overlay: options)
        #expect(defaults.listeners.map(\.name) == ["proxy", "reverse", "reverse-2"])
        #expect(
            defaults.listeners[1].kind
                == .reverse(UpstreamOrigin(scheme: .https, host: "a.example", port: 443)))
        #expect(
            defaults.listeners[2].kind
                == .reverse(UpstreamOrigin(scheme: .http, host: "::1", port: 8000)))
        let replaced = try load(
            "listeners: [{ name: a, address: '127.0.0.1:8081' }]", overlay: options)
        #expect(replaced.listeners.map(\.name) == ["reverse", "reverse-2"])
    }

    @Test func `--intercept uses the file's CA, or the one in the state directory`() {
        let options = overlay { $0.intercept = ["a.test", "**.b.test"] }
        let authority = "interception: { certificate: x.pem, key: x.key }"
        let text = "hosts: [{ match: [c.test, a.test], intercept: false }]"
        for text in [text, text + "\n" + authority] {
            // The files are missing, which is the only error.
            let found = errors(of: text, overlay: options)
            let state = "/home/someone/.local/state/pinfold"
            let named = text.contains("x.pem") ? "x.pem" : state + "/ca.pem"
            #expect(found.count == 1, "\(found)")
            let source = text.contains("x.pem") ? "interception.certificate: " : "--intercept: "
            #expect(found.first?.contains(source) == true, "\(found)")
            #expect(found.first?.contains(named) == true, "\(found)")
        }
    }

    @Test func `two options for one address are an error`() {
        func taken(by option: String) -> String {
            "\(option): 127.0.0.1:1 is used by another listener or by admin; expected a different "
                + "address"
        }
        let both = overlay {
            $0.listen = ["127.0.0.1:1"]
            $0.reverse = ["127.0.0.1:1=http://a"]
        }
        #expect(errors(of: "workers: 1", overlay: both) == [taken(by: "--reverse")])
        let twice = overlay { $0.reverse = ["127.0.0.1:1=http://a", "127.0.0.1:1=http://b"] }
        #expect(errors(of: "workers: 1", overlay: twice) == [taken(by: "--reverse")])
        // The first option replaces the file's listener; the second does not replace the first.
        #expect(
            errors(of: "listeners: [{ address: '127.0.0.1:1' }]", overlay: twice)
                == [taken(by: "--reverse")])
        let listenTwice = overlay { $0.listen = ["127.0.0.1:1", "127.0.0.1:1"] }
        #expect(errors(of: "workers: 1", overlay: listenTwice) == [taken(by: "--listen")])
        let admin = overlay { $0.admin = "127.0.0.1:8080" }
        #expect(
            errors(of: "workers: 1", overlay: admin) == [
                "--admin: 127.0.0.1:8080 is used by the default listener; "
                    + "expected a different address, or listeners that do not use it"
            ])
    }

    @Test func `the default listener is replaced by a reverse one at its address`() throws {
        let options = overlay { $0.reverse = ["127.0.0.1:8080=http://a"] }
        #expect(try loadDefaults(overlay: options).listeners.map(\.name) == ["reverse"])
    }

    @Test func `the other options replace or add one key and leave the rest`() throws {
        let text = """
            admin: { address: "127.0.0.1:1" }
            access: { connectPorts: any, destinations: { allow: [10.0.0.0/8], deny: [a.example] } }
            cache: { memory: 1MiB, path: x }
            tls: { minimum: 1.3 }
            workers: 1
            """
        try withTemporaryFolder { folder in
            try write(SampleCertificate.pem, to: "ca.pem", in: folder)
            var environment = testEnvironment
            environment.workingFolder = folder
            let options = overlay {
                $0.admin = "127.0.0.1:2"
                $0.allowDestination = ["localhost", "127.0.0.0/8"]
                $0.cachePath = "cache"
                $0.roots = ["system", "ca.pem"]
                $0.workers = "3"
            }
            let snapshot = try load(text, overlay: options, environment: environment)
            #expect(snapshot.admin.address.endpoint?.port == 2)
            #expect(
                snapshot.access.allow.networks.map(\.description) == ["10.0.0.0/8", "127.0.0.0/8"])
            #expect(snapshot.access.allow.patterns.map(\.description) == ["localhost"])
            #expect(snapshot.access.deny.patterns.map(\.description) == ["a.example"])
            #expect(snapshot.access.connectPorts == .any)
            #expect(snapshot.cache.path == folder + "/cache")
            #expect(snapshot.cache.memoryBytes == 1 << 20)
            #expect(snapshot.tls.minimum == .tls13)
            #expect(snapshot.tls.roots.count == 2)
            #expect(snapshot.workers.count == 3)
            // The same options without a file.
            let defaults = try loadDefaults(overlay: options, environment: environment)
            #expect(defaults.access.allow.networks.map(\.description) == ["127.0.0.0/8"])
            #expect(defaults.cache.path == folder + "/cache")
        }
    }

    @Test func `an error names the option in place of the line`() {
        let options = overlay {
            $0.listen = ["0.0.0.0:1"]
            $0.reverse = ["8081", "127.0.0.1:3=ftp://a"]
            $0.admin = "here"
            $0.allowDestination = ["a..b"]
            $0.cachePath = ""
            $0.roots = ["none.pem"]
            $0.workers = "0"
        }
        let problems = errors(of: "limits: { fields: 0 }", overlay: options).map {
            String($0.prefix { $0 != ";" })
        }
        let expected: [String] = [
            "gateway.yaml:1: limits.fields: 0 is out of range",
            "--reverse: \"8081\" has no `=`",
            "--allow-destination: \"a..b\" is not a host pattern: two dots in a row, or a dot at "
                + "the start",
            "--roots: \"/srv/none.pem\" cannot be read: No such file or directory",
            "--admin: \"here\" is not valid",
            "--listen: 0.0.0.0:1 is not a loopback address and access.clients names no networks: "
                + "this would be an open proxy",
            "--reverse: \"ftp://a\" is not valid",
            "--workers: 0 is out of range",
            "--cache-path: \"\" is not valid",
        ]
        #expect(problems == expected)
    }

    @Test func `an option does not hide a wrong shape in the file`() {
        let options = overlay {
            $0.listen = ["127.0.0.1:1"]
            $0.cachePath = "/tmp"
            $0.allowDestination = ["a"]
        }
        #expect(
            errors(
                of: "listeners: 5\ncache: 5\naccess: { destinations: { allow: 5 } }",
                overlay: options
            )
            .map { $0.split(separator: ";")[0] } == [
                "gateway.yaml:1: listeners: is a single value",
                "gateway.yaml:2: cache: is a single value",
                "gateway.yaml:3: access.destinations.allow: is a single value",
            ])
    }
}
