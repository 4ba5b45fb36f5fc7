import Foundation
import TestSupport
import Testing
import Trust
import pinfold

@Suite("The report on certificates")
struct ChainReportTests {
    private func items() throws -> [PinnedItem] {
        try [SampleCertificate.serverPEM, SampleCertificate.pem].flatMap { pem in
            try Pin.decodeCertificates(file: Array(pem.utf8)).map {
                try PinnedItem(certificate: $0)
            }
        }
    }

    private func report(_ verdict: ChainReport.Verdict? = nil) throws -> ChainReport {
        ChainReport(
            source: "api.example.com:443", name: "api", host: "api.example.com", items: try items(),
            connection: "connected to 192.0.2.1:443", verdict: verdict)
    }

    @Test func `every certificate has its pin in every format`() throws {
        let items = try items()
        let text = try report(.trusted).text(now: 0)
        #expect(
            text.hasPrefix("api.example.com:443: connected to 192.0.2.1:443\nverdict: trusted\n"))
        for item in items {
            #expect(text.contains("   pin:         \(item.key.keyPinText)\n"))
            #expect(text.contains("   curl:        \(item.curlPin)\n"))
            let fingerprint = try #require(item.fingerprint).fingerprintText
            #expect(text.contains("   fingerprint: \(fingerprint)\n"))
            guard case .literal(let forms) = try Pin.parse(item.curlPin) else { return }
            #expect(forms == [.keyDigest(item.key)])
        }
        #expect(text.contains("1. server: CN=server.example.com\n"))
        #expect(text.contains("2. issuer: CN=api.example.com\n"))
        #expect(items.last?.fingerprint?.fingerprintText == SampleCertificate.fingerprint)
    }

    @Test func `a bare public key has a pin and no fingerprint`() throws {
        let pins = try Pin.decode(file: Array(SampleCertificate.publicKeyPEM.utf8))
        guard case .publicKey(let der)? = pins.first else {
            Issue.record("no key")
            return
        }
        let item = try PinnedItem(publicKey: der)
        #expect(item.key == (try items()[1].key))
        let text = ChainReport(source: "key.pem", name: "pinned", items: [item]).text(now: 0)
        #expect(text.contains("1. key: a bare public key\n"))
        #expect(!text.contains("fingerprint"))
        #expect(text.contains("This is the only pin"))
        #expect(!text.contains("hosts:"))
    }

    @Test func `a refusal is worded as by the gateway and explains the remedy`() throws {
        let text = try report(.refused(token: "tls-self-signed", detail: "it is")).text(now: 0)
        #expect(text.contains("verdict: refused: tls-self-signed: it is\n"))
        #expect(text.contains("# The chain was refused"))
    }

    @Test func `the report is available as JSON`() throws {
        let refused = ChainReport.Verdict.refused(token: "t", detail: "a \"quoted\" \\ word\n")
        let json = try report(refused).json
        #expect(!json.contains("\n"))
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        let parsed = try #require(object)
        #expect(parsed["verdict"] as? String == "fail")
        #expect(parsed["detail"] as? String == "a \"quoted\" \\ word\n")
        let chain = try #require(parsed["chain"] as? [[String: Any]])
        #expect(chain.map { $0["kind"] as? String } == ["server", "issuer"])
        #expect(chain.map { $0["isAuthority"] as? Bool } == [false, true])
        #expect(chain.map { $0["pin"] as? String } == (try items()).map(\.key.keyPinText))
        #expect(parsed["pins"] as? [String] == (try items()).map(\.key.keyPinText))
    }
}
