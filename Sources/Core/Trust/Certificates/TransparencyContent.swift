/// What Certificate Transparency logs sign for a certificate in which their timestamps are embedded
/// (RFC 6962 §3.2).
package struct TransparencyContent: Hashable, Sendable {
    /// The timestamps: a SignedCertificateTimestampList (RFC 6962 §3.3); `nil` if none are embedded
    /// in the certificate.
    package let timestamps: [UInt8]?
    /// The TBSCertificate without the timestamps, byte for byte: what the logs were shown, without
    /// the precertificate's poison extension. Empty if the certificate has no timestamps.
    package let signed: [UInt8]

    /// 1.3.6.1.4.1.11129.2.4.2.
    private static let identifier: [UInt8] = [
        0x2B, 0x06, 0x01, 0x04, 0x01, 0xD6, 0x79, 0x02, 0x04, 0x02,
    ]
    private static let extensionsTag: UInt8 = 0xA3

    /// Parses the DER of a certificate; `nil` for anything else, and if the timestamps occur twice
    /// or are not an OCTET STRING.
    package init?(certificate der: [UInt8]) {
        guard let outer = DERReader.single(der[...], DERElement.sequence) else { return nil }
        var parts = DERReader(outer.contents)
        guard let whole = parts.next(DERElement.sequence), let fields = whole.children else {
            return nil
        }
        var found: [UInt8]?
        var content: [UInt8] = []
        for field in fields {
            guard field.tag == Self.extensionsTag else {
                content += field.whole
                continue
            }
            guard let list = DERReader.single(field.contents, DERElement.sequence)?.children else {
                return nil
            }
            var kept: [UInt8] = []
            for one in list {
                var members = DERReader(one.contents)
                guard let identifier = members.next(DERElement.objectIdentifier) else {
                    return nil
                }
                guard identifier.contents.elementsEqual(Self.identifier) else {
                    kept += one.whole
                    continue
                }
                _ = members.next(DERElement.boolean)
                guard found == nil, let value = members.next(DERElement.octetString),
                    members.isAtEnd,
                    let inner = DERReader.single(value.contents, DERElement.octetString)
                else { return nil }
                found = Array(inner.contents)
            }
            // An empty list of extensions is omitted (RFC 5280 §4.1).
            guard !kept.isEmpty else { continue }
            content += Self.element(
                Self.extensionsTag, Self.element(DERElement.sequence, kept))
        }
        timestamps = found
        signed = found == nil ? [] : Self.element(DERElement.sequence, content)
    }

    /// Encodes an element in DER.
    private static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if contents.count < 0x80 {
            length.append(UInt8(contents.count))
        } else {
            var rest = contents.count
            while rest > 0 {
                length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + contents
    }
}
