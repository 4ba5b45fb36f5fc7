import PinfoldConfiguration
import Testing
import Trust

@testable import Gateway

@Suite("A configuration with a policy")
struct PolicyMergeTests {
    let signers: PolicySigners

    init() throws { signers = try PolicySigners() }

    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func problems(_ policy: String, over local: String = "") -> [String] {
        errors(of: signers.local(local), with: signers.policy(policy))
    }

    @Test func `the policy's entries follow the local ones`() throws {
        let local = """
            hosts: [{ match: [a.example] }, { match: ["**"], cache: { store: false } }]
            access:
              rules: [{ name: own, ports: [22], action: deny }]
              destinations: { deny: [x.example] }
            pinsets: { own: { mode: publicKey, pins: ["\(Self.pin)"] } }
            """
        let policy = """
            hosts:
              - { match: [b.example], pinsets: [theirs] }
            access:
              rules: [{ name: theirs, hosts: [c.example], action: deny, status: 451 }]
              destinations: { deny: [y.example] }
            pinsets: { theirs: { mode: publicKey, pins: ["\(Self.pin)"] } }

            """
        let loaded = try load(signers.local(local), with: signers.policy(policy))
        let snapshot = loaded.snapshot
        #expect(snapshot.hosts.entries.map(\.label) == ["a.example", "**", "b.example"])
        #expect(snapshot.hosts.localCount == 2 && snapshot.hosts.everyOther == 1)
        // It begins as the entry that would apply without it.
        #expect(!snapshot.hosts.entries[2].cacheStores)
        #expect(snapshot.hosts.entries[2].pinsets == [1])
        #expect(snapshot.access.rules.map(\.name) == ["own", "theirs"])
        #expect(snapshot.access.deny.texts == ["x.example", "y.example"])
        #expect(snapshot.pinsets.map(\.pinset.name) == ["own", "theirs"])
        let inForce = try #require(snapshot.policyInForce)
        #expect(inForce.serial == 7 && inForce.keys == [signers.trusted])
        #expect((inForce.hosts, inForce.pinsets, inForce.rules) == (1, 1, 1))
        #expect(loaded.local?.loaded.snapshot.hosts.entries.count == 2)
    }

    @Test func `an empty policy changes nothing`() throws {
        var with = try load(signers.local(), with: signers.policy("{}\n")).snapshot
        with.policyInForce = nil
        #expect(try load(signers.local()) == with)
    }

    @Test(arguments: [
        ("", "has no keys"), ("hosts\n", "is a single value"), ("- a\n", "is a list"),
        ("{}\n---\n{}\n", "but found another document"), ("hosts: {}\n", "is a mapping"),
        ("pinsets: []\n", "is a list"), ("access: []\n", "is a list"),
        ("hosts: []\nhosts: []\n", "duplicate key"), ("hosts: [*a]\n", "has no anchor"),
        ("access: { rules: {} }\n", "is a mapping"),
    ])
    func `what is no policy is refused`(_ policy: String, _ problem: String) throws {
        let first = try #require(problems(policy).first)
        #expect(first.hasPrefix("policy.yaml") && first.contains(problem), "\(first)")
    }

    /// Every key that configurations have and policies have not.
    @Test func `other keys are refused by name and line`() throws {
        let known = Set(PolicyKey.allCases.map(\.rawValue))
        let above = Set(
            known.flatMap { key -> [String] in
                let parts = key.split(separator: ".")
                return (1..<parts.count).map { parts.prefix($0).joined(separator: ".") }
            })
        func refused(_ yaml: String, _ key: String) throws {
            let found = problems(yaml)
            #expect(
                found.contains { $0.contains("may not be in a policy") && $0.contains(key) },
                "\(key): \(found)")
        }
        for section in SectionName.allCases where !above.contains(section.rawValue) {
            try refused("\(section.rawValue): x\n", section.rawValue)
        }
        for key in HostEntry.table(pinsets: []).names
        where !known.contains("hosts.\(key)") && !above.contains("hosts.\(key)") {
            try refused("hosts:\n  - match: [a.example]\n    \(key): x\n", "hosts[0].\(key)")
        }
        for key in PinsetEntry.table.names where !known.contains("pinsets.NAME.\(key)") {
            try refused("pinsets:\n  p:\n    \(key): x\n", "pinsets.p.\(key)")
        }
        for key in AccessConfiguration.table.names
        where !known.contains("access.\(key)") && !above.contains("access.\(key)") {
            try refused("access:\n  \(key): x\n", "access.\(key)")
        }
        for key in AccessRule.table.names where !known.contains("access.rules.\(key)") {
            try refused("access:\n  rules:\n    - \(key): x\n", "access.rules[0].\(key)")
        }
        for key in UpstreamTLS.hostTable.names where !known.contains("hosts.tls.\(key)") {
            try refused(
                "hosts:\n  - match: [a.example]\n    tls: { \(key): x }\n", "hosts[0].tls.\(key)")
        }
    }

    /// Every key of a policy is one of configurations.
    @Test func `there are no keys that configurations do not have`() {
        var keys = HostEntry.table(pinsets: []).names.map { "hosts.\($0)" }
        keys += UpstreamTLS.hostTable.names.map { "hosts.tls.\($0)" }
        keys += PinsetEntry.table.names.map { "pinsets.NAME.\($0)" }
        keys += AccessConfiguration.table.names.map { "access.\($0)" }
        keys += AccessRule.table.names.map { "access.rules.\($0)" }
        keys += ["access.destinations.deny", "hosts.cache.store"]
        #expect(PolicyKey.allCases.filter { !keys.contains($0.rawValue) } == [])
    }

    private static let hostile: [(local: String, policy: String, problem: String)] = [
        ("", "access: { destinations: { allow: [10.0.0.1] } }", "destinations.allow: may not be"),
        ("", "hosts: [{ match: [\"${HOME}\"] }]", "names a variable"),
        ("", "pinsets: { p: { mode: publicKey, pins: [/etc/passwd] } }", "is a file"),
        ("", "pinsets: { p: { mode: publicKey, pins: [key.pem] } }", "is a file"),
        (
            "", "pinsets: { p: { mode: certificate, pins: [\"\(fingerprint)\"] } }",
            "makes roots of what is pinned"
        ),
        (
            "",
            "pinsets: { p: { mode: publicKey, pins: [\"\(pin)\"], "
                + "reportTo: \"https://e.example/\" } }",
            "no pinset of the local file reports to"
        ),
        (
            "pinsets: { loose: { mode: publicKey, pins: [\"\(pin)\"], "
                + "allowInvalidCertificates: true } }",
            "hosts: [{ match: [a.example], pinsets: [loose] }]",
            "pinsets: the pinset loose may accept"
        ),
        (
            "pinsets: { loose: { mode: publicKey, pins: [\"\(pin)\"], "
                + "validatesDomainName: false } }",
            "hosts: [{ match: [a.example], pinsets: [loose] }]",
            "pinsets: the pinset loose may accept"
        ),
        (
            "pinsets: { own: { mode: publicKey, pins: [\"\(pin)\"] } }",
            "pinsets: { own: { mode: publicKey, pins: [\"\(pin)\"] } }", "duplicate key"
        ),
        ("", "hosts: [{ match: [a.example], tunnel: pass }]", "tunnel: pass is not as strict"),
        ("", "hosts: [{ match: [a.example], clearText: allow }]", "clearText: allow is not as"),
        (
            "", "hosts: [{ match: [a.example], switchProtocols: allow }]",
            "switchProtocols: allow is not as strict"
        ),
        ("", "hosts: [{ match: [a.example], liveTunnels: keep }]", "liveTunnels: keep is not as"),
        (
            "", "hosts: [{ match: [a.example], tls13Tunnel: intercept }]",
            "tls13Tunnel: intercept is"
        ),
        ("", "hosts: [{ match: [a.example], http2: require }]", "http2: require is not as strict"),
        (
            "", "hosts: [{ match: [a.example], tls: { profile: lenient } }]",
            "profile: lenient is not"
        ),
        (
            "tls: { minimum: \"1.3\" }",
            "hosts: [{ match: [a.example], tls: { minimum: \"1.2\" } }]",
            "minimum: 1.2 is not as strict"
        ),
        (
            "hosts: [{ match: [\"**\"], upgrade: https }]",
            "hosts: [{ match: [a.example], upgrade: none }]", "upgrade: none is not as strict"
        ),
        (
            "hosts: [{ match: [\"**\"], tunnel: refuse }]",
            "hosts: [{ match: [a.example], tunnel: inspect }]", "tunnel: inspect is not as strict"
        ),
        (
            "hosts: [{ match: [\"**\"], tunnel: refuse }]",
            "hosts: [{ match: [\"**\"] }]", "'**' has an entry in the local file"
        ),
        (
            "hosts: [{ match: [\"**\"], cache: { store: false } }]",
            "hosts: [{ match: [a.example], cache: { store: true } }]", "true is not as strict"
        ),
        (
            "hosts: [{ match: [a.example], name: mine }]",
            "hosts: [{ match: [b.example], name: mine }]", "is the name of a local entry"
        ),
        (
            "access: { rules: [{ name: p, ports: [443], action: deny }] }",
            "hosts: [{ match: [a.example], upgrade: https }]", "leads to port 443"
        ),
        (
            "access: { rules: [{ name: p, hosts: [\"x.example:443\"], action: deny }] }",
            "hosts: [{ match: [x.example], upgrade: https }]", "leads to port 443"
        ),
        (
            "access: { rules: [{ name: p, hosts: [x.example], action: allow, tunnel: inspect }] }",
            "hosts: [{ match: [x.example], tls13Tunnel: probe }]", "tls13Tunnel: probe is not as"
        ),
        (
            "parents: { corp: { url: \"https://proxy.example:3128\" } }\n"
                + "ways: { parents: [corp, direct] }",
            "hosts: [{ match: [a.example] }, { match: [\"*.example\"], http2: off }]",
            "hosts[1].match: applies to proxy.example:3128, which is the local parent corp"
        ),
        ("", "hosts: [{ match: [default] }]", "is what hosts without an entry are called"),
        ("", "hosts: [{ match: [a.example], name: none }]", "is what hosts without an entry"),
        (
            "hosts: [{ match: [a.example], name: b.example }]", "hosts: [{ match: [b.example] }]",
            "is the name of a local entry"
        ),
        ("", "access: { destinations: [{ deny: [a.example] }] }", "destinations: is a list"),
        ("", "access: { destinations: a.example }", "destinations: is a single value"),
        ("access: { hosts: listed }", "access: { hosts: any }", "any is not as strict as listed"),
        (
            "access: { default: deny, rules: [{ name: a, hosts: [x.example], action: allow }] }",
            "access: { default: allow }", "allow is not as strict as deny"
        ),
        (
            "access: { default: deny, rules: [{ name: a, hosts: [x.example], action: allow }] }",
            "access: { rules: [{ name: b, action: allow }] }", "action: allow would serve"
        ),
        (
            "", "access: { rules: [{ name: b, action: allow, tunnel: pass }] }",
            "tunnel: pass may let tunnels pass"
        ),
        (
            "", "access: { rules: [{ name: b, action: allow, tunnel: inspect }] }",
            "tunnel: inspect may let tunnels pass"
        ),
        (
            "access: { rules: [{ name: b, ports: [22], action: deny }] }",
            "access: { rules: [{ name: b, action: deny }] }", "there is another rule \"b\""
        ),
        ("", "access: { rules: [{ name: b, lists: [ads], action: deny }] }", "there is no list"),
        ("", "access: { clients: [\"0.0.0.0/0\"] }", "is not within the clients"),
        ("", "access: { clients: [\"10.0.0.0/8\"] }", "is not within the clients"),
        ("", "access: { clients: [unix] }", "is not within the clients"),
        ("", "access: { connectPorts: any }", "has ports that the local file does not have"),
        ("", "access: { connectPorts: [443, 22] }", "has ports that the local file"),
    ]
    private static let fingerprint = String(repeating: "AB", count: 32)

    @Test(arguments: hostile.indices)
    func `what would widen the local file is refused`(_ index: Int) throws {
        let (local, policy, problem) = Self.hostile[index]
        // Each half is valid by itself, so that it is the check of policies that refuses it.
        _ = try load(signers.local(local))
        let found = problems(policy + "\n", over: local)
        #expect(
            found.contains { $0.hasPrefix("policy.yaml:4: ") && $0.contains(problem) }, "\(found)")
    }

    @Test func `paths in errors are those of the policy`() {
        let local = "hosts: [{ match: [a.example] }, { match: [b.example] }]"
        #expect(
            problems("hosts:\n  - match: [c.example]\n    clearText: allow\n", over: local) == [
                "policy.yaml:6: hosts[0].clearText: allow is not as strict as auto, which applies "
                    + "without it; expected auto"
            ])
    }

    private static let narrower: [(local: String, policy: String)] = [
        ("", "hosts: [{ match: [a.example], upgrade: https, tunnel: refuse, clearText: refuse }]"),
        ("", "hosts: [{ match: [a.example], tunnel: inspect, tls13Tunnel: probe }]"),
        ("", "hosts: [{ match: [\"**\"], tunnel: refuse }]"),
        ("", "hosts: [{ match: [a.example], liveTunnels: close, switchProtocols: refuse }]"),
        ("", "hosts: [{ match: [a.example], http2: off, tls: { minimum: \"1.3\" } }]"),
        ("", "hosts: [{ match: [a.example], tls: { profile: pedantic, ocspStapling: required } }]"),
        ("", "hosts: [{ match: [a.example], cache: { store: false }, name: short }]"),
        (
            "hosts: [{ match: [\"**\"], tunnel: pass, clearText: allow }]",
            "hosts: [{ match: [a.example], tunnel: auto, clearText: auto }]"
        ),
        (
            "pinsets: { own: { mode: publicKey, pins: [\"\(pin)\"], "
                + "reportTo: \"https://e.example/\" } }",
            "hosts: [{ match: [a.example], pinsets: [own, p] }]\npinsets: { p: { mode: publicKey, "
                + "pins: [\"\(pin)\"], enforce: false, expires: 2030-01-01, afterExpiry: report, "
                + "reportTo: \"https://e.example/\" } }"
        ),
        ("", "access: { hosts: listed, default: deny, connectPorts: [443], clients: [127.0.0.1] }"),
        ("", "access: { rules: [{ name: a, action: allow, tunnel: refuse }] }"),
        (
            "",
            "access: { rules: [{ name: a, clients: [127.0.0.1], hosts: [a.example], ports: [80], "
                + "methods: [GET], times: [\"mon-fri\"], action: allow, rate: { per: rule, "
                + "requests: 5/s, burst: 9, exchanges: 3, down: 1MiB/s, up: 1MiB/s, day: 1GiB, "
                + "over: delay } }] }"
        ),
        (
            "",
            "access: { rules: [{ name: a, paths: [\"/x/**\"], listeners: [default], "
                + "action: report }] }"
        ),
    ]

    @Test(arguments: narrower.indices)
    func `what only narrows is taken`(_ index: Int) throws {
        let (local, policy) = Self.narrower[index]
        let found = problems(policy + "\n", over: local)
        // Names of listeners are the configuration's own.
        #expect(found.filter { !$0.contains("there is no listener") } == [])
    }

    @Test func `what a policy pins is not let past its pins`() throws {
        let local = "hosts: [{ match: [\"**\"], tunnel: pass, clearText: allow }]"
        let policy = """
            hosts: [{ match: [a.example], pinsets: [p] }, { match: [b.example] }]
            pinsets: { p: { mode: publicKey, pins: ["\(Self.pin)"] } }

            """
        let entries = try load(signers.local(local), with: signers.policy(policy))
            .snapshot.hosts.entries
        #expect(entries[1].tunnel == .auto && entries[1].clearText == .auto)
        #expect(entries[2].tunnel == .pass && entries[2].clearText == .allow)
    }

    @Test func `interception is decided as before`() throws {
        let policy = signers.policy("hosts: [{ match: [a.example], tunnel: inspect }]\n")
        let entries = try load(signers.local("interception: { default: auto }"), with: policy)
            .snapshot.hosts.entries
        // Nothing is, without an authority.
        #expect(entries[0].intercept == .never)
    }

    @Test func `pins that many entries share are counted for each`() {
        let pins = (0..<1_000).map { number in
            var text = Array(Self.pin)
            for (place, digit) in String(1_000 + number).enumerated() { text[10 + place] = digit }
            return "\"\(String(text))\""
        }
        func policy(_ entries: Int) -> String {
            let hosts = (0..<entries).map { "{ match: [h\($0).example], pinsets: [p] }" }
            return "pinsets: { p: { mode: publicKey, pins: [\(pins.joined(separator: ", "))] } }\n"
                + "hosts: [\(hosts.joined(separator: ", "))]\n"
        }
        #expect(problems(policy(100)) == [])
        let found = problems(policy(101))
        #expect(found.count == 1 && found[0].contains("hosts[100].pinsets: the entries have too"))
    }

    @Test func `no hint is looked for in what is not reported`() {
        let validation = ConfigurationValidation(environment: testEnvironment, folder: "/")
        #expect(validation.hint(for: "hosst", among: ["hosts"]) == " (did you mean \"hosts\"?)")
        for _ in 0..<ConfigurationValidation.maximumErrors {
            validation.report(.builtIn, "", "is wrong", expected: "")
        }
        #expect(validation.hint(for: "hosst", among: ["hosts"]) == "")
    }

    @Test func `a policy of other keys is refused`() {
        let policy = signers.policy("{}\n", by: [signers.other])
        let found = errors(of: signers.local(), with: policy)
        #expect(found.count == 1 && found[0].contains("no signature by a key of policy.publicKeys"))
    }

    @Test func `a configuration without the key has no policy`() {
        let found = errors(of: "watch: false", with: signers.policy("{}\n"))
        #expect(
            found == [
                "/srv/gateway.yaml: policy: is missing; expected url and publicKeys, for "
                    + "a policy to be verified"
            ])
    }

    @Test func `after its expiry it stays or everything is refused`() throws {
        let policy = signers.policy("{}\n", expires: 1_800_000_000)
        func rules(_ settings: String, now: Int64) throws -> [String] {
            try load(signers.local("", settings), with: policy, now: now)
                .snapshot.access.rules.map(\.name)
        }
        #expect(try rules("", now: 1_800_000_000) == [])
        #expect(try rules(", afterExpiry: keep", now: 1_900_000_000) == [])
        #expect(try rules(", afterExpiry: refuse", now: 1_799_999_999) == [])
        #expect(try rules(", afterExpiry: refuse", now: 1_800_000_000) == ["(policy expired)"])
    }

    @Test func `without one yet the local file applies or everything is refused`() throws {
        #expect(try load(signers.local()).access.rules == [])
        let refusing = try load(signers.local("", ", afterExpiry: refuse"))
        #expect(refusing.access.rules == [.withoutPolicy])
    }

    @Test func `another policy is added to the same local configuration`() throws {
        let first = try load(
            signers.local("hosts: [{ match: [a.example] }]"),
            with: signers.policy("hosts: [{ match: [b.example] }]\n"))
        let next = PolicyDocument(
            name: "next", bytes: signers.policy("hosts: [{ match: [c.example] }]\n", serial: 8))
        let local = try #require(first.local)
        let second = try ConfigurationLoader.adding(
            next, toAnew: local, lists: [], now: 1_800_000_000)
        #expect(second.snapshot.hosts.entries.map(\.label) == ["a.example", "c.example"])
        let none = try ConfigurationLoader.adding(nil, toAnew: local, lists: [], now: 0)
        #expect(none.snapshot == local.loaded.snapshot)
    }

    @Test(arguments: [
        ("policy: { publicKeys: [\"K\"] }", "policy.url: is missing"),
        ("policy: { engine: false, publicKeys: [\"K\"] }", "policy.url: is missing"),
        (
            "policy: { engine: true, url: \"https://a/\", publicKeys: [\"K\"] }",
            "policy.url: is written although"
        ),
        ("policy: { engine: maybe, publicKeys: [\"K\"] }", "policy.engine: "),
        ("policy: { engine: true, publicKeys: [\"K\"] }", "policy.engine: is set, but"),
        ("policy: { url: \"https://a/\" }", "policy.publicKeys: is missing"),
        ("policy: { url: \"http://a/\", publicKeys: [\"K\"] }", "policy.url: \"http://a/\" is not"),
        ("policy: { url: \"https://a/\", publicKeys: [] }", "policy.publicKeys: has no key"),
        ("policy: { url: \"https://a/\", publicKeys: [x] }", "policy.publicKeys[0]: \"x\" is not"),
        ("policy: { url: \"https://a/\", publicKeys: [\"K\", \"K\"] }", "is listed twice"),
        ("policy: { url: \"https://a/\", publicKeys: [\"K\"], interval: 1ms }", "out of range"),
        ("policy: { url: \"https://a/\", publicKeys: [\"K\"], afterExpiry: x }", "afterExpiry"),
    ])
    func `errors of the section say where`(_ text: String, _ problem: String) throws {
        let text = text.split(separator: "K", omittingEmptySubsequences: false)
            .joined(separator: "\(signers.trusted)")
        let found = errors(of: text.replacing("public\(signers.trusted)eys", with: "publicKeys"))
        #expect(found.contains { $0.contains(problem) }, "\(found)")
    }

    @Test func `the section is printed as it is read`() throws {
        let text = signers.local("", ", interval: 30s, afterExpiry: refuse")
        let loaded = try load(text)
        let policy = try #require(loaded.policy)
        #expect(policy.url?.description == "https://policy.example/p")
        #expect(policy.intervalMilliseconds == 30_000 && policy.afterExpiry == .refuse)
        var printed = loaded
        printed.access.rules = []
        var again = try load(printed.effectiveYAML())
        again.access.rules = []
        #expect(again == printed)
    }

    @Test func `the differences of a policy are told`() throws {
        let (before, after) = (try load("watch: false"), try load(signers.local()))
        #expect(ConfigurationDifference.all(from: before, to: after).map(\.section) == ["policy"])
        let with = try load(signers.local(), with: signers.policy("{}\n")).snapshot
        let lines = ConfigurationDifference.all(from: after, to: with).map(\.text)
        #expect(lines == ["policy: serial was not set, is 7"])
        #expect(before.sectionsThatDiffer(from: after) == ["policy"])
        #expect(after.sectionsThatDiffer(from: with) == ["policy"])
    }
}
