/// The fields of a parsed certificate (RFC 5280 §4.1) that the rules use.
package struct CertificateFields: Sendable {
    /// An extension (RFC 5280 §4.2).
    package struct Extension: Sendable {
        /// The contents of the OBJECT IDENTIFIER.
        package var identifier: ArraySlice<UInt8>
        package var isCritical: Bool
        /// The contents of the OCTET STRING.
        package var value: ArraySlice<UInt8>
    }

    /// 1 to 3; other numbers as encoded, plus one.
    package let version: Int
    /// The contents of the INTEGER.
    package let serial: ArraySlice<UInt8>
    /// The algorithm's identifier inside what is signed, and the one beside the signature.
    let innerAlgorithm: ArraySlice<UInt8>
    let outerAlgorithm: ArraySlice<UInt8>
    /// The names, including their tag and length.
    package let issuer: ArraySlice<UInt8>
    package let subject: ArraySlice<UInt8>
    /// The contents of the SubjectPublicKeyInfo.
    let publicKey: ArraySlice<UInt8>
    package let extensions: [Extension]

    /// Parses the DER of one certificate; `nil` for anything else, including BER that other parsers
    /// accept.
    package init?(der: [UInt8]) {
        guard let outer = DERReader.single(der[...], DERElement.sequence) else { return nil }
        var parts = DERReader(outer.contents)
        guard let signed = parts.next(DERElement.sequence),
            let algorithm = parts.next(DERElement.sequence),
            parts.next(DERElement.bitString) != nil, parts.isAtEnd
        else { return nil }
        outerAlgorithm = algorithm.contents

        var fields = DERReader(signed.contents)
        if let explicit = fields.next(0xA0) {
            guard let number = DERReader.single(explicit.contents, DERElement.integer),
                number.contents.count == 1, let value = number.contents.first, value < 0x80
            else { return nil }
            version = Int(value) + 1
        } else {
            version = 1
        }
        guard let serial = fields.next(DERElement.integer),
            let inner = fields.next(DERElement.sequence),
            let issuer = fields.next(DERElement.sequence),
            fields.next(DERElement.sequence) != nil,
            let subject = fields.next(DERElement.sequence),
            let publicKey = fields.next(DERElement.sequence)
        else { return nil }
        self.serial = serial.contents
        innerAlgorithm = inner.contents
        self.issuer = issuer.whole
        self.subject = subject.whole
        self.publicKey = publicKey.contents
        // issuerUniqueID and subjectUniqueID.
        for tag: UInt8 in [0x81, 0x82] { _ = fields.next(tag) }
        var extensions: [Extension] = []
        if let explicit = fields.next(0xA3) {
            guard let list = DERReader.single(explicit.contents, DERElement.sequence)?.children
            else { return nil }
            for element in list {
                guard let one = CertificateFields.readExtension(element) else { return nil }
                extensions.append(one)
            }
        }
        guard fields.isAtEnd else { return nil }
        self.extensions = extensions
    }

    private static func readExtension(_ element: DERElement) -> Extension? {
        guard element.tag == DERElement.sequence else { return nil }
        var parts = DERReader(element.contents)
        guard let identifier = parts.next(DERElement.objectIdentifier) else { return nil }
        var isCritical = false
        if let flag = parts.next(DERElement.boolean) {
            guard flag.contents.count == 1, let value = flag.contents.first else { return nil }
            isCritical = value != 0
        }
        guard let value = parts.next(DERElement.octetString), parts.isAtEnd else { return nil }
        return Extension(
            identifier: identifier.contents, isCritical: isCritical, value: value.contents)
    }

    /// The extension whose identifier in text form is `2.5.29.N`.
    func standard(_ number: UInt8) -> Extension? {
        extensions.first {
            $0.identifier.count == 3 && $0.identifier.elementsEqual([0x55, 0x1D, number])
        }
    }

    /// Whether the certificate's issuer and subject are the same.
    package var isSelfIssued: Bool { issuer == subject }

    /// Whether the subject is an empty sequence.
    var hasEmptySubject: Bool { subject.count == 2 }
}

/// The last number of the identifiers of standard extensions, 2.5.29.N.
enum StandardExtension {
    static let subjectKeyIdentifier: UInt8 = 14
    static let keyUsage: UInt8 = 15
    static let subjectAlternativeName: UInt8 = 17
    static let basicConstraints: UInt8 = 19
    static let nameConstraints: UInt8 = 30
    static let authorityKeyIdentifier: UInt8 = 35
    static let policyConstraints: UInt8 = 36
    static let extendedKeyUsage: UInt8 = 37
}

// MARK: - Extensions

extension CertificateFields {
    /// basicConstraints (RFC 5280 §4.2.1.9).
    struct BasicConstraints {
        var isCritical: Bool
        var isAuthority: Bool
    }

    /// The basicConstraints; `nil` if absent or malformed.
    var basicConstraints: BasicConstraints? {
        guard let found = standard(StandardExtension.basicConstraints),
            let sequence = DERReader.single(found.value, DERElement.sequence)
        else { return nil }
        var reader = DERReader(sequence.contents)
        let flag = reader.next(DERElement.boolean)
        return BasicConstraints(
            isCritical: found.isCritical, isAuthority: (flag?.contents.first ?? 0) != 0)
    }

    /// Whether keyUsage allows the key to sign certificates (RFC 5280 §4.2.1.3); `nil` if it is
    /// absent.
    var maySignCertificates: Bool? {
        guard let found = standard(StandardExtension.keyUsage) else { return nil }
        guard let bits = DERReader.single(found.value, DERElement.bitString)?.contents,
            bits.count >= 2
        else { return false }
        // keyCertSign is bit 5, counted from the most significant bit of the first octet.
        return bits[bits.startIndex + 1] & 0x04 != 0
    }

    /// The contents of subjectKeyIdentifier; `nil` if absent or malformed.
    var subjectKeyIdentifier: ArraySlice<UInt8>? {
        standard(StandardExtension.subjectKeyIdentifier).flatMap {
            DERReader.single($0.value, DERElement.octetString)?.contents
        }
    }

    /// authorityKeyIdentifier (RFC 5280 §4.2.1.1).
    struct AuthorityKeyIdentifier {
        var isCritical: Bool
        var keyIdentifier: ArraySlice<UInt8>?
        /// Whether it also names the issuer's issuer or serial number.
        var namesIssuer: Bool
    }

    /// The authorityKeyIdentifier; `nil` if absent or malformed.
    var authorityKeyIdentifier: AuthorityKeyIdentifier? {
        guard let found = standard(StandardExtension.authorityKeyIdentifier),
            let sequence = DERReader.single(found.value, DERElement.sequence)
        else { return nil }
        var reader = DERReader(sequence.contents)
        let key = reader.next(0x80)?.contents
        return AuthorityKeyIdentifier(
            isCritical: found.isCritical, keyIdentifier: key, namesIssuer: !reader.isAtEnd)
    }

    /// The purposes in extendedKeyUsage, each as the contents of its OBJECT IDENTIFIER; `nil` if
    /// absent or malformed.
    var purposes: [ArraySlice<UInt8>]? {
        guard let found = standard(StandardExtension.extendedKeyUsage),
            let list = DERReader.single(found.value, DERElement.sequence)?.children,
            list.allSatisfy({ $0.tag == DERElement.objectIdentifier })
        else { return nil }
        return list.map(\.contents)
    }

    /// A subject alternative name; the contents of other kinds are ignored.
    enum AlternativeName {
        case dns(ArraySlice<UInt8>)
        case address(ArraySlice<UInt8>)
        case other
    }

    /// The names in subjectAltName (RFC 5280 §4.2.1.6); `nil` if absent or malformed.
    var alternativeNames: [AlternativeName]? {
        guard let found = standard(StandardExtension.subjectAlternativeName),
            let list = DERReader.single(found.value, DERElement.sequence)?.children
        else { return nil }
        return list.map { element in
            switch element.tag {
            case 0x82: .dns(element.contents)
            case 0x87: .address(element.contents)
            default: .other
            }
        }
    }

    /// The common names of the subject, as UTF-8 if the type of string is known.
    var commonNames: [[UInt8]] {
        guard !hasEmptySubject,
            let sets = DERReader.single(subject, DERElement.sequence)?.children
        else { return [] }
        var names: [[UInt8]] = []
        for attribute in sets.flatMap({ $0.children ?? [] }) {
            var reader = DERReader(attribute.contents)
            guard let identifier = reader.next(DERElement.objectIdentifier),
                identifier.contents.elementsEqual([0x55, 0x04, 0x03]), let value = reader.next()
            else { continue }
            // BMPString: two octets per character; for ASCII, the second one is the character.
            names.append(
                value.tag == 0x1E
                    ? stride(
                        from: value.contents.startIndex + 1, to: value.contents.endIndex, by: 2
                    )
                    .map { value.contents[$0] }
                    : Array(value.contents))
        }
        return names
    }
}
