import TestSupport
import Testing
import Trust

@testable import Gateway

@Suite("Pins and roots")
struct TrustTests {
    @Test func `pins of every format are parsed and references resolved`() throws {
        try withTemporaryFolder { folder in
            try write(SampleCertificate.pem, to: "api.pem", in: folder)
            try write(SampleCertificate.publicKeyPEM, to: "key.pem", in: folder)
            let snapshot = try load(
                """
                hosts:
                  - { match: [api.example.com], pinsets: [certificates, keys] }
                pinsets:
                  keys:
                    mode: publicKey
                    pins: ["\(SampleCertificate.keyPin)", key.pem, ./api.pem]
                    anchors: [api.pem]
                  certificates:
                    mode: certificate
                    pins: ["\(SampleCertificate.fingerprint)", "\(folder)/api.pem"]
                    allowInvalidCertificates: true
                    validatesDomainName: false
                """, folder: folder)
            #expect(snapshot.hosts.entries[0].pinsets == [1, 0])
            let keys = snapshot.pinsets[0]
            #expect(keys.pinset.name == "keys")
            #expect(keys.pinset.mode == .publicKey)
            #expect(keys.pinset.pins.count == 3)
            #expect(keys.pinset.anchors.count == 1)
            #expect(!keys.pinset.allowInvalidCertificates)
            #expect(keys.pinset.validatesDomainName)
            #expect(
                keys.pinTexts
                    == [SampleCertificate.keyPin, folder + "/key.pem", folder + "/api.pem"])
            let certificates = snapshot.pinsets[1].pinset
            #expect(certificates.mode == .certificate)
            #expect(certificates.pins.count == 2)
            #expect(certificates.allowInvalidCertificates)
            #expect(!certificates.validatesDomainName)
            guard case .certificate(let der) = certificates.pins[1] else {
                Issue.record("not a certificate")
                return
            }
            #expect(keys.pinset.anchors == [der])
        }
    }

    @Test(arguments: [
        Wrong("pinsets: []", "1: pinsets: is a list; expected a mapping of names to pinsets"),
        Wrong("pinsets: { a: }", "1: pinsets.a: is empty; expected a mapping with mode and pins"),
        Wrong(
            "pinsets: { 'a b': { mode: none } }",
            "1: pinsets.\"a b\": is not a valid pinset name; "
                + "expected 1 to 64 letters, digits, `.`, `_` and `-`"),
        Wrong(
            "pinsets: { a: { pins: [] } }",
            "1: pinsets.a.mode: is missing; expected one of none, publicKey, certificate"),
        Wrong(
            "pinsets:\n  a:\n    mode: publicKey\n    pins:\n    - sha256/AAAA\n    - sha1/AAAA",
            "5: pinsets.a.pins[0]: \"sha256/AAAA\" is not a pin: the digest has 4 characters; "
                + "expected 44 characters, the base64 of 32 bytes: 43 digits and '='",
            "6: pinsets.a.pins[1]: \"sha1/AAAA\" is not a pin: only SHA-256 is supported; "
                + "expected sha256/BASE64"),
        Wrong(
            "pinsets: { a: { mode: publicKey, pins: [missing.pem] } }",
            "1: pinsets.a.pins[0]: \"/srv/missing.pem\" cannot be read: "
                + "No such file or directory; expected a readable file"),
        Wrong(
            "pinsets: { a: { mode: certificate, pins: ['\(SampleCertificate.keyPin)'] } }",
            "1: pinsets.a.pins[0]: \"\(SampleCertificate.keyPin)\" is a public key; "
                + "expected a certificate file or fingerprint, or mode: publicKey"),
        Wrong(
            "pinsets: { a: { mode: publicKey } }",
            "1: pinsets.a: a pinset with a mode needs pins; expected at least one, or mode: none"),
        Wrong(
            "pinsets: { a: { mode: none, allowInvalidCertificates: true } }",
            "1: pinsets.a.allowInvalidCertificates: allowInvalidCertificates without pins proves "
                + "no host name; expected pins, or validatesDomainName: false"),
    ])
    func `a wrong pinset is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test func `a file that is not a certificate is neither a pin nor a root`() throws {
        try withTemporaryFolder { folder in
            try write("hello", to: "text.pem", in: folder)
            try write("", to: "empty.pem", in: folder)
            try write(SampleCertificate.publicKeyPEM, to: "key.pem", in: folder)
            let text = """
                tls: { roots: [system, text.pem, empty.pem, key.pem, none.pem] }
                pinsets:
                  a: { mode: publicKey, pins: [text.pem] }
                  b: { mode: certificate, pins: [key.pem] }
                """
            #expect(
                errors(of: text, folder: folder) == [
                    "gateway.yaml:1: tls.roots[1]: \"\(folder)/text.pem\" is not a certificate "
                        + "file: not PEM and not the DER of a certificate or a public key",
                    "gateway.yaml:1: tls.roots[2]: \"\(folder)/empty.pem\" is not a certificate "
                        + "file: the file is empty; expected a certificate or a public key "
                        + "in PEM or DER",
                    "gateway.yaml:1: tls.roots[3]: \"\(folder)/key.pem\" is not a certificate "
                        + "file: the file holds a public key; expected certificates",
                    "gateway.yaml:1: tls.roots[4]: \"\(folder)/none.pem\" cannot be read: "
                        + "No such file or directory; expected a readable file",
                    "gateway.yaml:3: pinsets.a.pins[0]: \"\(folder)/text.pem\" is not a pin: "
                        + "not PEM and not the DER of a certificate or a public key",
                    "gateway.yaml:4: pinsets.b.pins[0]: \"\(folder)/key.pem\" is a public key; "
                        + "expected a certificate file or fingerprint, or mode: publicKey",
                ])
        }
    }

    @Test func `roots are read when loaded and inherited by hosts`() throws {
        try withTemporaryFolder { folder in
            try write(SampleCertificate.pem, to: "ca.pem", in: folder)
            let snapshot = try load(
                """
                tls: { roots: [system, ca.pem] }
                hosts:
                  - { match: [a] }
                  - { match: [b], tls: { roots: [system] } }
                """, folder: folder)
            #expect(snapshot.tls.roots.count == 2)
            guard case .file(let path, let certificates) = snapshot.tls.roots[1] else {
                Issue.record("not a file")
                return
            }
            #expect(path == folder + "/ca.pem")
            #expect(certificates.count == 1)
            #expect(snapshot.hosts.entries[0].tls == snapshot.tls)
            #expect(snapshot.hosts.entries[1].tls.roots == [.system])
        }
    }

    /// An entry of a log list, with the SubjectPublicKeyInfo and its SHA-256.
    private static func log(_ key: String, _ id: String) -> String {
        #"{"key":"\#(key)","log_id":"\#(id)","#
            + #""state":{"usable":{"timestamp":"2026-01-01T00:00:00Z"}}}"#
    }

    @Test func `a list of logs that several entries name is read once`() throws {
        let logs = [
            Self.log(
                "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEO+/dDp7qWKat5Y3OHdxHa40QZwDRGPZW2szuYiSG6yJG"
                    + "l7BRqzw/uBg0Myr4EPitC9dVWikHjdW6TedlOZP9Yg==",
                "af//UNuuqPw7UaHac9EAy+ocB2466/rawbQoQJMkCg0="),
            // An Ed25519 key.
            Self.log(
                "MCowBQYDK2VwAyEA1RF41/CtKUZZLffaR/GS+b+t3bIvqz5ir063GDpRtZ8=",
                "XTuztL+ANz4itSm5TOHTTanB9nLHyGF33ERAEi+z6xA="),
        ]
        try withTemporaryFolder { folder in
            try write(
                #"{"operators":[{"logs":[\#(logs.joined(separator: ","))]}]}"#, to: "logs.json",
                in: folder)
            let entry =
                "upgrade: https, tls: { certificateTransparency: "
                + "{ minimumSCTs: 1, logs: logs.json } } }"
            let snapshot = try load(
                "hosts: [{ match: [a.test], \(entry), { match: [b.test], \(entry)]", folder: folder
            )
            let read = snapshot.hosts.entries.compactMap { $0.tls.transparency.list?.list.logs }
            #expect(read.map { $0.map(\.hasKnownKey) } == [[true, false], [true, false]])
            // They share memory.
            let places = read.map { $0.withUnsafeBufferPointer { $0.baseAddress } }
            #expect(places[0] == places[1])
        }
    }
}
