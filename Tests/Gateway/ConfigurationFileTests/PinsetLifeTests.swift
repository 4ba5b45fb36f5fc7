import TestSupport
import Testing
import Trust

@testable import Gateway

@Suite("The expiry of pinsets in the configuration")
struct PinsetLifeTests {
    private static let digests = ["A", "B"].map { "sha256/\(String(repeating: $0, count: 42))A=" }

    /// An environment at 2027-05-01.
    private var environment: ConfigurationEnvironment {
        var environment = testEnvironment
        environment.now = 1_809_129_600
        return environment
    }

    private func text(_ keys: String, mode: String = "publicKey", pins: [String] = digests)
        -> String
    {
        let list = pins.map { "\"\($0)\"" }.joined(separator: ", ")
        return """
            hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]
            pinsets:
              p:
                mode: \(mode)
                pins: [\(mode == "none" ? "" : list)]
                \(keys)
            """
    }

    private func warned(
        _ keys: String, mode: String = "publicKey", pins: [String] = digests, folder: String = ""
    ) throws -> [String] {
        try ConfigurationLoader(environment: environment)
            .load(
                text: Array(text(keys, mode: mode, pins: pins).utf8), name: folder + "gateway.yaml"
            ).warnings.map { warning in
                let line = warning.description
                return line.split(separator: " ", maxSplits: 1).last.map(String.init) ?? line
            }
    }

    @Test func `the keys are parsed, and by default a pinset is enforced forever`() throws {
        let plain = try load(text("")).pinsets[0].pinset
        #expect(plain.isEnforced)
        #expect(plain.expires == nil)
        #expect(plain.afterExpiry == .refuse)
        let keys = "{ enforce: false, expires: 2027-06-01T12:00:00+02:00, afterExpiry: report }"
        let snapshot = try load(
            "pinsets: { p: { mode: publicKey, pins: [\"\(Self.digests[0])\"], "
                + keys.dropFirst(2).dropLast() + "} }")
        let pinset = snapshot.pinsets[0].pinset
        #expect(!pinset.isEnforced)
        #expect(pinset.expires == 1_811_844_000)
        #expect(pinset.afterExpiry == .report)
        #expect(
            try load("pinsets: { p: { mode: none, expires: 2027-06-01 } }").pinsets[0].pinset
                .expires == 1_811_808_000)
    }

    @Test(arguments: [
        "", "enforce: false", "expires: 2027-06-01", "expires: 2027-06-01\n    afterExpiry: report",
        "expires: 2027-06-01\n    afterExpiry: report\n    enforce: false",
        "afterExpiry: report", "expires: 2027-06-01\n    enforce: false",
    ])
    func `the printed configuration loads to the same pinset`(keys: String) throws {
        let first = try load(text(keys))
        let again = try load(first.effectiveYAML())
        #expect(again.pinsets == first.pinsets)
    }

    @Test(arguments: [
        Wrong(
            "pinsets:\n  p:\n    mode: none\n    expires: tomorrow",
            "4: pinsets.p.expires: \"tomorrow\" is not valid; expected a date such as 2027-06-01 "
                + "(its first second in UTC), or a time such as 2027-06-01T12:00:00Z"),
        Wrong(
            "pinsets:\n  p:\n    mode: none\n    afterExpiry: pass",
            "4: pinsets.p.afterExpiry: \"pass\" is not valid; expected one of refuse, report"),
        Wrong(
            "pinsets:\n  p:\n    mode: none\n    enforce: perhaps",
            "4: pinsets.p.enforce: \"perhaps\" is not a boolean; expected true or false"),
    ])
    func `a wrong value is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(
        arguments: [
            ("", nil), ("enforce: false", nil), ("expires: 2027-06-01", nil),
            (
                "expires: 2027-05-31",
                "pinsets.p.expires: expires soon, at 2027-05-31T00:00:00Z: its hosts are refused "
                    + "from then on"
            ),
            (
                "expires: 2027-05-01",
                "pinsets.p.expires: expired at 2027-05-01T00:00:00Z: its hosts are refused from "
                    + "then on"
            ),
            (
                "expires: 2027-05-02\n    afterExpiry: report",
                "pinsets.p.expires: expires soon, at 2027-05-02T00:00:00Z: its pins are only "
                    + "reported from then on (afterExpiry: report)"
            ),
            (
                "expires: 2026-05-02\n    enforce: false",
                "pinsets.p.expires: expired at 2026-05-02T00:00:00Z: its pins are only reported "
                    + "anyway (enforce: false)"
            ),
            (
                "afterExpiry: report",
                "pinsets.p.afterExpiry: has no effect without expires"
            ),
            (
                "expires: 2028-01-01\n    afterExpiry: refuse\n    enforce: false",
                "pinsets.p.afterExpiry: has no effect with enforce: false"
            ),
        ] as [(String, String?)])
    func `a pinset that expires soon or a key without effect causes a warning`(
        keys: String, warning: String?
    )
        throws
    {
        #expect(try warned(keys) == (warning.map { [$0] } ?? []))
    }

    @Test func `a pinset without pins has nothing to report`() throws {
        #expect(
            try warned("enforce: false", mode: "none") == [
                "pinsets.p.enforce: has no effect: mode: none has no pins to report"
            ])
        #expect(
            try warned("expires: 2028-01-01\n    afterExpiry: report", mode: "none") == [
                "pinsets.p.afterExpiry: has no effect: mode: none has no pins to report"
            ])
        #expect(try warned("expires: 2028-01-01", mode: "none") == [])
    }

    @Test func `a pinset without a backup pin causes a warning`() throws {
        let line =
            "pinsets.p.pins: has a single pin: when the server's key changes, connections fail "
            + "until this file is updated; add a backup pin, of its next key or of its issuer"
        #expect(try warned("", pins: [Self.digests[0]]) == [line])
        #expect(try warned("", pins: [Self.digests[0], Self.digests[0]]) == [line])
        #expect(try warned("", pins: Self.digests) == [])
    }

    @Test func `pins of servers only cause a warning, but not with an issuer among them`() throws {
        try withTemporaryFolder { folder in
            try write(SampleCertificate.serverPEM, to: "server.pem", in: folder)
            try write(SampleCertificate.pem, to: "issuer.pem", in: folder)
            func pinWarnings(_ pins: [String], mode: String = "publicKey") throws -> [String] {
                try warned("", mode: mode, pins: pins, folder: folder + "/")
                    .filter { $0.contains("server certificates") }
            }
            #expect(
                try pinWarnings(["server.pem"]) == [
                    "pinsets.p.pins: has only server certificates: no pin will match after a "
                        + "renewal with a new key; pin an issuer as well"
                ])
            #expect(
                try pinWarnings(["server.pem"], mode: "certificate") == [
                    "pinsets.p.pins: has only server certificates: no pin will match after a "
                        + "renewal; pin an issuer as well"
                ])
            #expect(try pinWarnings(["server.pem", "issuer.pem"]) == [])
            #expect(try pinWarnings(["server.pem", Self.digests[0]]) == [])
            #expect(try pinWarnings(["issuer.pem"]) == [])
        }
    }
}
