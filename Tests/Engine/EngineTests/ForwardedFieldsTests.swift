import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("Fields for an upstream about the client's side")
struct ForwardedFieldsTests {
    private struct Parsed: ~Copyable {
        var head = RequestHead()
        let bytes: [UInt8]
    }

    private func parsed(_ lines: [String]) -> Parsed {
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        var parsed = Parsed(bytes: bytes)
        var parser = RequestHeadParser()
        guard
            (try? parser.parse(bytes.span, into: &parsed.head))
                == .complete(headBytes: bytes.count)
        else { fatalError("not a request: \(lines)") }
        return parsed
    }

    private func fields(
        _ mode: ForwardingConfiguration.Mode, _ peer: String, secure: Bool = false
    ) -> ForwardedFields {
        var forwarding = ForwardingConfiguration()
        forwarding.clientsSpeakTLS = secure
        forwarding.mode = mode
        forwarding.trustedProxies = ["10.0.0.0/8", "2001:db8::/32"].compactMap { IPNetwork($0) }
        return ForwardedFields(forwarding, peer: IPAddress(peer))
    }

    private func written(
        _ mode: ForwardingConfiguration.Mode, _ peer: String, _ lines: [String],
        start: String = "GET /x HTTP/1.1", host: String? = "a.example:8080", secure: Bool = false
    ) -> [String] {
        let request = parsed([start] + (host.map { ["Host: \($0)"] } ?? []) + lines)
        var memory = [UInt8](repeating: 0, count: 2048)
        let count = memory.withUnsafeMutableBytes { buffer in
            var writer = HeadWriter(buffer)
            fields(mode, peer, secure: secure).append(
                for: request.head, in: request.bytes.span, to: &writer)
            return writer.overflowed ? 0 : writer.count
        }
        return String(decoding: memory[..<count], as: UTF8.self)
            .split(separator: "\r\n").map(String.init)
    }

    private let spoofed = [
        "X-Forwarded-For: 1.1.1.1", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https",
        "Forwarded: for=1.1.1.1;host=evil",
    ]

    @Test(arguments: ["192.0.2.7", "10.1.2.3"])
    func `set writes the gateway's own values for every client`(peer: String) {
        #expect(
            written(.set, peer, spoofed) == [
                "X-Forwarded-For: \(peer)", "X-Forwarded-Host: a.example:8080",
                "X-Forwarded-Proto: http",
                "Forwarded: for=\(peer);host=\"a.example:8080\";proto=http",
            ])
    }

    @Test func `clients with TLS are reported as such`() {
        #expect(
            written(.set, "10.1.2.3", spoofed, secure: true).suffix(2) == [
                "X-Forwarded-Proto: https",
                "Forwarded: for=10.1.2.3;host=\"a.example:8080\";proto=https",
            ])
        let asHTTP = ["X-Forwarded-Proto: http"]
        #expect(written(.append, "10.1.2.3", asHTTP, secure: true).contains(asHTTP[0]))
        #expect(!written(.append, "192.0.2.7", asHTTP, secure: true).contains(asHTTP[0]))
    }

    @Test func `append replaces an untrusted client's`() {
        #expect(written(.append, "192.0.2.7", spoofed) == written(.set, "192.0.2.7", []))
    }

    @Test func `append keeps a trusted proxy's and adds to them`() {
        let lines = [
            "X-Forwarded-For: 1.1.1.1, 2.2.2.2", "X-Forwarded-For: 3.3.3.3",
            "X-Forwarded-Host: public.example", "X-Forwarded-Proto: https",
            "Forwarded: for=1.1.1.1;proto=https",
        ]
        #expect(
            written(.append, "10.1.2.3", lines) == [
                "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 10.1.2.3",
                "X-Forwarded-Host: public.example", "X-Forwarded-Proto: https",
                "Forwarded: for=1.1.1.1;proto=https, "
                    + "for=10.1.2.3;host=\"a.example:8080\";proto=http",
            ])
        #expect(written(.append, "10.1.2.3", []) == written(.set, "10.1.2.3", []))
    }

    @Test func `IPv6 is in brackets and quoted (RFC 7239 §6); a mapped address is IPv4`() {
        #expect(
            written(.set, "2001:db8::7", [], host: "[::1]:8081") == [
                "X-Forwarded-For: 2001:db8::7", "X-Forwarded-Host: [::1]:8081",
                "X-Forwarded-Proto: http",
                "Forwarded: for=\"[2001:db8::7]\";host=\"[::1]:8081\";proto=http",
            ])
        #expect(written(.set, "::ffff:192.0.2.7", []) == written(.set, "192.0.2.7", []))
    }

    @Test func `none writes nothing, and without Host there is no host`() {
        #expect(written(.none, "192.0.2.7", spoofed) == [])
        #expect(
            written(.set, "192.0.2.7", [], start: "GET / HTTP/1.0", host: nil) == [
                "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http",
                "Forwarded: for=192.0.2.7;proto=http",
            ])
    }

    @Test(
        arguments: [
            ("192.0.2.7", "X-Forwarded-Proto: https", true),
            ("192.0.2.7", "X-Forwarded-Host: evil", true),
            ("192.0.2.7", "X-Forwarded-For: 1.1.1.1", false),
            ("192.0.2.7", "Forwarded: host=evil", false),
            ("10.1.2.3", "X-Forwarded-Proto: https", false),
            ("10.1.2.3", "Forwarded: host=evil", true),
        ])
    func `what the key does not contain bypasses the cache`(
        peer: String, line: String, keepsOut: Bool
    ) {
        let appends = fields(.append, peer)
        let sets = fields(.set, peer)
        let request = parsed(["GET /x HTTP/1.1", "Host: a", line])
        let isKeptOut = (
            append: appends.bypassesCache(request.head), set: sets.bypassesCache(request.head)
        )
        #expect(isKeptOut == (keepsOut, false))
        let conflict = parsed(["GET http://b/ HTTP/1.1", "Host: a"])
        let conflictIsKeptOut = sets.bypassesCache(conflict.head)
        #expect(conflictIsKeptOut)
    }

    @Test func `the fields spelled with _ end here`() {
        var request = parsed([
            "GET /x HTTP/1.1", "Host: a", "X_Forwarded_For: 1", "x-forwarded_proto: 2",
            "X_FORWARDED_HOST: 3", "X_Forwarded_Fox: 4", "X-Forwarded-Port: 5",
        ])
        let bytes = request.bytes
        request.head.endForwardingAliases(in: bytes.span)
        #expect(request.head.fields.filter { $0.isNominated }.count == 3)
        var memory = [UInt8](repeating: 0, count: 512)
        let count = memory.withUnsafeMutableBytes { buffer in
            var writer = HeadWriter(buffer)
            writer.appendForwardedFields(request.head.fields, of: bytes.span, omitting: [])
            return writer.count
        }
        #expect(
            String(decoding: memory[..<count], as: UTF8.self)
                == "Host: a\r\nX_Forwarded_Fox: 4\r\nX-Forwarded-Port: 5\r\n")
    }
}
