import HTTPCore

/// Compares `:authority` with Host (RFC 9113 §8.3.1).
enum AuthorityComparison {
    /// Whether two authorities are the same after normalization (RFC 3986 §6.2.2, §6.2.3): in any
    /// letter case, and with or without the scheme's default port.
    static func equal(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer, scheme: Scheme?
    ) -> Bool {
        let left = withoutDefaultPort(left, scheme)
        let right = withoutDefaultPort(right, scheme)
        return left.count == right.count
            && zip(left, right).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }

    private static func withoutDefaultPort(
        _ authority: UnsafeRawBufferPointer, _ scheme: Scheme?
    ) -> Slice<UnsafeRawBufferPointer> {
        let all = authority[...]
        guard let scheme, let colon = authority.lastIndex(of: UInt8(ascii: ":")) else { return all }
        let digits = authority[(colon + 1)...]
        let isDefault: Bool
        switch scheme {
        case .http: isDefault = digits.elementsEqual("80".utf8)
        case .https: isDefault = digits.elementsEqual("443".utf8)
        }
        // What follows the last colon of an IPv6 address has a bracket.
        return isDefault || digits.isEmpty ? all[..<colon] : all
    }
}
