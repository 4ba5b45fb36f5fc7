import Foundation
import Gateway
import PinfoldConfiguration
import TestSupport
import Testing
import Trust
import pinfold

private let first = "7HIpactkIAq2Y49orFOOQKurWxmmSFZhBCoQYcRhJ3Y="
private let second = "fwza0LRMXouZHRC8Ei+4PyuldPDcf3UKgO/04cDM1oE="
private let third = "CBJ51TUtlg+xd2axvijRFDjPOBYI/PmKyvUMMqHMBgs="

/// The configuration that imported pins become.
func loaded(_ text: String) throws -> LoadedConfiguration {
    try ConfigurationLoader(
        environment: ConfigurationEnvironment(
            homeFolder: "/home/someone", stateFolder: nil, workingFolder: "/", cores: 1)
    ).load(text: Array(text.utf8), name: "/imported.yaml")
}

@Suite("Pins of other programs")
struct FormatTests {
    private func hosts() -> [HostPins] {
        var exact = HostPins(
            patterns: ["api.example.com"], pins: ["sha256/" + first, "sha256/" + second])
        exact.expires = 1_811_808_000
        let deep = HostPins(
            patterns: ["**.pay.example.com"], pins: ["sha256/" + third, "sha256/" + first])
        return [exact, deep].inOrder
    }

    private func read(_ text: String, _ format: ExportFormat) throws -> [HostPins] {
        let bytes = Array(text.utf8)
        return switch format {
        case .trustkit: try TrustKitFormat.read(bytes)
        case .android: try AndroidFormat.read(bytes)
        case .okhttp: try OkHttpFormat.read(bytes)
        case .curl, .cer: try CurlFormat.read(bytes, hosts: [])
        }
    }

    @Test(arguments: [ExportFormat.trustkit, .android, .okhttp, .curl])
    func `an export that is imported again is the same`(format: ExportFormat) throws {
        let imported = try loaded(hosts().configuration)
        #expect(imported.warnings.isEmpty)
        let export = try PinExport(imported.snapshot, pinset: nil, for: format)
        let again = try read(export.text(format), format)
        var expected = hosts()
        if format == .okhttp || format == .curl {
            for index in expected.indices { expected[index].expires = nil }
        }
        if format == .curl { expected.removeAll { $0.patterns[0].hasPrefix("*") } }
        #expect(again == expected)
        // And once more, exported from the import.
        let twice = try PinExport(loaded(again.configuration).snapshot, pinset: nil, for: format)
        #expect(twice.text(format) == export.text(format))
    }

    @Test func `every setting of TrustKit is imported, from XML and binary`() throws {
        let domains: [String: Any] = [
            "Api.Example.com": [
                "TSKPublicKeyHashes": [first, second], "TSKIncludeSubdomains": true,
                "TSKEnforcePinning": false, "TSKExpirationDate": "2027-06-01",
                "TSKReportUris": ["https://r.example"],
            ] as [String: Any],
            "free.api.example.com": ["TSKExcludeSubdomainFromParentPolicy": true],
            "plain.test": ["TSKPublicKeyHashes": [third]],
        ]
        let list: [String: Any] = [
            "CFBundleName": "Ünïcode", "number": 7, "real": 1.5, "data": Data([1, 2]),
            "date": Date(timeIntervalSince1970: 0),
            "TSKConfiguration": ["TSKSwizzleNetworkDelegates": false, "TSKPinnedDomains": domains],
        ]
        var expected = HostPins(
            patterns: ["**.api.example.com"], pins: ["sha256/" + first, "sha256/" + second])
        expected.isEnforced = false
        expected.expires = 1_811_808_000
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let data = try PropertyListSerialization.data(
                fromPropertyList: list, format: format, options: 0)
            let found = try TrustKitFormat.read(Array(data))
            #expect(
                found.map { $0.patterns[0] }
                    == ["free.api.example.com", "**.api.example.com", "plain.test"])
            #expect(found[0].pins.isEmpty)
            expected.notes = found[1].notes
            #expect(found[1] == expected)
            #expect(found[1].notes.count == 1)
            let snapshot = try loaded(found.configuration).snapshot
            #expect(snapshot.pinsets.map(\.pinset.mode) == [.none, .publicKey, .publicKey])
            #expect(snapshot.pinsets.map(\.pinset.isEnforced) == [true, false, true])
        }
    }

    @Test func `in Android nested domains inherit and the most specific one comes first`() throws {
        let text = """
            <?xml version="1.0" encoding="utf-8"?>
            <!DOCTYPE network-security-config>
            <network-security-config>
              <base-config cleartextTrafficPermitted="false"/>
              <domain-config>
                <domain includeSubdomains="true">Example.com</domain>
                <pin-set expiration="2027-06-01">
                  <pin digest="SHA-256">\(first)</pin><!-- in use -->
                  <pin digest="SHA-256"> \(second) </pin>
                </pin-set>
                <domain-config cleartextTrafficPermitted="true">
                  <domain>deep.a.example.com</domain>
                </domain-config>
              </domain-config>
              <domain-config><domain>free.example.com</domain></domain-config>
              <domain-config><domain>unpinned.test</domain></domain-config>
            </network-security-config>
            """
        let found = try AndroidFormat.read(Array(text.utf8))
        #expect(
            found.map { $0.patterns[0] }
                == ["deep.a.example.com", "free.example.com", "**.example.com"])
        #expect(found.map(\.pins.count) == [2, 0, 2])
        #expect(found.map(\.expires) == [1_811_808_000, nil, 1_811_808_000])
        #expect(found[0].notes.count == 1)
    }

    @Test func `in OkHttp the pins of all matching patterns are accepted`() throws {
        let text = """
            // .add("no.example", "sha256/none")
            val pinner = CertificatePinner.Builder() /* add("no", "no") */
                .add("*.example.com", "sha256/\(first)")
                .add(
                    "api.example.com",
                    "sha256/\(second)", // "quoted"
                )
                .add("api.example.com", "sha256/\(third)").build(); list.badd("x", "y"); say("add(")
            """
        let found = try OkHttpFormat.read(Array(text.utf8))
        #expect(found.map { $0.patterns[0] } == ["api.example.com", "*.example.com"])
        #expect(found[0].pins == [second, third, first].map { "sha256/" + $0 })
        #expect(found[1].pins == ["sha256/" + first])
    }

    @Test func `curl's commands and strings are read`() throws {
        let text = """
            # pins
            curl -s --pinnedpubkey 'sha256//\(first);sha256//\(second)' https://a.example:8443/x?y

            curl "https://b.example" \\
               --pinnedpubkey=sha256//\(third) -o /dev/null
            curl --pinnedpubkey key.pem https://c.example
            sha256//\(second)
            """
        let found = try CurlFormat.read(Array(text.utf8), hosts: ["**.d.example"])
        #expect(
            found.map { $0.patterns[0] } == ["a.example", "b.example", "c.example", "**.d.example"])
        #expect(
            found.map(\.pins) == [
                ["sha256/" + first, "sha256/" + second], ["sha256/" + third], ["key.pem"],
                ["sha256/" + second],
            ])
    }

    @Test(
        arguments: [
            (.android, "", "line 1: there is no element; expected well-formed XML"),
            (.android, "<a>", "line 1: the element a does not end; expected well-formed XML"),
            (
                .android, "<plist/>",
                "line 1: the root element is plist; expected network-security-config"
            ),
            (
                .android, "<!DOCTYPE x [\n<!ENTITY a \"b\">]><network-security-config/>",
                "line 1: a document type with declarations, which is never expanded; "
                    + "expected a document without entities"
            ),
            (
                .android, "<network-security-config>&xxe;</network-security-config>",
                "line 1: a reference to an entity, which is never expanded; "
                    + "expected a document without entities"
            ),
            (
                .android, "<network-security-config>\n<domain-confg/></network-security-config>",
                "line 2: unknown element domain-confg in network-security-config; "
                    + "expected domain, pin-set, trust-anchors or domain-config"
            ),
            (
                .android,
                "<network-security-config><domain-config><domain>a b</domain></domain-config>"
                    + "</network-security-config>",
                "line 1: \"a b\" is not a valid host: a host name may contain only letters, "
                    + "digits, '-', '_' and '.'"
            ),
            (
                .android, "<network-security-config/>",
                "the file pins no host; expected a domain-config with a pin-set"
            ),
            (
                .trustkit, "<plist><dict><key>a</key></dict></plist>",
                "line 1: the dictionary has key without a partner; expected a property list"
            ),
            (
                .trustkit, "<plist><dict/></plist>",
                "TSKPinnedDomains is missing; expected TSKConfiguration with TSKPinnedDomains"
            ),
            (
                .trustkit,
                "<plist><dict><key>TSKPinnedDomains</key><dict><key>a.test</key><dict>"
                    + "<key>TSKPublicKeyHashes</key><array><string>AAAA</string></array>"
                    + "</dict></dict></dict></plist>",
                "TSKPinnedDomains.a.test.TSKPublicKeyHashes[0]: \"AAAA\" is not a valid pin: the "
                    + "digest has 4 characters; expected 44 characters, the base64 of 32 bytes: "
                    + "43 digits and '='"
            ),
            (
                .trustkit, "bplist00",
                "byte 8: the binary property list is truncated; "
                    + "expected a binary property list (bplist00)"
            ),
            (
                .okhttp, "nothing",
                "no calls to add found; expected add(\"a.example\", \"sha256/…\")"
            ),
            (
                .okhttp, "\n.add(HOST, \"sha256/x\")",
                "line 2: unexpected 'H' in the arguments of add; expected string literals only"
            ),
            (
                .okhttp, "add(\"a.test\", \"sha1/AAAA\")",
                "line 1: \"sha1/AAAA\" is not a valid pin: only SHA-256 is supported; "
                    + "expected sha256/BASE64"
            ),
            (.okhttp, "add(\"a.test\"", "line 1: unterminated call to add; expected )"),
            (.curl, "\n", "no pins found; expected --pinnedpubkey sha256//BASE64"),
            (
                .curl, "\ncurl https://a.test",
                "line 2: --pinnedpubkey is missing; expected --pinnedpubkey sha256//BASE64"
            ),
            (
                .curl, "sha256//\(first)",
                "line 1: there is no URL with the host; expected --host"
            ),
            (.curl, "curl 'a", "line 1: unterminated quote; expected '"),
        ] as [(ExportFormat, String, String)])
    func `invalid input causes an error with the place, the problem and what was expected`(
        format: ExportFormat, text: String, error: String
    ) {
        #expect(throws: PinFormatError.self) { try read(text, format) }
        do { _ = try read(text, format) } catch let thrown { #expect("\(thrown)" == error) }
    }

    @Test func `truncated and modified property lists cause at most an error`() throws {
        let list: [String: Any] = [
            "TSKConfiguration": [
                "TSKPinnedDomains": [
                    "a.test": [
                        "TSKPublicKeyHashes": [first, second], "TSKIncludeSubdomains": true,
                    ]
                        as [String: Any]
                ]
            ]
        ]
        var readable = 0
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let data = try PropertyListSerialization.data(
                fromPropertyList: list, format: format, options: 0)
            let whole = Array(data)
            for end in whole.indices where format == .binary || whole[end] != 0x0A {
                let cut = try? TrustKitFormat.read(Array(whole[..<end]))
                #expect(cut == nil || end >= whole.count - 1)
            }
            for index in whole.indices {
                for value in [UInt8(0), 0x0F, 0x7F, 0xA1, 0xFF] {
                    var changed = whole
                    changed[index] = value
                    if (try? TrustKitFormat.read(changed)) != nil { readable += 1 }
                }
            }
        }
        #expect(readable > 0)
    }

    @Test func `objects that refer to each other in a cycle are an error`() {
        // An array of two references to itself, in a table of one object.
        var list = Array("bplist00".utf8) + [0xA2, 0, 0]
        let table = UInt8(list.count)
        list.append(8)
        list += [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 1]
        list += [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, table]
        #expect(throws: PinFormatError.self) { try TrustKitFormat.read(list) }
    }
}
