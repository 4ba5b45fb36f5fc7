import HTTPCore
import Testing

@testable import Trust

/// The digest held in an array, for macros that take no spans.
func digestHolding(_ bytes: [UInt8]) -> SHA256Digest? {
    SHA256Digest(bytes.span)
}

@Suite("Pins")
struct PinTests {
    /// SHA-256 of nothing, in the three forms.
    static let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    static let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    static let digest: SHA256Digest = {
        let bytes = Hexadecimal.decode(Array(hex.utf8)) ?? []
        guard let digest = SHA256Digest(bytes.span) else { fatalError("32 bytes") }
        return digest
    }()
    static let colons = digest.fingerprintText

    @Test(
        arguments: [
            ("sha256/\(base64)", 1), ("sha256//\(base64)", 1), ("  sha256/\(base64)\t", 1),
            ("SHA256/\(base64)", 1), ("sha256//\(base64);sha256//\(base64)", 2),
            ("sha256/\(base64); sha256//\(base64) ;sha256/\(base64)", 3),
        ])
    func `key pins are read in the form of HPKP and in curl's, also joined`(
        _ text: String, _ count: Int
    ) throws {
        let expected = [Pin](repeating: .keyDigest(Self.digest), count: count)
        #expect(try Pin.parse(text) == .literal(expected))
    }

    @Test func `a digest's own first slash is distinguished from curl's second one`() throws {
        let bytes: [UInt8] = [0xFC] + [UInt8](repeating: 0, count: 31)
        let digest = try #require(digestHolding(bytes))
        let text = Base64.encode(bytes)
        #expect(text.hasPrefix("/"))
        #expect(try Pin.parse("sha256/" + text) == .literal([.keyDigest(digest)]))
        #expect(try Pin.parse("sha256//" + text) == .literal([.keyDigest(digest)]))
    }

    @Test(arguments: [hex, hex.uppercased(), colons, colons.lowercased(), " \(colons) "])
    func `certificate fingerprints are read with colons and without, in either case`(_ text: String)
        throws
    {
        #expect(try Pin.parse(text) == .literal([.certificateFingerprint(Self.digest)]))
    }

    @Test(
        arguments: [
            "certificates/api.cer", "api.pem", "/etc/pins/a", "sha256.pem", "sha256x/file",
            "abcdef",
            "./sha256/AAAA", "a:b",
        ])
    func `everything else is the path of a file`(_ text: String) throws {
        #expect(try Pin.parse(text) == .file(text))
    }

    static let wrong: [(String, PinError)] = [
        ("", PinError.empty), ("  ", .empty),
        (base64, .missingHash(pin: "sha256/\(base64)")),
        ("sha256-\(base64)", .missingHash(pin: "sha256/\(base64)")),
        ("SHA256:\(base64)", .missingHash(pin: "sha256/\(base64)")),
        ("sha1/2jmj7l5rSw0yVb/vlWAYkK/YBwk=", .unsupportedHash),
        ("sha512/AAAA", .unsupportedHash),
        ("md5/AAAA", .unsupportedHash), ("sha256/\(base64);sha1/AAAA", .unsupportedHash),
        ("sha256/", .badDigest(.length(0))), ("sha256/AAAA", .badDigest(.length(4))),
        ("sha256/*", .badDigest(.character("*", position: 1))),
        ("sha256/\(base64.dropLast())", .badDigest(.length(43))),
        ("sha256/\(base64)=", .badDigest(.length(45))),
        ("sha256///\(base64)", .badDigest(.length(45))), ("sha256/\(base64);", .empty),
        (
            "sha256/-_DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            .badDigest(.character("-", position: 1))
        ),
        // The last digit has unused bits.
        ("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=", .badDigest(.trailingBits("V"))),
        // A placeholder as in documentation: not a digest, because x sets unused bits.
        ("sha256/\(String(repeating: "x", count: 43))=", .badDigest(.trailingBits("x"))),
        ("sha256/xxxx…=", .badDigest(.character("…", position: 5))),
        ("sha256/\(String(repeating: "A", count: 44))", .badDigest(.paddingCount(0))),
        ("sha256/\(String(repeating: "A", count: 42))==", .badDigest(.paddingCount(2))),
        ("sha256/AAAA=AAA", .badDigest(.padding(position: 5))),
        (String(hex.dropLast()), .badFingerprint),
        (String(hex.dropLast(2)), .fingerprintLength),
        (hex + "00", .fingerprintLength), ("00:" + colons, .fingerprintLength),
        (String(colons.dropLast(3)), .fingerprintLength), (colons + ":", .badFingerprint),
        ("e3:" + hex.dropFirst(2), .badFingerprint),
        // SHA-1 fingerprints, as older tools print them.
        ("DA:39:A3:EE:5E:6B:4B:0D:32:55:BF:EF:95:60:18:90:AF:D8:07:09", .fingerprintLength),
    ]

    @Test(arguments: wrong)
    func `a pin that is meant as one and is wrong is an error with the reason`(
        _ text: String, _ error: PinError
    ) {
        #expect(throws: error) { try Pin.parse(text) }
    }

    @Test(
        arguments: [
            (.character("…", position: 5), #"\u{2026} at position 5"#),
            (.character("*", position: 1), "'*' at position 1"),
            (.character("_", position: 2), "URL-safe base64"),
            (.length(43), "has 43 characters; expected 44"),
            (.padding(position: 5), "'=' at position 5, before its end"),
            (.paddingCount(0), "ends in no '='"), (.paddingCount(2), "ends in 2 '='"),
            (.trailingBits("x"), "no digest ends in 'x='"),
        ] as [(DigestTextReason, String)])
    func `every problem of a digest has a text of its own`(
        _ problem: DigestTextReason, _ text: String
    ) {
        #expect(PinError.badDigest(problem).problem.contains(text))
    }
}

@Suite("Pin files")
struct PinFileTests {
    /// Not certificates and keys, but with the same outline.
    static let certificate: [UInt8] = [0x30, 0x06, 0x30, 0x03, 0x02, 0x01, 0x07, 0x00]
    static let versioned: [UInt8] = [0x30, 0x05, 0x30, 0x03, 0xA0, 0x01, 0x02]
    static let long: [UInt8] = [0x30, 0x81, 0x80] + certificate[2...] + padding(0x7A)
    static let longer: [UInt8] = [0x30, 0x82, 0x01, 0x00] + certificate[2...] + padding(0xFA)
    private static func padding(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    static let key: [UInt8] = [0x30, 0x05, 0x30, 0x03, 0x06, 0x01, 0x01]

    static func armored(_ label: String, _ bytes: [UInt8], newline: String = "\n") -> String {
        ["-----BEGIN \(label)-----", Base64.encode(bytes), "-----END \(label)-----", ""]
            .joined(separator: newline)
    }

    @Test func `a DER file is one certificate or one public key`() throws {
        #expect(try Pin.decode(file: Self.certificate) == [.certificate(Self.certificate)])
        #expect(try Pin.decode(file: Self.versioned) == [.certificate(Self.versioned)])
        #expect(try Pin.decode(file: Self.key) == [.publicKey(Self.key)])
        #expect(try Pin.decode(file: Self.long) == [.certificate(Self.long)])
        #expect(try Pin.decode(file: Self.longer) == [.certificate(Self.longer)])
    }

    @Test func `a PEM file is its certificates and public keys, text around them ignored`() throws {
        let text =
            "subject=CN=a\n" + Self.armored("CERTIFICATE", Self.certificate) + "\nnext\n"
            + Self.armored("PUBLIC KEY", Self.key, newline: "\r\n")
            + Self.armored("X509 CERTIFICATE", Self.versioned)
        #expect(
            try Pin.decode(file: Array(text.utf8)) == [
                .certificate(Self.certificate), .publicKey(Self.key), .certificate(Self.versioned),
            ])
    }

    static let wrong: [([UInt8], PinError)] = [
        ([], PinError.noBlocks),
        (Array("hello".utf8), .notCertificateOrKey),
        (certificate.dropLast(), .notCertificateOrKey),
        (certificate + [0], .notCertificateOrKey),
        ([0x30, 0x80, 0x00, 0x00], .notCertificateOrKey),
        // Lengths in more octets than necessary.
        ([0x30, 0x81, 0x05] + versioned[2...], .notCertificateOrKey),
        ([0x30, 0x82, 0x00, 0x80] + long[3...], .notCertificateOrKey),
        ([0x30, 0x83, 0x00, 0x01, 0x00] + longer[4...], .notCertificateOrKey),
        ([0x30, 0x85, 1, 1, 1, 1, 1], .notCertificateOrKey),
        ([0x30], .notCertificateOrKey),
        ([0x30, 0x82, 0x01], .notCertificateOrKey),
        ([0x30, 0x04, 0x30, 0x02, 0x04, 0x00], .notCertificateOrKey),
        (Array(armored("CERTIFICATE", key).utf8), .notCertificateOrKey),
        (Array(armored("PUBLIC KEY", certificate).utf8), .notCertificateOrKey),
        (Array(armored("PRIVATE KEY", key).utf8), .privateKey),
        (Array(armored("EC PRIVATE KEY", key).utf8), .privateKey),
        (
            Array((armored("CERTIFICATE", certificate) + armored("RSA PRIVATE KEY", key)).utf8),
            .privateKey
        ),
        (Array(armored("X509 CRL", key).utf8), .unsupportedBlock),
        (Array("-----BEGIN CERTIFICATE-----\nAAAA\n".utf8), .badArmor),
        (Array("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----".utf8), .badArmor),
        (Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END PUBLIC KEY-----".utf8), .badArmor),
        (Array("-----BEGIN A-----\n-----BEGIN B-----\n".utf8), .badArmor),
    ]

    @Test(arguments: wrong)
    func `a file that holds no pin is an error with the reason`(
        _ contents: [UInt8], _ error: PinError
    ) {
        #expect(throws: error) { try Pin.decode(file: contents) }
    }

    @Test func `a file of trust anchors holds certificates only`() throws {
        let two =
            Self.armored("CERTIFICATE", Self.certificate)
            + Self.armored("CERTIFICATE", Self.versioned)
        #expect(
            try Pin.decodeCertificates(file: Array(two.utf8)) == [Self.certificate, Self.versioned])
        #expect(throws: PinError.keyInsteadOfCertificate) {
            try Pin.decodeCertificates(file: Self.key)
        }
    }
}

@Suite("Text encodings")
struct TextEncodingTests {
    @Test func `a digest has exactly 32 bytes and prints as pins do`() throws {
        let bytes = (0..<32).map { UInt8($0) }
        let digest = try #require(digestHolding(bytes))
        #expect(digest.bytes == bytes)
        #expect(digest.keyPinText == "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        #expect(digest.fingerprintText.hasPrefix("00:01:02:03"))
        #expect(digest.fingerprintText.hasSuffix("1D:1E:1F"))
        #expect(digestHolding(Array(bytes.dropLast())) == nil)
        #expect(digestHolding(bytes + [0]) == nil)
    }
}
