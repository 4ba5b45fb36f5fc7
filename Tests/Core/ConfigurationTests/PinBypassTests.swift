import PinfoldConfiguration
import Testing
import Trust

/// What a host entry with pinsets refuses.
@Suite("Ways around pins")
struct PinBypassTests {
    /// A host entry: a pattern and its settings.
    struct Entry {
        var match: String
        var pinsets: [Int]
        var clearText: ClearTextMode
        var tunnel: TunnelMode
        var upgrades: Bool

        init(
            _ match: String, pinsets: [Int] = [], clearText: ClearTextMode = .auto,
            tunnel: TunnelMode = .auto, upgrades: Bool = false
        ) {
            self.match = match
            self.pinsets = pinsets
            self.clearText = clearText
            self.tunnel = tunnel
            self.upgrades = upgrades
        }

        func made() throws -> HostEntry {
            var entry = HostEntry()
            entry.match = [try HostPattern(match)]
            entry.pinsets = pinsets
            entry.clearText = clearText
            entry.tunnel = tunnel
            entry.upgradesToHTTPS = upgrades
            return entry
        }
    }

    struct Case: CustomTestStringConvertible {
        var hosts: [Entry]
        var target: String
        var clearText: PinBypass?
        var tunnel: PinBypass?
        var secure: PinBypass?
        var testDescription: String { "\(target) of \(hosts)" }

        init(
            _ hosts: [Entry], _ target: String, clearText: PinBypass? = nil,
            tunnel: PinBypass? = nil, secure: PinBypass? = nil
        ) {
            self.hosts = hosts
            self.target = target
            self.clearText = clearText
            self.tunnel = tunnel
            self.secure = secure
        }
    }

    @Test(arguments: [
        // Without pinsets nothing is refused, unless the entry is set to refuse it.
        Case([Entry("a.test")], "a.test:80"),
        Case([Entry("a.test", clearText: .refuse)], "a.test:80", clearText: .clearText),
        Case([Entry("a.test", tunnel: .refuse)], "a.test:443", tunnel: .tunnel),
        Case([Entry("b.test", pinsets: [0])], "a.test:80"),
        // With pinsets clear text and tunnels are refused.
        Case(
            [Entry("a.test", pinsets: [0])], "a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            [Entry("a.test", pinsets: [0])], "A.TEST.:8443", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            [Entry("**.test", pinsets: [0])], "b.a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            [Entry("192.0.2.1", pinsets: [0])], "192.0.2.1:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            [Entry("::1", pinsets: [0])], "[0:0::1]:80", clearText: .clearText,
            tunnel: .tunnel),
        // An address that leads to a pinned one.
        Case(
            [Entry("192.0.2.1", pinsets: [0])], "[64:ff9b::c000:201]:443", clearText: .port,
            tunnel: .port, secure: .port),
        Case(
            [Entry("192.0.2.1", pinsets: [0])], "[2002:c000:201::1]:80", clearText: .port,
            tunnel: .port, secure: .port),
        Case([Entry("192.0.2.1", pinsets: [0])], "[64:ff9b::c000:202]:443"),
        // Pinsets of mode none have requirements, too: a valid chain, their anchors.
        Case(
            [Entry("a.test", pinsets: [1])], "a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        // If set explicitly.
        Case([Entry("a.test", pinsets: [0], clearText: .allow)], "a.test:80", tunnel: .tunnel),
        Case(
            [Entry("a.test", pinsets: [0], tunnel: .pass)], "a.test:80",
            clearText: .clearText),
        // Inspected tunnels are judged by the pinsets of the entry, which must have some.
        Case(
            [Entry("a.test", pinsets: [0], tunnel: .inspect)], "a.test:443",
            clearText: .clearText),
        Case([Entry("a.test", tunnel: .inspect)], "a.test:443"),
        Case(
            [Entry("a.test:443", tunnel: .inspect), Entry("a.test", pinsets: [0])], "a.test:443",
            clearText: .port, tunnel: .port, secure: .port),
        // Another port of a pinned host, without a separate entry.
        Case(
            [Entry("a.test:443", pinsets: [0])], "a.test:80", clearText: .port,
            tunnel: .port, secure: .port),
        Case(
            [Entry("*.test:443", pinsets: [0])], "a.test:8443", clearText: .port,
            tunnel: .port, secure: .port),
        // And with one, before it or after it, that does not name the pinsets.
        Case(
            [Entry("a.test:443", pinsets: [0]), Entry("a.test")], "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            [Entry("a.test:80"), Entry("a.test", pinsets: [0])], "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            [Entry("a.test:443", pinsets: [0]), Entry("**.test")], "a.test:8443",
            clearText: .port, tunnel: .port, secure: .port),
        Case([Entry("a.test:443", pinsets: [0]), Entry("**.test")], "b.test:8443"),
        Case(
            [Entry("a.test:443", pinsets: [0]), Entry("a.test", clearText: .allow, tunnel: .pass)],
            "a.test:80",
            secure: .port),
        // An earlier entry without pinsets is no exemption; one with a pinset of mode none is.
        Case(
            [Entry("a.test"), Entry("**.test", pinsets: [0])], "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            [Entry("a.test", pinsets: [1]), Entry("**.test", pinsets: [0])], "a.test:80",
            clearText: .clearText, tunnel: .tunnel),
        // An upgrade leads to a port that another entry pins.
        Case(
            [Entry("a.test:80", upgrades: true), Entry("a.test", pinsets: [0])], "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            [Entry("a.test:80", pinsets: [0], upgrades: true), Entry("a.test:443", pinsets: [1])],
            "a.test:80", clearText: .clearText, tunnel: .tunnel),
    ])
    func `what bypasses pinsets is refused`(this: Case) throws {
        var snapshot = testSnapshot()
        snapshot.hosts = HostTable(entries: try this.hosts.map { try $0.made() })
        snapshot.pinsets = [
            PinsetEntry(pinset: Pinset(name: "p", mode: .publicKey)),
            PinsetEntry(pinset: Pinset(name: "none", mode: .none)),
        ]
        let colon = try #require(this.target.lastIndex(of: ":"))
        let host = String(this.target[..<colon]).lowercased()
        let port = try #require(UInt16(this.target[this.target.index(after: colon)...]))
        let entry = snapshot.hostEntry(host: host.utf8.span, port: port)
        func bypass(_ approach: ServerApproach) -> PinBypass? {
            snapshot.pinBypass(host: host.utf8.span, entry: entry, by: approach)
        }
        #expect(bypass(.clearText) == this.clearText)
        #expect(bypass(.tunnel) == this.tunnel)
        #expect(bypass(.verifiedTLS) == this.secure)
    }

    @Test(
        arguments: [
            ([], "a.test", 0, .clearText, nil), ([Entry("a.test")], "b.test", 1, .clearText, nil),
            // It sets nothing, and so exempts no host.
            ([Entry("a.test")], "a.test", 0, .port, .port),
            ([Entry("a.test", clearText: .allow)], "a.test", 0, nil, .port),
        ] as [([Entry], String, Int, PinBypass?, PinBypass?)])
    func `the entry of every other host pins all hosts`(
        entries: [Entry], host: String, expected: Int, clearText: PinBypass?, secure: PinBypass?
    ) throws {
        var other = HostEntry()
        other.pinsets = [0]
        var snapshot = testSnapshot()
        snapshot.hosts = HostTable(
            entries: try entries.map { try $0.made() } + [other], everyOther: entries.count)
        snapshot.pinsets = [PinsetEntry(pinset: Pinset(name: "p", mode: .publicKey))]
        let entry = snapshot.hostEntry(host: host.utf8.span, port: 80)
        #expect(entry == expected)
        func bypass(_ approach: ServerApproach) -> PinBypass? {
            snapshot.pinBypass(host: host.utf8.span, entry: entry, by: approach)
        }
        #expect(bypass(.clearText) == clearText)
        #expect(bypass(.verifiedTLS) == secure)
    }
}
