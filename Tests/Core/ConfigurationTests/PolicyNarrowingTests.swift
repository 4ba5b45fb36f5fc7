import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

/// What a policy may add to a local configuration: tables of what applied before and what it says.
@Suite("A policy only narrows")
struct PolicyNarrowingTests {
    static let pin = Pin.keyDigest(SHA256Digest([UInt8](repeating: 1, count: 32).span)!)

    func pinset(_ name: String) -> PinsetEntry {
        PinsetEntry(pinset: Pinset(name: name, mode: .publicKey, pins: [Self.pin]))
    }

    /// A local configuration whose entry for everything is as given.
    func local(
        _ change: (inout HostEntry) -> Void = { _ in }, hasEverything: Bool = true
    ) -> ConfigurationSnapshot {
        var snapshot = testSnapshot()
        snapshot.pinsets = [pinset("own"), pinset("other")]
        var everything = HostEntry()
        everything.match = [.everything]
        change(&everything)
        if hasEverything { snapshot.hosts = HostTable(entries: [everything]) }
        return snapshot
    }

    /// The keys with which an entry would widen what applied before.
    private func widened(
        _ local: ConfigurationSnapshot, _ change: (inout HostEntry) -> Void
    ) throws -> Set<PolicyKey> {
        let narrowing = PolicyNarrowing(local)
        var entry = narrowing.base
        entry.match = [try HostPattern("a.example")]
        change(&entry)
        return Set(narrowing.widenings(of: entry, pinsets: local.pinsets).map(\.key))
    }

    /// Of every pair of values, whether the second may follow the first.
    private func check<Value: CaseIterable & Equatable>(
        _ key: PolicyKey, _ place: WritableKeyPath<HostEntry, Value>, allowed: [(Value, Value)]
    ) throws {
        for before in Value.allCases {
            for after in Value.allCases {
                let found = try widened(local { $0[keyPath: place] = before }) {
                    $0[keyPath: place] = after
                }
                let mayBe = before == after || allowed.contains { $0 == (before, after) }
                #expect(found == (mayBe ? [] : [key]), "\(before) \(after)")
            }
        }
    }

    @Test func `values may only become stricter`() throws {
        try check(
            .hostsTunnel, \.tunnel,
            allowed: [
                (.auto, .refuse), (.auto, .inspect), (.pass, .auto), (.pass, .inspect),
                (.pass, .refuse), (.inspect, .refuse),
            ])
        try check(
            .hostsClearText, \.clearText,
            allowed: [(.allow, .auto), (.allow, .refuse), (.auto, .refuse)])
        try check(
            .hostsSwitchProtocols, \.switchProtocols,
            allowed: [(.allow, .auto), (.allow, .refuse), (.auto, .refuse)])
        try check(
            .hostsLiveTunnels, \.liveTunnels,
            allowed: [(.keep, .auto), (.keep, .close), (.auto, .close)])
        try check(.hostsHTTP2, \.http2, allowed: [(.auto, .off)])
        try check(.hostsTLSMinimum, \.tls.minimum, allowed: [(.tls12, .tls13)])
        try check(.hostsTLSStapling, \.tls.ocspStapling, allowed: [(.ignored, .required)])
        // Nothing inspects, neither the base nor a rule: what is said of TLS 1.3 has no effect.
        try check(
            .hostsTLS13Tunnel, \.tls13Tunnel,
            allowed: [
                (.probe, .refuse), (.intercept, .refuse), (.refuse, .probe),
                (.intercept, .probe),
            ])
    }

    @Test func `a probe does not take the place of a refusal`() throws {
        let inspecting = local {
            $0.tunnel = .inspect
            $0.tls13Tunnel = .refuse
        }
        #expect(try widened(inspecting) { $0.tls13Tunnel = .probe } == [.hostsTLS13Tunnel])
        let passing = local { $0.tunnel = .pass }
        let found = try widened(passing) { ($0.tunnel, $0.tls13Tunnel) = (.inspect, .probe) }
        #expect(found == [])
        #expect(
            try widened(passing) { ($0.tunnel, $0.tls13Tunnel) = (.inspect, .intercept) }
                == [.hostsTLS13Tunnel])
    }

    @Test func `a probe does not take the place of a refusal by a rule`() throws {
        for tunnel in [TunnelMode.auto, .pass, .refuse] {
            var ruled = local { $0.tunnel = tunnel }
            var rule = AccessRule()
            rule.tunnels.tunnel = .inspect
            ruled.access.rules = [rule]
            #expect(try widened(ruled) { $0.tls13Tunnel = .probe } == [.hostsTLS13Tunnel])
            #expect(try widened(ruled) { $0.tls13Tunnel = .refuse } == [])
        }
        let refusing = local { $0.tunnel = .refuse }
        #expect(try widened(refusing) { $0.tls13Tunnel = .probe } == [.hostsTLS13Tunnel])
    }

    @Test func `what is inspected and intercepted may be refused`() throws {
        let inspecting = local { ($0.tunnel, $0.tls13Tunnel) = (.inspect, .intercept) }
        #expect(try widened(inspecting) { $0.tunnel = .refuse } == [])
        // By itself it says nothing, and must not begin to.
        let passing = local { ($0.tunnel, $0.tls13Tunnel) = (.pass, .intercept) }
        #expect(try widened(passing) { $0.tunnel = .auto } == [])
        #expect(try widened(passing) { $0.tunnel = .inspect } == [.hostsTLS13Tunnel])
    }

    @Test func `inspection takes the place only of what passed unseen`() throws {
        // With pins, auto refuses.
        #expect(
            try widened(local { $0.pinsets = [0] }) { $0.tunnel = .inspect } == [.hostsTunnel])
        // With an authority, inspection is what interception falls back to.
        var intercepting = local()
        intercepting.interception.authority = InterceptionAuthority(
            certificatePath: "", keyPath: "", certificatePEM: [], keyPEM: [])
        #expect(try widened(intercepting) { $0.tunnel = .inspect } == [.hostsTunnel])
        #expect(try widened(intercepting) { $0.tunnel = .refuse } == [])
    }

    @Test(arguments: [nil, TrustProfile.lenient, .strict, .pedantic])
    func `a profile may only become stricter`(_ before: TrustProfile?) throws {
        let order: [TrustProfile?] = [.lenient, nil, .strict, .pedantic]
        for after in order {
            let found = try widened(local { $0.tls.profile = before }) { $0.tls.profile = after }
            let isStricter = order.firstIndex(of: after)! >= order.firstIndex(of: before)!
            #expect(found == (isStricter ? [] : [.hostsTLSProfile]))
        }
    }

    @Test func `what is upgraded and not stored stays so`() throws {
        #expect(try widened(local()) { $0.upgradesToHTTPS = true } == [])
        #expect(
            try widened(local { $0.upgradesToHTTPS = true }) { $0.upgradesToHTTPS = false }
                == [.hostsUpgrade])
        #expect(try widened(local()) { $0.cacheStores = false } == [])
        #expect(
            try widened(local { $0.cacheStores = false }) { $0.cacheStores = true }
                == [.hostsCacheStore])
        var byPort = local()
        var rule = AccessRule()
        rule.ports = [443]
        byPort.access.rules = [rule]
        #expect(try widened(byPort) { $0.upgradesToHTTPS = true } == [.hostsUpgrade])
        // A host pattern may have the port as well, wherever it is.
        let pattern = try HostPattern("admin.example:443")
        (rule.ports, rule.hosts) = ([], [pattern])
        byPort.access.rules = [rule]
        #expect(try widened(byPort) { $0.upgradesToHTTPS = true } == [.hostsUpgrade])
        byPort.access.rules[0].hosts = [pattern.atEveryPort]
        #expect(try widened(byPort) { $0.upgradesToHTTPS = true } == [])
        byPort.access.allow = DestinationList(patterns: [pattern])
        #expect(try widened(byPort) { $0.upgradesToHTTPS = true } == [.hostsUpgrade])
        var entry = HostEntry()
        entry.match = [pattern]
        var listed = local(hasEverything: false)
        listed.hosts = HostTable(entries: [entry])
        #expect(try widened(listed) { $0.upgradesToHTTPS = true } == [.hostsUpgrade])
    }

    @Test func `everything else stays as it is`() throws {
        let changes: [(inout HostEntry) -> Void] = [
            { $0.intercept = .always }, { $0.pinObservation = .observe },
            { $0.tls.roots = [] }, { $0.tls.ciphers = "ALL" }, { $0.tls.cipherSuites = "" },
            { $0.tls.transparency.minimumSCTs = 1 },
            { $0.tls.crls = [CRLFile(path: "", lists: [], contents: [])] },
            { $0.timeouts.firstByteMilliseconds = 1 }, { $0.cache.setCookie = .always },
            { $0.paths = [PathRule()] }, { $0.probe = ProbeConfiguration() },
            { $0.parents = [] }, { $0.noProxy = DestinationList(patterns: [.everything]) },
            { $0.request.cachePolicy = .returnCacheElseLoad },
            { $0.response.cacheForm = .origin },
        ]
        for (index, change) in changes.enumerated() {
            #expect(try widened(local(), change) == [.hostsMatch], "\(index)")
        }
    }

    @Test func `pinsets are added`() throws {
        let pinned = local { $0.pinsets = [0] }
        let narrowing = PolicyNarrowing(pinned)
        var read = narrowing.base
        read.match = [try HostPattern("a.example")]
        read.pinsets = [1, 0]
        let applied = narrowing.applied(read)
        #expect(applied.pinsets == [0, 1])
        #expect(narrowing.widenings(of: applied, pinsets: pinned.pinsets) == [])
        #expect(try widened(pinned) { $0.pinsets = [] } == [.hostsMatch])
        #expect(try widened(pinned) { $0.pinsets = [1] } == [.hostsMatch])
        #expect(try widened(pinned) { $0.pinsets = [0, 7] } == [.hostsPinsets])
    }

    @Test func `the base is what applies without an entry`() {
        #expect(PolicyNarrowing(local { $0.tunnel = .refuse }).base.tunnel == .refuse)
        var none = local(hasEverything: false)
        none.tls.minimum = .tls13
        none.interception.byDefault = .always
        let base = PolicyNarrowing(none).base
        #expect(base.tls.minimum == .tls13 && base.intercept == .always && base.match == [])
    }

    @Test func `pinsets that may accept more are told from those that may not`() {
        func pinset(_ change: (inout Pinset) -> Void) -> Bool {
            var pinset = Pinset(name: "p", mode: .publicKey, pins: [Self.pin])
            change(&pinset)
            return pinset.onlyAdds
        }
        #expect(pinset { _ in })
        #expect(pinset { $0.mode = .none })
        #expect(pinset { $0.isEnforced = false })
        #expect(pinset { ($0.expires, $0.afterExpiry) = (1, .report) })
        #expect(pinset { $0.pins = [.publicKey([1])] })
        #expect(!pinset { $0.mode = .certificate })
        #expect(!pinset { $0.allowInvalidCertificates = true })
        #expect(!pinset { $0.validatesDomainName = false })
        #expect(!pinset { $0.anchors = [[1]] })
        #expect(!pinset { $0.pins.append(.certificate([1])) })
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.0.0.0/9", true), ("127.0.0.0/8", true), ("126.0.0.0/7", false),
        ("::1", true), ("::/0", false), ("0.0.0.0/0", false), ("10.0.0.1", false),
        ("::ffff:127.0.0.1", true),
    ])
    func `clients are among the local ones`(_ network: String, _ isWithin: Bool) throws {
        let local = testSnapshot()
        var merged = local.access
        merged.clients = [try #require(IPNetwork(network))]
        let found = PolicyNarrowing(local).widenings(of: merged).map(\.key)
        #expect(found == (isWithin ? [] : [.accessClients]))
        merged.clients = [.unixClients]
        #expect(PolicyNarrowing(local).widenings(of: merged).map(\.key) == [.accessClients])
    }

    @Test func `access is only taken away`() throws {
        var local = testSnapshot()
        func keys(_ change: (inout AccessConfiguration) -> Void) -> [PolicyKey] {
            var merged = local.access
            change(&merged)
            return PolicyNarrowing(local).widenings(of: merged).map(\.key)
        }
        let extra = [try HostPattern("x.example")]
        #expect(keys { $0.hosts = .listed } == [])
        #expect(keys { $0.byDefault = .deny } == [])
        #expect(keys { $0.connectPorts = .ports([]) } == [])
        #expect(keys { $0.connectPorts = .any } == [.accessConnectPorts])
        #expect(keys { $0.connectPorts = .ports([22]) } == [.accessConnectPorts])
        #expect(keys { $0.deny = DestinationList(patterns: extra) } == [])
        #expect(keys { $0.allow = DestinationList(patterns: extra) } == [.accessDestinationsDeny])
        local.access.deny = DestinationList(patterns: extra)
        local.access.hosts = .listed
        local.access.byDefault = .deny
        local.access.connectPorts = .any
        local.access.rules = [AccessRule()]
        #expect(keys { $0.deny = DestinationList() } == [.accessDestinationsDeny])
        #expect(keys { $0.rules = [] } == [.accessDestinationsDeny])
        #expect(keys { $0.rules.append(AccessRule()) } == [])
        #expect(keys { $0.hosts = .any } == [.accessHosts])
        #expect(keys { $0.byDefault = .allow } == [.accessDefault])
        #expect(keys { $0.connectPorts = .ports([22]) } == [])
    }

    @Test func `a rule allows nothing that is refused without it`() {
        func keys(_ byDefault: AccessDefault, _ change: (inout AccessRule) -> Void) -> [PolicyKey] {
            var local = testSnapshot()
            local.access.byDefault = byDefault
            var rule = AccessRule()
            change(&rule)
            return PolicyNarrowing(local).widenings(of: rule).map(\.key)
        }
        #expect(keys(.allow) { $0.action = .allow } == [])
        #expect(keys(.deny) { $0.action = .allow } == [.ruleAction])
        #expect(keys(.deny) { $0.action = .deny(AccessDenial()) } == [])
        #expect(keys(.deny) { $0.action = .report } == [])
        for mode in TunnelMode.allCases {
            let found = keys(.allow) { $0.tunnels.tunnel = mode }
            #expect(found == (mode == .refuse ? [] : [.ruleTunnel]))
        }
        for mode in InterceptMode.allCases {
            #expect(keys(.allow) { $0.tunnels.intercept = mode } == [.ruleAction])
        }
    }

    @Test func `a label is nobody else's`() throws {
        var local = local(hasEverything: false)
        var entry = HostEntry()
        (entry.match, entry.name) = ([try HostPattern("b.example")], "a.example")
        local.hosts = HostTable(entries: [entry])
        // Without a name, the label is the first pattern.
        #expect(try widened(local) { _ in } == [.hostsName])
        #expect(try widened(local) { $0.name = "own" } == [])
        for label in ["none", "default"] {
            #expect(try widened(local) { $0.name = label } == [.hostsName])
            let pattern = try HostPattern(label)
            #expect(try widened(local) { $0.match = [pattern] } == [.hostsName])
        }
    }

    // MARK: Where no single key shows it

    func table(
        _ local: [String], _ policy: [String], pinned: Set<String>, policyLists: Bool = true
    ) throws -> ConfigurationSnapshot {
        var snapshot = testSnapshot()
        snapshot.pinsets = [pinset("own"), pinset("other")]
        let entries = try (local + policy).map { text in
            var entry = HostEntry()
            entry.match = [text == "**" ? .everything : try HostPattern(text)]
            if pinned.contains(text) { entry.pinsets = [0] }
            return entry
        }
        snapshot.hosts = HostTable(
            entries: entries, localCount: local.count, policyLists: policyLists)
        return snapshot
    }

    private func bypass(
        _ snapshot: ConfigurationSnapshot, _ host: String, _ port: UInt16,
        _ approach: ServerApproach
    ) -> PinBypass? {
        let index = snapshot.hostEntry(host: host.utf8.span, port: port)
        return snapshot.pinBypass(host: host.utf8.span, entry: index, by: approach)
    }

    @Test(arguments: [ServerApproach.clearText, .tunnel, .verifiedTLS])
    func `a host that is pinned locally is not reached by other pins at another port`(
        _ approach: ServerApproach
    ) throws {
        let without = try table(["a.example:443"], [], pinned: ["a.example:443"])
        #expect(bypass(without, "a.example", 8443, approach) == .port)
        for pattern in ["a.example:8443", "*.example", "**.example:8443"] {
            let with = try table(
                ["a.example:443"], [pattern], pinned: ["a.example:443", pattern])
            #expect(bypass(with, "a.example", 8443, approach) == .port, "\(pattern)")
        }
        // What is pinned by the policy alone is reached by its pins.
        let own = try table(["b.example"], ["a.example"], pinned: ["a.example"])
        #expect(bypass(own, "a.example", 443, .verifiedTLS) == nil)
        #expect(bypass(own, "a.example", 80, .clearText) == .clearText)
    }

    @Test func `an address that embeds one that is pinned locally is none of the policy's`() throws
    {
        let with = try table(
            ["192.0.2.1:443"], ["64:ff9b::c000:201"],
            pinned: ["192.0.2.1:443", "64:ff9b::c000:201"])
        #expect(bypass(with, "64:ff9b::c000:201", 8443, .verifiedTLS) == .port)
    }

    @Test func `where the local file lists hosts the policy lists none`() throws {
        let names = ["a.example", "b.example", "c.example"]
        func listed(_ snapshot: ConfigurationSnapshot) -> [String] {
            names.filter { snapshot.hosts.lists(host: $0.utf8.span, port: 443) }
        }
        let (own, added) = (["a.example"], ["*.example", "b.example"])
        #expect(listed(try table(own, added, pinned: [], policyLists: false)) == ["a.example"])
        #expect(listed(try table(own, added, pinned: [])) == names)
        #expect(listed(try table([], added, pinned: [], policyLists: false)) == [])
        let replaced = try table(own, added, pinned: [], policyLists: false).hosts
        #expect(replaced.replacing(replaced.entries) == replaced)
    }

    @Test func `every key has its reason`() {
        for key in PolicyKey.allCases {
            #expect(!key.reason.isEmpty && !key.reason.hasSuffix("."))
            #expect(key.rawValue.hasSuffix(key.pathInside.joined(separator: ".")))
        }
    }
}
