import Testing

@testable import Configuration

/// What a host entry with pinsets holds back.
@Suite struct PinBypassTests {
    private struct Case: CustomTestStringConvertible {
        var hosts: String
        var target: String
        var clearText: PinBypass?
        var tunnel: PinBypass?
        var secure: PinBypass?
        var testDescription: String { "\(hosts) | \(target)" }

        init(
            _ hosts: String, _ target: String, clearText: PinBypass? = nil,
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
        // Without pinsets nothing is held back, unless the entry says so.
        Case("- { match: [a.test] }", "a.test:80"),
        Case("- { match: [a.test], clearText: refuse }", "a.test:80", clearText: .clearText),
        Case("- { match: [a.test], tunnel: refuse }", "a.test:443", tunnel: .tunnel),
        Case("- { match: [b.test], pinsets: [p] }", "a.test:80"),
        // With pinsets clear text and tunnels are.
        Case(
            "- { match: [a.test], pinsets: [p] }", "a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            "- { match: [a.test], pinsets: [p] }", "A.TEST.:8443", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            "- { match: ['**.test'], pinsets: [p] }", "b.a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            "- { match: ['192.0.2.1'], pinsets: [p] }", "192.0.2.1:80", clearText: .clearText,
            tunnel: .tunnel),
        Case(
            "- { match: ['::1'], pinsets: [p] }", "[0:0::1]:80", clearText: .clearText,
            tunnel: .tunnel),
        // Pinsets of mode none hold a server to something too: its chain, their anchors.
        Case(
            "- { match: [a.test], pinsets: [none] }", "a.test:80", clearText: .clearText,
            tunnel: .tunnel),
        // In so many words.
        Case(
            "- { match: [a.test], pinsets: [p], clearText: allow }", "a.test:80", tunnel: .tunnel),
        Case(
            "- { match: [a.test], pinsets: [p], tunnel: pass }", "a.test:80",
            clearText: .clearText),
        Case(
            "- { match: [a.test], pinsets: [p], clearText: auto, tunnel: auto }", "a.test:80",
            clearText: .clearText, tunnel: .tunnel),
        // Another port of a pinned host, with no entry of its own.
        Case(
            "- { match: ['a.test:443'], pinsets: [p] }", "a.test:80", clearText: .port,
            tunnel: .port, secure: .port),
        Case(
            "- { match: ['*.test:443'], pinsets: [p] }", "a.test:8443", clearText: .port,
            tunnel: .port, secure: .port),
        // And with one, before it or after it, that does not name the pinsets.
        Case(
            "- { match: ['a.test:443'], pinsets: [p] }\n- { match: [a.test] }", "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            "- { match: ['a.test:80'] }\n- { match: [a.test], pinsets: [p] }", "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            "- { match: ['a.test:443'], pinsets: [p] }\n- { match: ['**.test'] }", "a.test:8443",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            "- { match: ['a.test:443'], pinsets: [p] }\n- { match: ['**.test'] }", "b.test:8443"),
        Case(
            "- { match: ['a.test:443'], pinsets: [p] }\n"
                + "- { match: [a.test], clearText: allow, tunnel: pass }", "a.test:80",
            secure: .port),
        // An earlier entry without pinsets is no exemption; one with a pinset of mode none is.
        Case(
            "- { match: [a.test] }\n- { match: ['**.test'], pinsets: [p] }", "a.test:80",
            clearText: .port, tunnel: .port, secure: .port),
        Case(
            "- { match: [a.test], pinsets: [none] }\n- { match: ['**.test'], pinsets: [p] }",
            "a.test:80", clearText: .clearText, tunnel: .tunnel),
        // An upgrade leads to a port that another entry pins.
        Case(
            "- { match: ['a.test:80'], upgrade: https }\n- { match: [a.test], pinsets: [p] }",
            "a.test:80", clearText: .port, tunnel: .port, secure: .port),
        Case(
            "- { match: ['a.test:80'], upgrade: https, pinsets: [p] }\n"
                + "- { match: ['a.test:443'], pinsets: [none] }",
            "a.test:80", clearText: .clearText, tunnel: .tunnel),
    ])
    private func whatGoesAroundPinsetsIsHeldBack(this: Case) throws {
        let snapshot = try load(
            """
            hosts:
            \(this.hosts)
            pinsets:
              p: { mode: publicKey, pins: ["sha256/\(String(repeating: "A", count: 43))="] }
              none: { mode: none }
            """)
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
}
