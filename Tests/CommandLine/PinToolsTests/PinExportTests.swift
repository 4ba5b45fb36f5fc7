import Foundation
import PinfoldConfiguration
import TestSupport
import Testing
import Trust
import pinfold

@Suite("Pins for other programs")
struct PinExportTests {
    private static let digests = ["A", "B", "C"].map {
        "\"sha256/\(String(repeating: $0, count: 42))A=\""
    }

    private func export(
        _ text: String, _ format: ExportFormat, pinset: String? = nil
    ) throws -> PinExport {
        try PinExport(loaded(text).snapshot, pinset: pinset, for: format)
    }

    private func text(_ pinset: String, match: String = "a.test", names: String = "p") -> String {
        """
        hosts: [{ match: ["\(match)"], upgrade: https, pinsets: [\(names)] }]
        pinsets:
          p: { mode: publicKey, pins: [\(Self.digests[0]), \(Self.digests[1])]\(pinset) }
          q: { mode: publicKey, pins: [\(Self.digests[2]), \(Self.digests[1])] }
          none: { mode: none }
        """
    }

    @Test(
        arguments: [
            (.trustkit, "", "*.a.test", "*.a.test becomes a.test and all names below it"),
            (.android, "", "*.a.test", "*.a.test becomes a.test and all names below it"),
            (.okhttp, "", "a.test:8443", "a.test:8443 applies to every port, not only to 8443"),
            (
                .android, ", expires: 2999-01-01", "a.test",
                "the expiry at 2999-01-01T00:00:00Z (refuse) is omitted"
            ),
            (
                .okhttp, ", expires: 2999-01-01, afterExpiry: report", "a.test",
                "the expiry at 2999-01-01T00:00:00Z (report) is omitted"
            ),
            (
                .trustkit, ", expires: 2999-01-01T12:00:00Z, afterExpiry: report", "a.test",
                "2999-01-01T12:00:00Z is rounded up to the next day"
            ),
            (
                .okhttp, ", validatesDomainName: false", "a.test",
                "OkHttp also requires a valid chain and a matching name"
            ),
        ] as [(ExportFormat, String, String, String)])
    func `a setting that becomes stricter causes a warning`(
        format: ExportFormat, keys: String, match: String, warning: String
    ) throws {
        let found = try export(text(keys, match: match), format)
        #expect(found.warnings.count == 1)
        #expect(found.warnings.first?.hasSuffix(warning) == true, "\(found.warnings)")
    }

    @Test(
        arguments: [
            (.android, ", enforce: false", "p", nil, "only reports failures, but Android would"),
            (.okhttp, ", enforce: false", "p", nil, "only reports failures, but OkHttp would"),
            (.trustkit, "", "p, q", nil, "all of its 2 pinsets must pass"),
            (.trustkit, "", "p", "r", "there is no pinset r; expected one of p, q, none"),
            (.trustkit, "", "p", "q", "no entry has pins that can be written"),
            (.trustkit, "", "none", nil, "no entry has pins that can be written"),
        ] as [(ExportFormat, String, String, String?, String)])
    func `a setting that the format does not support is an error`(
        format: ExportFormat, keys: String, names: String, pinset: String?, problem: String
    ) throws {
        do {
            _ = try export(text(keys, names: names), format, pinset: pinset)
            Issue.record("exported")
        } catch let error as PinFormatError {
            #expect(error.description.contains(problem), "\(error)")
        }
    }

    @Test func `one of several pinsets can be chosen`() throws {
        let found = try export(text("", names: "p, q"), .okhttp, pinset: "q")
        #expect(found.hosts.map(\.pinset) == ["q"])
        #expect(found.text(.okhttp).contains(Self.digests[2]))
        #expect(!found.text(.okhttp).contains(Self.digests[0]))
    }

    @Test func `report-only pinsets are exported to TrustKit`() throws {
        let found = try export(text(", enforce: false"), .trustkit)
        #expect(found.text(.trustkit).contains("<key>TSKEnforcePinning</key>\n        <false/>"))
    }

    @Test func `patterns whose pins OkHttp would combine are an error`() throws {
        func overlapping(_ other: String) -> String {
            """
            hosts:
              - { match: ["a.x.test"], upgrade: https, pinsets: [p] }
              - { match: ["\(other)"], upgrade: https, pinsets: [q] }
            pinsets:
              p: { mode: publicKey, pins: [\(Self.digests[0]), \(Self.digests[1])] }
              q: { mode: publicKey, pins: [\(Self.digests[2]), \(Self.digests[1])] }
            """
        }
        for other in ["*.x.test", "**.x.test", "**.test"] {
            #expect(throws: PinFormatError.self) { try export(overlapping(other), .okhttp) }
            #expect(try export(overlapping(other), .android).hosts.count == 2)
        }
        for other in ["*.y.test", "*.test", "b.x.test", "**.a.x.test.org"] {
            #expect(try export(overlapping(other), .okhttp).hosts.count == 2)
        }
    }

    @Test func `certificates are exported by their keys or as they are, digests only as keys`()
        throws
    {
        let folder = TemporaryFolder()
        try SampleCertificate.pem.write(
            toFile: folder.path + "/a.pem", atomically: true, encoding: .utf8)
        try SampleCertificate.publicKeyPEM.write(
            toFile: folder.path + "/k.pem", atomically: true, encoding: .utf8)
        func text(_ pins: String, _ mode: String = "publicKey") -> String {
            "hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]\n"
                + "pinsets: { p: { mode: \(mode), pins: [\(pins)] } }"
        }
        let file = "\"\(folder.path)/a.pem\""
        let ofCertificate = try export(text(file, "certificate"), .okhttp)
        let ofKey = try export(text("\"\(folder.path)/k.pem\""), .okhttp)
        #expect(ofCertificate.hosts[0].keys == ofKey.hosts[0].keys)
        #expect(ofCertificate.warnings.count == 1)
        let files = try PinExport.certificates(loaded(text(file)).snapshot, pinset: nil)
        #expect(files.map(\.name) == ["p-0.cer"])
        #expect(files.map(\.der) == [SampleCertificate.der])
        #expect(throws: PinFormatError.self) {
            try PinExport.certificates(loaded(text(Self.digests[0])).snapshot, pinset: nil)
        }
        let print = "\"\(SampleCertificate.fingerprint)\""
        #expect(throws: PinFormatError.self) { try export(text(print), .trustkit) }
        withExtendedLifetime(folder) {}
    }
}
