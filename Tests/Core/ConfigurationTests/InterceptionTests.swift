import PinfoldConfiguration
import Testing

@Suite("Whether CONNECT is intercepted")
struct InterceptionTests {
    private func entry(
        _ mode: InterceptMode, tunnel: TunnelMode = .auto, isPinned: Bool = false
    ) -> HostEntry {
        var entry = HostEntry()
        entry.intercept = mode
        entry.tunnel = tunnel
        entry.pinsets = isPinned ? [0] : []
        return entry
    }

    private func intercepts(
        _ entry: HostEntry?, byDefault: InterceptMode = .never, hasAuthority: Bool = true
    ) -> Bool {
        var interception = InterceptionConfiguration()
        interception.byDefault = byDefault
        if hasAuthority {
            interception.authority = InterceptionAuthority(
                certificatePath: "/ca.pem", keyPath: "/ca.key", certificatePEM: [], keyPEM: [])
        }
        let snapshot = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [],
            hosts: HostTable(entries: entry.map { [$0] } ?? []), interception: interception)
        return snapshot.intercepts(entry: entry == nil ? nil : 0)
    }

    @Test(arguments: InterceptMode.allCases, [false, true])
    func `it is never without an authority`(mode: InterceptMode, isPinned: Bool) {
        #expect(!intercepts(entry(mode, isPinned: isPinned), hasAuthority: false))
        #expect(!intercepts(nil, byDefault: mode, hasAuthority: false))
    }

    @Test func `an entry's word holds, whatever the default`() {
        for byDefault in InterceptMode.allCases {
            #expect(intercepts(entry(.always), byDefault: byDefault))
            #expect(intercepts(entry(.always, tunnel: .refuse), byDefault: byDefault))
            #expect(!intercepts(entry(.never, isPinned: true), byDefault: byDefault))
        }
    }

    @Test func `auto is for pinned hosts, unless tunnels pass or are refused in words`() {
        #expect(intercepts(entry(.auto, isPinned: true)))
        #expect(intercepts(entry(.auto, tunnel: .inspect, isPinned: true)))
        #expect(!intercepts(entry(.auto, tunnel: .inspect)))
        #expect(!intercepts(entry(.auto)))
        #expect(!intercepts(entry(.auto, tunnel: .pass, isPinned: true)))
        #expect(!intercepts(entry(.auto, tunnel: .refuse, isPinned: true)))
        #expect(!intercepts(entry(.auto), byDefault: .always))
    }

    @Test(
        arguments: [
            (TunnelMode.pass, true), (.auto, false), (.refuse, false), (.inspect, false),
        ],
        [false, true])
    func `what is not TLS passes by the entry's word alone`(
        tunnel: (mode: TunnelMode, passes: Bool), isPinned: Bool
    ) {
        let entries = [entry(.always, tunnel: tunnel.mode, isPinned: isPinned)]
        let snapshot = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [], hosts: HostTable(entries: entries))
        #expect(snapshot.passesClearText(entry: 0) == tunnel.passes)
        #expect(!snapshot.passesClearText(entry: nil))
        #expect(
            snapshot.fallsBack(entry: 0) == (tunnel.mode == .pass || tunnel.mode == .inspect))
        #expect(!snapshot.fallsBack(entry: nil))
    }

    @Test(arguments: TLS13TunnelMode.allCases)
    func `tunnels are inspected by the entry's word alone`(mode: TLS13TunnelMode) {
        for tunnel in TunnelMode.allCases {
            var entry = entry(.never, tunnel: tunnel, isPinned: true)
            entry.tls13Tunnel = mode
            let snapshot = ConfigurationSnapshot(
                workers: .fixed(1), listeners: [], hosts: HostTable(entries: [entry]))
            #expect(snapshot.inspection(entry: 0) == (tunnel == .inspect ? mode : nil))
            #expect(snapshot.inspection(entry: nil) == nil)
        }
    }

    @Test func `hosts without an entry follow the default`() {
        #expect(intercepts(nil, byDefault: .always))
        #expect(!intercepts(nil, byDefault: .auto))
        #expect(!intercepts(nil))
    }
}
