import PinfoldConfiguration
import RedisProtocol
import Testing
import Trust

// What a policy begins to reach that is the local file's own.
extension PolicyNarrowingTests {
    // MARK: Interception

    private func intercepting(_ change: (inout HostEntry) -> Void) -> ConfigurationSnapshot {
        var snapshot = local(change)
        snapshot.interception.authority = InterceptionAuthority(
            certificatePath: "", keyPath: "", certificatePEM: [], keyPEM: [])
        return snapshot
    }

    /// An entry as it is applied, with the keys that it widens.
    private func applied(
        _ local: ConfigurationSnapshot, _ change: (inout HostEntry) -> Void
    ) throws -> (entry: HostEntry, widened: [PolicyKey]) {
        let narrowing = PolicyNarrowing(local)
        var read = narrowing.base
        (read.match, read.pinsets) = ([try HostPattern("a.example")], [])
        change(&read)
        let entry = narrowing.applied(read)
        return (entry, narrowing.widenings(of: entry, pinsets: local.pinsets).map(\.key))
    }

    @Test(arguments: InterceptMode.allCases, TunnelMode.allCases)
    func `nothing is intercepted that was not before`(
        _ intercept: InterceptMode, _ tunnel: TunnelMode
    ) throws {
        for pinsets in [[], [0]] {
            let local = intercepting {
                ($0.intercept, $0.tunnel, $0.pinsets) = (intercept, tunnel, pinsets)
            }
            let isIntercepted = local.intercepts(entry: 0)
            for after in TunnelMode.allCases {
                for added in [[], [1]] {
                    let (entry, widened) = try applied(local) {
                        ($0.tunnel, $0.pinsets) = (after, added)
                    }
                    guard widened.isEmpty else { continue }
                    var both = local
                    both.hosts = HostTable(entries: [entry])
                    #expect(isIntercepted || !both.intercepts(entry: 0), "\(entry)")
                }
            }
        }
    }

    @Test func `pins and tunnels begin no interception`() throws {
        let passing = intercepting { $0.tunnel = .pass }
        let pinned = try applied(passing) { $0.pinsets = [1] }
        #expect(pinned.entry.intercept == .never && pinned.entry.tunnel == .auto)
        #expect(pinned.widened == [])
        let both = intercepting { ($0.tunnel, $0.pinsets) = (.pass, [0]) }
        let auto = try applied(both) { $0.tunnel = .auto }
        #expect(auto.entry.intercept == .never && auto.widened == [])
        // Where it was intercepted, it is.
        let kept = try applied(intercepting { $0.pinsets = [0] }) { $0.pinsets = [1] }
        #expect(kept.entry.intercept == .auto && kept.widened == [])
    }

    @Test func `nor does a rule begin to intercept because of what is pinned`() throws {
        var ruled = intercepting { _ in }
        var rule = AccessRule()
        rule.tunnels.intercept = .auto
        ruled.access.rules = [rule]
        #expect(try applied(ruled) { $0.pinsets = [1] }.widened == [.hostsPinsets])
        #expect(try applied(ruled) { $0.tls.minimum = .tls13 }.widened == [])
        ruled.access.rules[0].tunnels.intercept = .always
        #expect(try applied(ruled) { $0.pinsets = [1] }.widened == [])
    }

    // MARK: Parents and servers

    private func reaches(
        _ local: [String], _ policy: [String],
        _ change: (inout ConfigurationSnapshot) -> Void
    ) throws -> [Int] {
        var own = try table(local, [], pinned: [])
        change(&own)
        var merged = try table(local, policy, pinned: [])
        change(&merged)
        let found = PolicyNarrowing(own).reaches(of: merged)
        #expect(found.allSatisfy { $0.widening.key == .hostsMatch })
        return found.map(\.entry)
    }

    @Test(arguments: ParentConfiguration.Scheme.allCases)
    func `no entry of the policy applies to a parent`(
        _ scheme: ParentConfiguration.Scheme
    ) throws {
        func found(_ local: [String], _ policy: [String]) throws -> [Int] {
            try reaches(local, policy) {
                var parent = ParentConfiguration(name: "corp")
                (parent.scheme, parent.host, parent.port) = (scheme, "proxy.example", 3128)
                $0.parents = [parent]
            }
        }
        for pattern in ["proxy.example", "proxy.example:3128", "*.example", "**.example", "**"] {
            #expect(try found([], [pattern]) == [0], "\(pattern)")
            #expect(try found(["a.test"], ["b.test", pattern]) == [2], "\(pattern)")
            #expect(try found(["proxy.example"], [pattern]) == [], "\(pattern)")
        }
        #expect(try found([], ["proxy.example:443", "example", "*.proxy.example"]) == [])
        // What the local file says of all others is not what it says of the parent.
        #expect(try found(["**"], ["proxy.example"]) == [1])
    }

    @Test func `nor to the engine of the shared cache, if that is verified`() throws {
        func found(_ url: String, _ policy: [String]) throws -> [Int] {
            let place = try RedisURL(url)
            return try reaches(["a.test"], policy) {
                $0.cache.shared = SharedCacheConfiguration()
                $0.cache.shared?.place = .url(place)
            }
        }
        for pattern in ["cache.example", "cache.example:6379", "*.example", "**"] {
            #expect(try found("rediss://cache.example", [pattern]) == [1], "\(pattern)")
            #expect(try found("redis://cache.example", [pattern]) == [], "\(pattern)")
            #expect(try found("unix:///cache.example", [pattern]) == [], "\(pattern)")
        }
        #expect(try found("rediss://cache.example", ["cache.example:443", "example"]) == [])
    }

    @Test func `no entry of the policy applies to one server of several`() throws {
        func found(_ policy: [String], _ kind: ListenerConfiguration.Kind) throws -> [Int] {
            try reaches([], policy) { $0.listeners[0].kind = kind }
        }
        var set = UpstreamSet()
        set.servers = ["one.example", "two.example"].map {
            UpstreamSet.Server(origin: UpstreamOrigin(scheme: .https, host: $0, port: 443))
        }
        set.servers.append(UpstreamSet.Server(origin: UpstreamOrigin(unixPath: "/run/app.sock")))
        #expect(try found(["two.example"], .balanced(set)) == [0])
        #expect(try found(["*.example"], .balanced(set)) == [0, 0])
        #expect(try found(["localhost"], .balanced(set)) == [0])
        #expect(try found(["two.example:8443"], .balanced(set)) == [])
        // One server alone fails or does not: nothing takes its place.
        #expect(try found(["one.example"], .reverse(set.servers[0].origin)) == [])
    }

    @Test func `pins are counted in every entry`() throws {
        var snapshot = try table(["own.test"], ["a.test", "b.test", "c.test"], pinned: ["b.test"])
        func isTooMany(_ count: Int) -> Int? {
            snapshot.pinsets[0].pinset.pins = Array(repeating: Self.pin, count: count)
            return PolicyNarrowing.entryWithTooManyPins(in: snapshot)
        }
        #expect(isTooMany(PolicyNarrowing.maximumPins) == nil)
        #expect(isTooMany(PolicyNarrowing.maximumPins + 1) == 2)
        snapshot = try table(
            ["a.test"], ["b.test", "c.test"], pinned: ["a.test", "b.test", "c.test"])
        #expect(isTooMany(PolicyNarrowing.maximumPins / 2) == nil)
        #expect(isTooMany(PolicyNarrowing.maximumPins / 2 + 1) == 2)
    }
}
