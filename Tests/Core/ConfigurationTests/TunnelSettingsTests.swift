import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

/// What a rule says about the tunnels that it allows, against what the entry of `hosts` says.
@Suite("The tunnels of a rule")
struct TunnelSettingsTests {
    private func snapshot(
        _ tunnel: TunnelMode, _ intercept: InterceptMode = .auto, isPinned: Bool = false,
        hasAuthority: Bool = true
    ) throws -> ConfigurationSnapshot {
        var entry = HostEntry()
        entry.match = [try HostPattern("a.test")]
        entry.tunnel = tunnel
        entry.tls13Tunnel = .probe
        entry.intercept = intercept
        if isPinned { entry.pinsets = [0] }
        var snapshot = ConfigurationSnapshot(
            workers: .fixed(1), listeners: [], hosts: HostTable(entries: [entry]))
        if hasAuthority {
            snapshot.interception.authority = InterceptionAuthority(
                certificatePath: "", keyPath: "", certificatePEM: [], keyPEM: [])
        }
        return snapshot
    }

    /// How a tunnel is handled that is not intercepted.
    private func handling(
        _ entry: TunnelMode, _ rule: TunnelMode?, isPinned: Bool
    ) throws -> String {
        let snapshot = try snapshot(entry, isPinned: isPinned)
        let settings = TunnelSettings(tunnel: rule)
        let bypass = snapshot.pinBypass(
            host: "a.test".utf8.span, entry: 0, by: .tunnel, settings)
        if bypass != nil { return "refused" }
        return snapshot.inspection(entry: 0, by: settings) == nil ? "passed" : "inspected"
    }

    @Test func `are handled as the stricter of the two says`() throws {
        let table: [(TunnelMode, TunnelMode?, String)] = [
            (.auto, nil, "passed"), (.auto, .auto, "passed"), (.auto, .pass, "passed"),
            (.auto, .inspect, "inspected"), (.auto, .refuse, "refused"),
            (.pass, nil, "passed"), (.pass, .auto, "passed"), (.pass, .pass, "passed"),
            (.pass, .inspect, "inspected"), (.pass, .refuse, "refused"),
            (.inspect, nil, "inspected"), (.inspect, .auto, "inspected"),
            (.inspect, .pass, "inspected"), (.inspect, .inspect, "inspected"),
            (.inspect, .refuse, "refused"), (.refuse, nil, "refused"),
            (.refuse, .auto, "refused"), (.refuse, .pass, "refused"),
            (.refuse, .inspect, "refused"), (.refuse, .refuse, "refused"),
        ]
        for (entry, rule, expected) in table {
            let found = try handling(entry, rule, isPinned: false)
            #expect(found == expected, "\(entry), \(String(describing: rule))")
        }
    }

    /// Only the entry itself may let tunnels bypass its pins.
    @Test func `never bypass pins by the word of a rule`() throws {
        #expect(try handling(.auto, nil, isPinned: true) == "refused")
        #expect(try handling(.auto, .pass, isPinned: true) == "refused")
        #expect(try handling(.auto, .inspect, isPinned: true) == "inspected")
        #expect(try handling(.inspect, .pass, isPinned: true) == "inspected")
        #expect(try handling(.pass, .pass, isPinned: true) == "passed")
        #expect(try handling(.pass, .inspect, isPinned: true) == "inspected")
    }

    @Test func `are intercepted as the rule says`() throws {
        let table: [(InterceptMode, TunnelSettings, Bool, Bool)] = [
            (.always, .none, false, true), (.never, .none, false, false),
            (.auto, .none, false, false), (.auto, .none, true, true),
            (.always, TunnelSettings(intercept: .never), false, false),
            (.always, TunnelSettings(intercept: .never), true, false),
            (.never, TunnelSettings(intercept: .always), false, true),
            (.auto, TunnelSettings(intercept: .always), false, true),
            (.never, TunnelSettings(intercept: .auto), true, true),
            (.never, TunnelSettings(intercept: .auto), false, false),
            // As in an entry, what is written about tunnels takes precedence over auto.
            (.auto, TunnelSettings(tunnel: .inspect), true, false),
            (.auto, TunnelSettings(tunnel: .auto), true, true),
            (.always, TunnelSettings(tunnel: .inspect), true, true),
            (.auto, TunnelSettings(tunnel: .inspect, intercept: .auto), true, true),
            (.auto, TunnelSettings(tunnel: .refuse, intercept: .auto), true, false),
        ]
        for (entry, rule, isPinned, expected) in table {
            let snapshot = try snapshot(.auto, entry, isPinned: isPinned)
            #expect(snapshot.intercepts(entry: 0, by: rule) == expected, "\(entry), \(rule)")
            let without = try self.snapshot(
                .auto, entry, isPinned: isPinned, hasAuthority: false)
            #expect(!without.intercepts(entry: 0, by: rule))
        }
    }

    @Test func `of hosts without an entry are inspected or intercepted, too`() throws {
        let snapshot = try snapshot(.auto)
        #expect(snapshot.inspection(entry: nil, by: .none) == nil)
        #expect(
            snapshot.inspection(entry: nil, by: TunnelSettings(tunnel: .inspect)) == .refuse)
        #expect(snapshot.inspection(entry: 0, by: TunnelSettings(tunnel: .inspect)) == .probe)
        #expect(!snapshot.intercepts(entry: nil, by: .none))
        #expect(snapshot.intercepts(entry: nil, by: TunnelSettings(intercept: .always)))
        let refusal = snapshot.pinBypass(
            host: "b.test".utf8.span, entry: nil, by: .tunnel,
            TunnelSettings(tunnel: .refuse))
        #expect(refusal == .tunnel)
    }

    @Test func `that are intercepted pass unread only by the word of the entry`() throws {
        let pass = TunnelSettings(tunnel: .pass, intercept: .always)
        #expect(!(try snapshot(.auto, .always)).passesClearText(entry: 0, by: pass))
        #expect(try snapshot(.pass, .always).passesClearText(entry: 0, by: pass))
        let inspect = TunnelSettings(tunnel: .inspect, intercept: .always)
        #expect(!(try snapshot(.pass, .always)).passesClearText(entry: 0, by: inspect))
        #expect(try snapshot(.pass, .always).fallsBack(entry: 0, by: inspect))
        #expect(!(try snapshot(.pass)).passesClearText(entry: nil, by: pass))
    }
}
