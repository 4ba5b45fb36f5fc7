import Foundation
import Testing

@testable import PinReporting

@Suite("A pin failure report as JSON")
struct ReportTextTests {
    private func parsed(_ report: PinFailureReport) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(report.json))
        return try #require(object as? [String: Any])
    }

    @Test func `is this text`() {
        let made = report(expires: 1_790_000_000, validated: [[1, 2, 3], [4]])
        #expect(
            String(decoding: made.json, as: UTF8.self)
                == #"{"date-time":"2026-05-28T20:26:40Z","hostname":"api.example.com","port":443,"#
                + #""effective-expiration-date":"2026-09-21T14:13:20Z","include-subdomains":true,"#
                + #""noted-hostname":"*.example.com","served-certificate-chain":["#
                + #""-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"],"#
                + #""validated-certificate-chain":["#
                + #""-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n","#
                + #""-----BEGIN CERTIFICATE-----\nBA==\n-----END CERTIFICATE-----\n"],"#
                + #""known-pins":["pin-sha256=\"AAAA=\""],"pinset":"payments","enforced":true,"#
                + #""reason":"no-pin-matches","detail":"no pin matches","count":1}"#)
    }

    @Test func `has no expiration date unless the pinset expires`() throws {
        #expect(try parsed(report())["effective-expiration-date"] == nil)
    }

    @Test func `names the fingerprint of a certificate apart from the digest of a key`() throws {
        let pins = try #require(
            try parsed(report(knownPins: ["sha256/BBBB=", "AB:CD"]))["known-pins"] as? [String])
        #expect(pins == [#"pin-sha256="BBBB=""#, #"certificate-sha256="AB:CD""#])
    }

    @Test(arguments: [
        "", "plain", #"a "quoted" \ word"#, "line\nfeed", "tab\t and \u{0} and \u{1F} and \u{7F}",
        "ä€😀",
    ])
    func `holds any text`(_ text: String) throws {
        #expect(try parsed(report(detail: text))["detail"] as? String == text)
    }

    @Test func `breaks a certificate into lines of 64 digits`() throws {
        let bytes = [UInt8](repeating: 0, count: 49)
        let chain = try #require(
            try parsed(report(served: [bytes]))["served-certificate-chain"] as? [String])
        #expect(
            chain == [
                "-----BEGIN CERTIFICATE-----\n" + String(repeating: "A", count: 64) + "\nAA==\n"
                    + "-----END CERTIFICATE-----\n"
            ])
    }

    @Test func `leaves out what is too much of a chain`() {
        let large = [UInt8](repeating: 1, count: PinFailureReport.chainBytes - 1)
        let made = report(served: [large, [1], [2]], validated: [large + [1, 1]])
        #expect(made.served == [large, [1]])
        #expect(made.validated.isEmpty)
    }
}
