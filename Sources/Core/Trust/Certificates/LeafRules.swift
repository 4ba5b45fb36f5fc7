import HTTPCore

extension ChainRules {
    /// The rules for a server's own certificate.
    func leaf(_ fields: CertificateFields) -> [CertificateRule] {
        var found = names(fields) + purposes(fields)
        let claimsAuthority = fields.basicConstraints?.isAuthority ?? false
        let maySign = fields.maySignCertificates ?? false
        if claimsAuthority, maySign {
            found.append(.authorityAsLeaf)
        } else if claimsAuthority {
            found.append(.leafWithAuthorityFlag)
        } else if maySign {
            found.append(.leafMaySign)
        }
        if fields.standard(StandardExtension.nameConstraints) != nil {
            found.append(.nameConstraintsOnLeaf)
        }
        if let policy = fields.standard(StandardExtension.policyConstraints), !policy.isCritical {
            found.append(.policyConstraintsNotCritical)
        }
        return found
    }

    // MARK: Purposes

    private static let serverAuthentication: [UInt8] = [
        0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01,
    ]
    private static let anyPurpose: [UInt8] = [0x55, 0x1D, 0x25, 0x00]

    private func purposes(_ fields: CertificateFields) -> [CertificateRule] {
        guard let usage = fields.standard(StandardExtension.extendedKeyUsage) else {
            return [.purposeMissing]
        }
        var found: [CertificateRule] = []
        let purposes = fields.purposes ?? []
        if purposes.contains(where: { $0.elementsEqual(Self.anyPurpose) }) {
            found.append(.anyPurpose)
        }
        if !purposes.contains(where: { $0.elementsEqual(Self.serverAuthentication) }) {
            found.append(.notForServers)
        }
        if usage.isCritical { found.append(.purposeCritical) }
        return found
    }

    // MARK: Names

    private func names(_ fields: CertificateFields) -> [CertificateRule] {
        guard let alternative = fields.standard(StandardExtension.subjectAlternativeName) else {
            return [.sanMissing]
        }
        guard let names = fields.alternativeNames, !names.isEmpty else { return [.sanMalformed] }
        var found: [CertificateRule] = []
        if alternative.isCritical, !fields.hasEmptySubject { found.append(.sanCritical) }
        if !alternative.isCritical, fields.hasEmptySubject { found.append(.sanNotCritical) }
        for name in names {
            switch name {
            case .dns(let bytes):
                if !LeafNames.isHost(bytes), !LeafNames.isWildcard(bytes) {
                    found.append(LeafNames.hasUnderscoreOnly(bytes) ? .sanUnderscore : .sanBadName)
                } else if let rule = wildcard(bytes) {
                    found.append(rule)
                }
            case .address(let bytes):
                if bytes.count != 4, bytes.count != 16 { found.append(.sanBadName) }
            case .other: continue
            }
        }
        for name in fields.commonNames where LeafNames.looksLikeHost(name) {
            if !names.contains(where: { LeafNames.isText(name, of: $0) }) {
                found.append(.commonNameNotInSAN)
            }
        }
        return found
    }

    private func wildcard(_ name: ArraySlice<UInt8>) -> CertificateRule? {
        guard name.starts(with: LeafNames.wildcard) else { return nil }
        let domain = String(decoding: name.dropFirst(2).map(ASCII.lowercased), as: UTF8.self)
        switch suffixes.kind(of: domain) {
        case .none: return nil
        case .listed: return .publicSuffixWildcard
        case .privateSuffix: return .privateSuffixWildcard
        case .unlisted: return .unlistedSuffixWildcard
        }
    }
}

/// Host names in certificates.
enum LeafNames {
    /// The beginning of a wildcard name.
    static let wildcard: [UInt8] = [UInt8(ascii: "*"), UInt8(ascii: ".")]
    /// The maximum length in octets of a label, and of a name in text form (RFC 1035 §2.3.4).
    private static let labelBytes = 63
    private static let nameBytes = 253

    /// Whether it consists of letters, digits and hyphens in labels of 1 to 63, without a hyphen at
    /// either end of a label or a dot at either end of the name (RFC 5890 §2.3.1).
    static func isHost(_ name: ArraySlice<UInt8>) -> Bool {
        guard (1...nameBytes).contains(name.count) else { return false }
        let hyphen = UInt8(ascii: "-")
        var labelCount = 0
        var last: UInt8 = hyphen
        for byte in name {
            if byte == UInt8(ascii: ".") {
                guard labelCount > 0, last != hyphen else { return false }
                labelCount = 0
            } else {
                guard
                    ASCII.isLetter(byte) || ASCII.isDigit(byte)
                        || (byte == hyphen && labelCount > 0)
                else {
                    return false
                }
                labelCount += 1
                guard labelCount <= labelBytes else { return false }
            }
            last = byte
        }
        return labelCount > 0 && last != hyphen
    }

    /// Whether it is `*.` followed by a name.
    static func isWildcard(_ name: ArraySlice<UInt8>) -> Bool {
        name.starts(with: wildcard) && isHost(name.dropFirst(2))
    }

    /// Whether it would be a host name or a wildcard but for its underscores.
    static func hasUnderscoreOnly(_ name: ArraySlice<UInt8>) -> Bool {
        let replaced = name.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "a") : $0 }[...]
        return isHost(replaced) || isWildcard(replaced)
    }

    /// Whether a common name could be taken for a host name or address: one with a dot between name
    /// characters, `localhost`, or an address in any notation. Every non-ASCII character counts as
    /// a name character, because the name may be an internationalized one.
    static func looksLikeHost(_ name: [UInt8]) -> Bool {
        if name.map(ASCII.lowercased).elementsEqual("localhost".utf8) { return true }
        if IPAddress(literal: name.span) != nil { return true }
        if isHexadecimal(name) { return true }
        guard let dot = name.firstIndex(of: UInt8(ascii: ".")), dot < name.count - 1 || dot > 0
        else { return false }
        return name.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || $0 >= 0x80 || ".-_*".utf8.contains($0)
        }
    }

    /// Whether it is `0x7f000001`, or an IPv6 address that is not written canonically.
    private static func isHexadecimal(_ name: [UInt8]) -> Bool {
        let digits = name.starts(with: "0x".utf8) ? name.dropFirst(2) : name[...]
        let colon = UInt8(ascii: ":")
        guard digits.startIndex == 2 || digits.filter({ $0 == colon }).count > 1 else {
            return false
        }
        return !digits.isEmpty
            && digits.allSatisfy {
                ASCII.hexValue($0) != nil || $0 == colon || $0 == UInt8(ascii: ".")
            }
    }

    /// Whether a common name is exactly the text of an alternative name: a DNS name as encoded, an
    /// address in decimal notation or in the form of RFC 5952.
    static func isText(_ name: [UInt8], of alternative: CertificateFields.AlternativeName) -> Bool {
        switch alternative {
        case .dns(let bytes): return bytes.elementsEqual(name)
        case .address(let bytes):
            guard let address = address(bytes) else { return false }
            return "\(address)".utf8.elementsEqual(name)
        case .other: return false
        }
    }

    private static func address(_ bytes: ArraySlice<UInt8>) -> IPAddress? {
        func number(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: return .v4(UInt32(truncatingIfNeeded: number(bytes)))
        case 16: return .v6(number(bytes.prefix(8)), number(bytes.suffix(8)))
        default: return nil
        }
    }
}
