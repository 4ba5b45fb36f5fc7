import HTTPCore
import PinfoldConfiguration
import RedisProtocol
import TestSupport
import Testing

@testable import Gateway

@Suite("cache.shared")
struct SharedCacheKeyTests {
    private static let secret = String(repeating: "0123456789abcdef", count: 2)

    /// What is read of a section, in a folder with the files `fleet.key` and `secret`.
    private func read(
        _ text: String, keys: String = secret, environment: ConfigurationEnvironment? = nil
    ) throws -> SharedCacheConfiguration {
        try withTemporaryFolder { folder in
            try write(keys, to: "fleet.key", in: folder)
            try write("pass word\r\nsecond line", to: "secret", in: folder)
            let shared = try load(
                "cache: { shared: \(text) }", folder: folder + "/",
                environment: environment ?? testEnvironment
            ).cache.shared
            return try #require(shared)
        }
    }

    /// Its errors, without the place of the section, and without the folder.
    private func problems(_ text: String, keys: String = secret) throws -> [String] {
        try withTemporaryFolder { folder in
            try write(keys, to: "fleet.key", in: folder)
            try write("password", to: "secret", in: folder)
            try write("", to: "empty", in: folder)
            let start = "gateway.yaml:1: cache.shared"
            return errors(of: "cache: { shared: \(text) }", folder: folder + "/").map { line in
                let line = line.replacing("\(folder)/", with: "")
                return line.hasPrefix(start) ? String(line.dropFirst(start.count)) : line
            }
        }
    }

    @Test func `without it nothing is shared`() throws {
        #expect(try load("cache: {}").cache.shared == nil)
    }

    @Test func `a Unix socket needs nothing else`() throws {
        let shared = try read("{ url: unix:/run/redis.sock }")
        #expect(shared.place == .url(try RedisURL("unix:///run/redis.sock")))
        #expect(shared.keys == nil && shared.user == nil && shared.password == nil)
        #expect(shared.timeoutMilliseconds == 20)
        #expect(shared.waitMilliseconds == 2_000)
        #expect(shared.maximumObjectBytes == 8_388_608)
        #expect(shared.prefix == "pinfold:" && shared.name == nil)
        #expect(shared.graceMilliseconds == 10_000)
        #expect(try read("{ url: 'unix:///run/redis.sock' }") == shared)
    }

    @Test func `everything can be said`() throws {
        let shared = try read(
            """
            { url: "rediss://Cache.Example.com/2", user: gateway, passwordFile: secret,
              keyFile: fleet.key, timeout: 5ms, wait: 0s, maximumObject: 1MiB,
              prefix: "a:", name: gw-1, grace: 1m }
            """)
        #expect(shared.place == .url(try RedisURL("rediss://cache.example.com/2")))
        #expect(shared.userInForce == "gateway")
        #expect(shared.password?.text == "pass word")
        #expect(shared.keys?.secrets.map(\.text) == [Self.secret])
        #expect(shared.timeoutMilliseconds == 5 && shared.maximumObjectBytes == 1_048_576)
        #expect(shared.waitMilliseconds == 0)
        #expect(shared.prefix == "a:" && shared.name == "gw-1")
        #expect(shared.graceMilliseconds == 60_000)
    }

    @Test func `the user may be in the URL, and the password in a variable`() throws {
        let shared = try read(
            "{ url: 'redis://gateway@localhost', passwordVariable: SECRET, keyFile: fleet.key }",
            environment: environment(with: ["SECRET": "from outside"]))
        #expect(shared.userInForce == "gateway")
        #expect(shared.password?.text == "from outside")
    }

    @Test func `Sentinels have a port of their own`() throws {
        let shared = try read(
            """
            { sentinels: [10.0.0.1, "b.example:7", "[::1]"], master: cache, sentinelUser: watch,
              sentinelPasswordFile: secret, keyFile: fleet.key }
            """)
        guard case .sentinels(let sentinels) = shared.place else {
            Issue.record("\(shared.placeText)")
            return
        }
        #expect(
            sentinels.nodes.map(\.description) == [
                "10.0.0.1:26379", "b.example:7", "[::1]:26379",
            ])
        #expect(sentinels.master == "cache" && !sentinels.isSecure)
        #expect(sentinels.user == "watch" && sentinels.password?.text == "pass word")
        #expect(shared.placeText == "cache, by Sentinels")
        let secure = try read(
            "{ sentinels: ['rediss://a.test'], master: m, keyFile: fleet.key }")
        guard case .sentinels(let sentinels) = secure.place else {
            Issue.record("\(secure.placeText)")
            return
        }
        #expect(sentinels.isSecure)
    }

    @Test func `a cluster is named by some of its nodes`() throws {
        let shared = try read(
            "{ cluster: [10.0.0.1, 'b.example:7', '[::1]'], user: u, passwordFile: secret, "
                + "keyFile: fleet.key }")
        guard case .cluster(let cluster) = shared.place else {
            Issue.record("\(shared.placeText)")
            return
        }
        #expect(
            cluster.nodes.map(\.description) == ["10.0.0.1:6379", "b.example:7", "[::1]:6379"])
        #expect(!cluster.isSecure && shared.userInForce == "u")
        #expect(shared.password?.text == "pass word")
        #expect(
            shared.placeText == "the cluster of 10.0.0.1:6379, b.example:7, [::1]:6379")
        let secure = try read("{ cluster: ['rediss://a.test'], keyFile: fleet.key }")
        guard case .cluster(let cluster) = secure.place else {
            Issue.record("\(secure.placeText)")
            return
        }
        #expect(cluster.isSecure && cluster.nodes.map(\.port) == [6379])
    }

    @Test func `several secrets are accepted, and the first is written with`() throws {
        let other = String(repeating: "x", count: 40)
        let shared = try read(
            "{ url: 'redis://localhost', keyFile: fleet.key }",
            keys: "\(other)\r\n\n\(Self.secret)\n")
        #expect(shared.keys?.secrets.map(\.text) == [other, Self.secret])
    }

    @Test(arguments: [
        (
            "{}",
            ": says no engine; expected url, cluster, or sentinels and the name of "
                + "their master"
        ),
        ("~", ": is empty; expected a mapping with url"),
        (
            "{ url: 'redis://localhost' }",
            ": has no keyFile, by which this fleet's gateways know what they have written "
                + "themselves; expected keyFile, or the Unix socket of an engine that only this "
                + "fleet reaches"
        ),
        (
            "{ url: 'http://localhost', keyFile: fleet.key }",
            ".url: \"http://localhost\" cannot be used: its scheme is none of redis, rediss and "
                + "unix; expected redis://HOST:PORT, rediss://HOST:PORT (with /DATABASE), or "
                + "unix:/PATH"
        ),
        (
            "{ url: 'redis://u:hidden@localhost', keyFile: fleet.key }",
            ".url: has a password in it; expected it in passwordFile or passwordVariable"
        ),
        (
            "{ url: unix:/s, sentinels: [a], master: m }",
            ".sentinels: is given beside url; expected one of url, sentinels, cluster"
        ),
        (
            "{ url: unix:/s, cluster: [a] }",
            ".cluster: is given beside url; expected one of url, sentinels, cluster"
        ),
        (
            "{ sentinels: [a], cluster: [b], master: m }",
            ".cluster: is given beside sentinels; expected one of url, sentinels, cluster"
        ),
        (
            "{ cluster: [a], master: m, keyFile: fleet.key }",
            ".master: is for sentinels only; expected sentinels, too"
        ),
        (
            "{ cluster: ['redis://a', 'rediss://b'], keyFile: fleet.key }",
            ".cluster: has both redis and rediss; expected one of them for all"
        ),
        (
            "{ cluster: ['rediss://a:1/2'], keyFile: fleet.key }",
            ".cluster[0]: \"rediss://a:1/2\" has more than a host and a port; expected 1 to 32 of "
                + "HOST, HOST:PORT or rediss://HOST:PORT"
        ),
        (
            "{ cluster: [], keyFile: fleet.key }",
            ".cluster: has none; expected 1 to 32 of HOST, HOST:PORT or rediss://HOST:PORT"
        ),
        (
            "{ cluster: ['unix:/s'], keyFile: fleet.key }",
            ".cluster[0]: \"unix:/s\" has more than a host and a port; expected 1 to 32 of HOST, "
                + "HOST:PORT or rediss://HOST:PORT"
        ),
        (
            "{ url: unix:/s, master: m }",
            ".master: is for sentinels only; expected sentinels, too"
        ),
        (
            "{ sentinels: [a], keyFile: fleet.key }",
            ".master: is missing; expected the name of the master"
        ),
        (
            "{ sentinels: [a, 'rediss://b'], master: m, keyFile: fleet.key }",
            ".sentinels: has both redis and rediss; expected one of them for all"
        ),
        (
            "{ sentinels: ['u@a/1'], master: m, keyFile: fleet.key }",
            ".sentinels[0]: \"u@a/1\" has more than a host and a port; expected 1 to 32 of HOST, "
                + "HOST:PORT or rediss://HOST:PORT"
        ),
        (
            "{ url: unix:/s, user: u }",
            ": has a user without a password; expected one of passwordFile, passwordVariable"
        ),
        (
            "{ url: 'unix://a@/s', user: u, passwordFile: secret }",
            ".user: is another user than that of cache.shared.url; expected one of them"
        ),
        (
            "{ url: unix:/s, passwordFile: secret, passwordVariable: V }",
            ".passwordVariable: is a second source of the password; expected one"
        ),
        (
            "{ url: unix:/s, passwordFile: empty }",
            ".passwordFile: \"empty\" is empty; expected UTF-8 text of at most 512 bytes in its "
                + "first line"
        ),
        (
            "{ url: unix:/s, prefix: 'a{b' }",
            ".prefix: \"a{b\" is not valid; expected at most 64 visible ASCII characters without "
                + "braces"
        ),
        (
            "{ url: unix:/s, timeout: 1h }",
            ".timeout: 1h is out of range; expected a duration from 1ms to 10s, with ms, s, m, h "
                + "or d"
        ),
    ])
    func `what is wrong is said`(text: String, expected: String) throws {
        #expect(try problems(text) == [expected])
    }

    @Test(arguments: [
        ("", "\"fleet.key\" is empty"),
        ("\n\r\n", "\"fleet.key\" is empty"),
        ("short", "line 1 of \"fleet.key\" is too short (5 characters)"),
        (
            "\(secret)\n\(String(repeating: "a", count: 1025))",
            "line 2 of \"fleet.key\" is too long (1025 characters)"
        ),
        (
            "\(secret) \n", "line 1 of \"fleet.key\" has other characters than visible ASCII ones"
        ),
        ("\(secret)\n\(secret)", "line 2 of \"fleet.key\" is there twice"),
        (
            (1...5).map { secret + "\($0)" }.joined(separator: "\n"),
            "\"fleet.key\" has 5 secrets"
        ),
    ])
    func `a file of secrets that cannot be used is refused, without printing them`(
        keys: String, problem: String
    ) throws {
        let found = try problems("{ url: unix:/s, keyFile: fleet.key }", keys: keys)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(".keyFile: \(problem); expected ") ?? false, "\(found)")
        #expect(!found.contains { $0.contains(Self.secret) })
    }

    @Test func `an engine elsewhere in clear text causes a warning`() throws {
        func found(_ place: String) throws -> [String] {
            try withTemporaryFolder { folder in
                try write(Self.secret, to: "fleet.key", in: folder)
                return try warnings(
                    of: "cache: { shared: { \(place), keyFile: fleet.key } }", folder: folder + "/"
                ).filter { $0.contains("clear text") }
            }
        }
        #expect(try found("url: 'redis://cache.example.com'").count == 1)
        #expect(try found("sentinels: [10.0.0.1], master: m").count == 1)
        #expect(try found("cluster: [127.0.0.1, 10.0.0.1]").count == 1)
        #expect(try found("cluster: [127.0.0.1]").isEmpty)
        #expect(try found("cluster: ['rediss://10.0.0.1']").isEmpty)
        for place in ["redis://127.0.0.1", "redis://[::1]:1", "redis://localhost", "rediss://c.x"] {
            #expect(try found("url: '\(place)'").isEmpty)
        }
    }

    @Test func `without a cache it causes a warning`() throws {
        let text = "cache: { enabled: false, shared: { url: unix:/s } }"
        #expect(
            try warnings(of: text).contains { line in
                line.contains("cache.shared: is not used, because cache.enabled is false")
            })
    }

    @Test func `it is printed without secrets, and that means the same`() throws {
        try withTemporaryFolder { folder in
            try write(Self.secret, to: "fleet.key", in: folder)
            try write("password", to: "secret", in: folder)
            for text in [
                "{ url: 'rediss://a.test:1/2', user: u, passwordFile: secret, keyFile: fleet.key }",
                "{ url: 'unix://u@/run/s?db=3', passwordFile: secret, name: n, grace: 2s }",
                "{ cluster: ['rediss://a.test', 'rediss://[::1]:2'], keyFile: fleet.key }",
                "{ sentinels: ['rediss://a.test', 'rediss://b.test:2'], master: m, sentinelUser: w,"
                    + " sentinelPasswordFile: secret, keyFile: fleet.key, maximumObject: 1KiB }",
            ] {
                let snapshot = try load("cache: { shared: \(text) }", folder: folder + "/")
                let printed = snapshot.effectiveYAML()
                #expect(!printed.contains(Self.secret) && !printed.contains(": \"password\""))
                #expect(try load(printed, folder: folder + "/").cache == snapshot.cache)
            }
        }
    }

    @Test func `changes of it, and of its files, need a restart`() throws {
        try withTemporaryFolder { folder in
            try write(Self.secret, to: "fleet.key", in: folder)
            let text = "cache: { shared: { url: unix:/s, keyFile: fleet.key } }"
            let before = try load(text, folder: folder + "/")
            #expect(try load("cache: {}").keysThatNeedRestart(after: before) == ["cache"])
            #expect(try load(text, folder: folder + "/").keysThatNeedRestart(after: before) == [])
            try write(Self.secret + "1\n" + Self.secret, to: "fleet.key", in: folder)
            let after = try load(text, folder: folder + "/")
            #expect(after.keysThatNeedRestart(after: before) == ["cache"])
            let differences = ConfigurationDifference.all(from: before, to: after)
            #expect(differences.map(\.section) == ["cache"])
            #expect(!differences.contains { "\($0)".contains(Self.secret) })
        }
    }
}
