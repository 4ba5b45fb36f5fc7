import HTTPCore

/// Why a text or a file is not a pin.
package enum PinError: Error, Hashable, Sendable {
    case empty
    case unsupportedHash
    case missingHash(pin: String)
    case badDigest(DigestTextReason)
    case badFingerprint
    case fingerprintLength
    case badArmor
    case noBlocks
    case privateKey
    case unsupportedBlock
    case notCertificateOrKey
    case keyInsteadOfCertificate

    /// What is wrong and what was expected, for a configuration's error line.
    package var problem: String {
        switch self {
        case .empty: "the pin is empty; expected sha256/BASE64, a fingerprint or a file"
        case .missingHash(let pin): "the pin does not name its hash; write \(pin)"
        case .unsupportedHash: "only SHA-256 is supported; expected sha256/BASE64"
        case .badDigest(let problem): problem.problem
        case .badFingerprint:
            "not a fingerprint; expected pairs of hex digits, ':' between all or none"
        case .fingerprintLength: "not 32 bytes long; expected the SHA-256 of a certificate"
        case .badArmor: "the PEM armor is damaged"
        case .noBlocks: "the file is empty; expected a certificate or a public key in PEM or DER"
        case .privateKey: "the file holds a private key; expected a certificate or a public key"
        case .unsupportedBlock: "a PEM block is neither CERTIFICATE nor PUBLIC KEY"
        case .notCertificateOrKey: "not PEM and not the DER of a certificate or a public key"
        case .keyInsteadOfCertificate: "the file holds a public key; expected certificates"
        }
    }
}

/// One certificate or key that a server may authenticate with.
package enum Pin: Hashable, Sendable {
    /// The SHA-256 of a SubjectPublicKeyInfo.
    case keyDigest(SHA256Digest)
    /// The SHA-256 of a whole certificate.
    case certificateFingerprint(SHA256Digest)
    /// A certificate's DER, not yet parsed; the TLS adapter parses it when it creates a context.
    case certificate([UInt8])
    /// A SubjectPublicKeyInfo's DER, not yet parsed.
    case publicKey([UInt8])

    /// What a pin in a configuration refers to.
    package enum Reference: Hashable, Sendable {
        /// The pins in the text itself, at least one.
        case literal([Pin])
        /// The path of a file with the pins: read it and call `Pin.decode(file:)`.
        case file(String)
    }

    /// Parses one entry of a list of pins: `sha256/BASE64`, curl's `sha256//BASE64` or several of
    /// these joined by `;`, or a certificate's SHA-256 fingerprint in hex with or without colons;
    /// everything else is a path. Surrounding spaces are ignored.
    package static func parse(_ text: String) throws(PinError) -> Reference {
        let bytes = Array(text.utf8)[...].withoutOuterSpace
        guard !bytes.isEmpty else { throw .empty }
        if hashName(bytes) != nil {
            var pins: [Pin] = []
            for part in bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            {
                pins.append(try keyDigest(part.withoutOuterSpace))
            }
            return .literal(pins)
        }
        let hexadecimal = bytes.allSatisfy {
            ASCII.hexValue($0) != nil || $0 == UInt8(ascii: ":")
        }
        guard hexadecimal, bytes.count >= shortestFingerprintText else {
            if let digest = bareDigest(bytes) {
                throw .missingHash(pin: digest.keyPinText)
            }
            return .file(String(decoding: bytes, as: UTF8.self))
        }
        guard let digest = Hexadecimal.decode(Array(bytes)) else { throw .badFingerprint }
        guard let fingerprint = SHA256Digest(digest.span) else { throw .fingerprintLength }
        return .literal([.certificateFingerprint(fingerprint)])
    }

    /// The digest that a text encodes in base64, alone or after its hash as other programs write it
    /// (`sha256-…`, `sha256:…`): no file has such a name.
    private static func bareDigest(_ text: ArraySlice<UInt8>) -> SHA256Digest? {
        var digits = text
        if text.count > SHA256Digest.base64Count,
            String(decoding: text.prefix(6).map(ASCII.lowercased), as: UTF8.self) == "sha256"
        {
            digits = text.dropFirst(7)
        }
        return try? SHA256Digest.parse(base64: digits)
    }

    /// A text with at least this many hex digits is meant as a fingerprint: those of MD5 have 32.
    private static let shortestFingerprintText = 32

    /// The text before the first `/`, if it is the name of a hash.
    private static func hashName(_ text: ArraySlice<UInt8>) -> String? {
        guard let slash = text.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let name = String(decoding: text[..<slash].map(ASCII.lowercased), as: UTF8.self)
        return ["sha256", "sha1", "sha384", "sha512", "md5"].contains(name) ? name : nil
    }

    private static func keyDigest(_ text: ArraySlice<UInt8>) throws(PinError) -> Pin {
        guard !text.isEmpty else { throw .empty }
        guard hashName(text) == "sha256" else { throw .unsupportedHash }
        // A single slash may be followed by a digest that itself begins with one, so `sha256//` is
        // curl's form only if 44 characters follow.
        let digits = text.dropFirst("sha256/".utf8.count)
        let curl = digits.first == UInt8(ascii: "/") && digits.count != SHA256Digest.base64Count
        return .keyDigest(try SHA256Digest.parse(base64: curl ? digits.dropFirst() : digits))
    }

    /// The pins in a file's contents: every CERTIFICATE and PUBLIC KEY block of a PEM file, or the
    /// one certificate or public key of a DER file. Never empty.
    package static func decode(file contents: [UInt8]) throws(PinError) -> [Pin] {
        guard !contents.isEmpty else { throw .noBlocks }
        guard PEM.isArmored(contents) else {
            switch DER.kind(contents) {
            case .certificate: return [.certificate(contents)]
            case .publicKey: return [.publicKey(contents)]
            case nil: throw .notCertificateOrKey
            }
        }
        var pins: [Pin] = []
        for block in try PEM.blocks(contents) {
            switch block.label {
            case "CERTIFICATE", "X509 CERTIFICATE":
                guard DER.kind(block.bytes) == .certificate else { throw .notCertificateOrKey }
                pins.append(.certificate(block.bytes))
            case "PUBLIC KEY":
                guard DER.kind(block.bytes) == .publicKey else { throw .notCertificateOrKey }
                pins.append(.publicKey(block.bytes))
            case let label where label.hasSuffix("PRIVATE KEY"):
                throw .privateKey
            default:
                throw .unsupportedBlock
            }
        }
        guard !pins.isEmpty else { throw .noBlocks }
        return pins
    }

    /// The DER of the certificates in a file of trust anchors, PEM or DER, in order. Never empty; a
    /// public key in the file is an error, because an anchor is a certificate.
    package static func decodeCertificates(
        file contents: [UInt8]
    ) throws(PinError) -> [[UInt8]] {
        var certificates: [[UInt8]] = []
        for pin in try decode(file: contents) {
            guard case .certificate(let bytes) = pin else { throw .keyInsteadOfCertificate }
            certificates.append(bytes)
        }
        return certificates
    }

    /// What a peer presents, read from a file: the contents of the CERTIFICATE blocks if it is PEM,
    /// whether or not they are certificates; otherwise the whole file as one. Never empty.
    package static func decodePresented(file contents: [UInt8]) throws(PinError) -> [[UInt8]] {
        guard !contents.isEmpty else { throw .noBlocks }
        guard PEM.isArmored(contents) else { return [contents] }
        var certificates: [[UInt8]] = []
        for block in try PEM.blocks(contents) {
            switch block.label {
            case "CERTIFICATE", "X509 CERTIFICATE": certificates.append(block.bytes)
            case let label where label.hasSuffix("PRIVATE KEY"): throw .privateKey
            case "PUBLIC KEY": throw .keyInsteadOfCertificate
            default: throw .unsupportedBlock
            }
        }
        guard !certificates.isEmpty else { throw .noBlocks }
        return certificates
    }
}

/// Just enough of DER (X.690) to distinguish a certificate from a public key.
enum DER {
    enum Kind {
        case certificate
        case publicKey
    }

    private static let version: UInt8 = 0xA0

    /// What `bytes` are, by their outline: both are a sequence that begins with a sequence,
    /// which begins with the algorithm's identifier in a SubjectPublicKeyInfo, and with the version
    /// or serial number in a certificate (RFC 5280 §4.1). Bytes after the outer sequence are
    /// refused.
    static func kind(_ bytes: [UInt8]) -> Kind? {
        guard let outer = DERReader.single(bytes[...], DERElement.sequence) else { return nil }
        var parts = DERReader(outer.contents)
        guard let inner = parts.next(DERElement.sequence) else { return nil }
        switch inner.contents.first {
        case DERElement.objectIdentifier: return .publicKey
        case DERElement.integer, version: return .certificate
        default: return nil
        }
    }
}
