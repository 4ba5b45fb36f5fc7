import Gateway
import HTTPCore
import PinObservation
import PinfoldConfiguration
import Testing
import Trust
import pinfold

/// Where proposed pins belong, and what is written for that.
@Suite("Proposed pins as configuration")
struct ProposalDocumentTests {
    private static let day: Int64 = 86_400
    private static let pins = ["A", "B"].map { "sha256/\(String(repeating: $0, count: 42))A=" }

    private func certificate(_ number: UInt8) -> ObservedCertificate {
        let bytes = [UInt8](repeating: number, count: SHA256Digest.byteCount)
        let digest = SHA256Digest(bytes.span)!
        return ObservedCertificate(
            key: digest, fingerprint: digest, subject: "CN=\(number)", issuer: "CN=issuer",
            notAfter: 4_000_000_000)
    }

    /// What is proposed for a server that an intermediate and a root have certified twice.
    private func proposal(
        _ name: ObservedName, intermediate: UInt8, root: UInt8
    ) throws -> PinProposal {
        var host = ObservedHost(name: name, time: 0)
        for today in 0...90 as ClosedRange<Int64> {
            host.note(
                Sighting(
                    name: name, leaf: certificate(intermediate + (today < 47 ? 1 : 2)),
                    paths: [[certificate(intermediate), certificate(root)]],
                    address: IPAddress("192.0.2.1"), time: today * Self.day))
        }
        return try host.proposal(ProposalOptions(now: 90 * Self.day))
    }

    /// The document for `api.test` at some ports, each below an intermediate of its own.
    private func document(_ hosts: String, ports: [UInt16] = [443]) throws -> ProposalDocument {
        let text = """
            hosts: [\(hosts)]
            pinsets:
              old: { mode: publicKey, pins: ["\(Self.pins[0])", "\(Self.pins[1])"] }
              exempt: { mode: none }
            """
        let snapshot = try loaded(text).snapshot
        var parts: [ProposalDocument.Part] = []
        for (index, port) in ports.enumerated() {
            let name = ObservedName(host: "api.test", port: port)
            let made = try proposal(name, intermediate: UInt8(10 + index * 10), root: 200)
            parts.append(
                ProposalDocument.Part(
                    name: name, result: .success(made),
                    place: ProposalPlace(of: name, in: snapshot)))
        }
        return ProposalDocument(
            parts, taken: snapshot.pinsets.map(\.pinset.name), now: 90 * Self.day)
    }

    /// The lines of `hosts`, without indentation.
    private func hosts(_ document: ProposalDocument) -> [String] {
        document.yaml.split(separator: "\n").map(String.init)
            .drop { !$0.hasSuffix("hosts:") }.dropFirst().prefix { $0 != "pinsets:" }
            .map { String($0.dropFirst(2)) }
    }

    @Test func `have an entry that keeps tunnels where none applies yet`() throws {
        #expect(
            hosts(try document(#"{ match: ["other.test"] }"#)) == [
                "# After all other entries: none applies to api.test yet.",
                "# From then on its tunnels are verified, and what is not TLS in them is refused.",
                #"- match: ["api.test"]"#, "  upgrade: https", "  intercept: auto",
                "  tunnel: inspect", "  tls13Tunnel: probe", "  pins: observe",
                #"  pinsets: ["api.test"]"#,
            ])
    }

    @Test func `repeat an entry that applies to others too, if it says words only`() throws {
        let entry =
            #"{ match: ["**.test"], name: all, tunnel: inspect, http2: off, pins: observe }"#
        #expect(
            hosts(try document(entry)) == [
                "# Before the entry all, which would apply otherwise, and is repeated:",
                "# From then on requests for http:// URLs are refused, unless `upgrade: https` is "
                    + "added.",
                #"- match: ["api.test"]"#, #"  name: "all""#, "  tunnel: inspect",
                "  tls13Tunnel: refuse", "  intercept: false", "  http2: off", "  pins: observe",
                #"  pinsets: ["api.test"]"#,
            ])
    }

    @Test(
        arguments: [
            ("cache: { store: false }", "cache"),
            ("request: { headers: { set: { X-Tenant: a } } }", "request"),
            ("response: { headers: { remove: [Server] } }", "response"),
            (#"paths: [{ match: ["/a"], cache: { store: false } }]"#, "paths"),
            ("timeouts: { connect: 3s }", "timeouts"), ("noProxy: [a.test]", "noProxy"),
            (#"tls: { minimum: "1.3" }"#, "tls"),
        ])
    func `have no entry if it would lose what applies now`(key: String, lost: String) throws {
        let document = try document(#"{ match: ["**.test"], upgrade: https, \#(key) }"#)
        let lines = hosts(document)
        #expect(lines.allSatisfy { $0.hasPrefix("#") })
        #expect(lines.contains { $0.contains("keeps what it says (\(lost))") })
        #expect(lines.contains(#"#   match: ["api.test"]"#))
        #expect(lines.contains(#"#   pinsets: ["api.test"]"#))
        #expect(document.json.contains(#""place":"copy""#))
        #expect(document.json.contains(#""copy":["\#(lost)"]"#))
    }

    @Test func `are for the entry that names the host alone`() throws {
        let entry = #"{ match: [api.test], upgrade: https, cache: { store: false } }"#
        #expect(
            hosts(try document(entry)) == [
                "# To the entry api.test, which applies to api.test already, add:",
                "#   intercept: auto", "#   tunnel: inspect", "#   tls13Tunnel: probe",
                "#   pins: observe", #"#   pinsets: ["api.test"]"#,
                "# From then on its tunnels are verified, and what is not TLS in them is refused.",
            ])
    }

    @Test(
        arguments: [
            ("tunnel: pass", false), ("tunnel: refuse", false), ("tunnel: inspect", false),
            ("intercept: false", true), ("pins: observe", true),
        ])
    func `leave tunnels to an entry that decides on them`(key: String, adds: Bool) throws {
        let lines = hosts(try document("{ match: [api.test], upgrade: https, \(key) }"))
        #expect(lines.contains("#   tunnel: inspect") == adds)
        #expect(lines.contains("#   pins: observe") == (key != "pins: observe"))
    }

    @Test func `take the place of pinsets that exempt the host`() throws {
        let lines = hosts(try document("{ match: [api.test], pinsets: [exempt] }"))
        #expect(lines.contains { $0.hasSuffix("add in place of its pinsets:") })
    }

    @Test func `are one pinset for a host at two ports`() throws {
        let document = try document("{ match: [api.test], upgrade: https }", ports: [443, 8443])
        #expect(hosts(document).count { $0.contains("pinsets: ") } == 1)
        let yaml = document.yaml
        #expect(yaml.contains("one pinset for api.test:443 and api.test:8443"))
        let keys = [10, 20, 200].map { certificate($0).key.keyPinText }
        #expect(keys.allSatisfy { yaml.contains("- \"\($0)\"") })
        #expect(yaml.count { $0 == "-" } > 0 && !yaml.contains("api.test-2"))
    }

    @Test func `are for the entry of each port where there are two`() throws {
        let entries = #"{ match: ["api.test:443"] }, { match: ["**.test"], upgrade: https }"#
        let lines = hosts(try document(entries, ports: [443, 8443]))
        #expect(lines.contains { $0.hasPrefix("# To the entry api.test:443, which applies to ") })
        #expect(lines.contains(#"- match: ["api.test:8443"]"#))
    }

    @Test(arguments: ["api.test", "**.test"])
    func `are added to the pinset of a host that is pinned`(match: String) throws {
        let document = try document(#"{ match: ["\#(match)"], pinsets: [old] }"#)
        #expect(!document.yaml.contains("\npinsets:") && !document.yaml.contains("hosts:"))
        #expect(
            document.yaml.contains("  # To the pins of old, a pinset of the entry \(match), add:"))
        #expect(document.yaml.contains("  #     - \"\(certificate(10).key.keyPinText)\""))
        #expect(document.json.contains(#""addTo":["old"]"#))
    }

    @Test(arguments: ["null", "true", "no", "1e3"])
    func `quote names that YAML would read as something else`(host: String) throws {
        let name = ObservedName(host: host, port: 443)
        let part = ProposalDocument.Part(
            name: name, result: .success(try proposal(name, intermediate: 10, root: 200)),
            place: .anywhere)
        let text = ProposalDocument([part], taken: [], now: 90 * Self.day).yaml
        #expect(text.contains("\n  \"\(host)\":\n"))
        let snapshot = try loaded(text).snapshot
        #expect(snapshot.pinsets.map(\.pinset.name) == [host])
        #expect(snapshot.hosts.entries.map(\.pinsets) == [[0]])
    }
}
