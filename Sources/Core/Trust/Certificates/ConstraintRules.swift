import HTTPCore

/// Name constraints (RFC 5280 §4.2.1.10), which the TLS library applies, except for wildcards.
extension ChainRules {
    func constraints(at position: Int) -> [CertificateRule] {
        guard let found = chain[position].standard(StandardExtension.nameConstraints) else {
            return []
        }
        var rules: [CertificateRule] = []
        if !found.isCritical { rules.append(.nameConstraintsNotCritical) }
        guard let constraints = NameConstraints(found.value) else {
            return rules + [.nameConstraintsMalformed]
        }
        if constraints.isEmpty { rules.append(.nameConstraintsEmpty) }
        if constraints.isMalformed { rules.append(.nameConstraintsMalformed) }
        if covers(constraints.excludedNames) { rules.append(.nameConstraintsWildcard) }
        return rules
    }

    /// Whether a wildcard of the leaf covers a name in an excluded subtree: the library compares
    /// the wildcard as if it were a name itself.
    private func covers(_ excluded: [ArraySlice<UInt8>]) -> Bool {
        guard !excluded.isEmpty else { return false }
        for case .dns(let name) in chain[0].alternativeNames ?? [] {
            guard name.starts(with: LeafNames.wildcard) else { continue }
            let domain = name.dropFirst(1)
            for subtree in excluded {
                // One label, which the wildcard stands for, followed by the wildcard's domain.
                guard subtree.count > domain.count,
                    NameConstraints.isEqual(subtree.suffix(domain.count), domain),
                    !subtree.dropLast(domain.count).contains(UInt8(ascii: "."))
                else { continue }
                return true
            }
        }
        return false
    }
}

/// The two lists of name constraints.
struct NameConstraints {
    /// Whether both lists are absent, or one that is present is empty.
    private(set) var isEmpty = false
    /// Whether a subtree violates RFC 5280.
    private(set) var isMalformed = false
    /// The excluded dNSName subtrees.
    private(set) var excludedNames: [ArraySlice<UInt8>] = []

    /// `nil` if the value is malformed.
    init?(_ value: ArraySlice<UInt8>) {
        guard let sequence = DERReader.single(value, DERElement.sequence) else { return nil }
        var reader = DERReader(sequence.contents)
        var lists = 0
        for tag: UInt8 in [0xA0, 0xA1] {
            guard let list = reader.next(tag) else { continue }
            guard let subtrees = list.children else { return nil }
            lists += 1
            if subtrees.isEmpty { isEmpty = true }
            for subtree in subtrees { read(subtree, isExcluded: tag == 0xA1) }
        }
        guard reader.isAtEnd else { return nil }
        if lists == 0 { isEmpty = true }
    }

    /// GeneralSubtree: the profile allows only a base, because minimum is zero, which DER omits,
    /// and maximum is absent.
    private mutating func read(_ subtree: DERElement, isExcluded: Bool) {
        guard subtree.tag == DERElement.sequence, let parts = subtree.children, parts.count == 1
        else {
            isMalformed = true
            return
        }
        let base = parts[0]
        switch base.tag {
        case 0x82:
            if !Self.isDomain(base.contents) { isMalformed = true }
            if isExcluded { excludedNames.append(base.contents) }
        case 0x87:
            if !Self.isNetwork(base.contents) { isMalformed = true }
        default:
            if base.tag & 0xC0 != 0x80 || base.tag & 0x1F > 8 { isMalformed = true }
        }
    }

    /// Whether it is a name without wildcard and without leading or trailing dot; an empty one
    /// means all names.
    private static func isDomain(_ name: ArraySlice<UInt8>) -> Bool {
        name.isEmpty || LeafNames.isHost(name)
    }

    /// Whether it is an address and a mask of the same length, whose ones precede its zeros.
    private static func isNetwork(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count == 8 || bytes.count == 32 else { return false }
        var isInZeros = false
        for byte in bytes.suffix(bytes.count / 2) {
            if isInZeros, byte != 0 { return false }
            guard byte != 0xFF else { continue }
            guard
                (~byte).leadingZeroBitCount + (~byte).nonzeroBitCount == 8
                    || byte.leadingZeroBitCount == 8
            else { return false }
            isInZeros = true
        }
        return true
    }

    static func isEqual(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        left.elementsEqual(right) { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}
