import HTTPCore

/// What a client looks for in the certificate (RFC 9525 §1.8): the host of its request, in the form
/// in which a certificate names it.
package enum ReferenceIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case, without a trailing dot, in A-labels.
    case dns(String)
    /// An address, as the client wrote it: a mapped one stays IPv6, because clients compare bytes.
    case address(IPAddress)

    /// The longest name without its trailing dot, and the longest label (RFC 1035 §2.3.4).
    private static let maximumNameBytes = 253
    private static let maximumLabelBytes = 63

    /// Parses a host as it appears in a URI or CONNECT: a name in any case, with or without a
    /// trailing dot, an IPv4 address, or an IPv6 address with or without brackets.
    ///
    /// Returns `nil` for anything that a certificate must not name, above all wildcards. Accepted
    /// are letters, digits, hyphens (not first or last in a label) and underscores, but no name
    /// whose last label is a number, which some parsers would take for an address.
    /// Internationalized names must be given as A-labels.
    package init?(_ host: String) {
        if let address = IPAddress(literal: host.utf8.span) {
            self = .address(address)
            return
        }
        var name = Array(host.utf8)
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        guard !name.isEmpty, name.count <= Self.maximumNameBytes else { return nil }
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.allSatisfy(Self.isLabel), let last = labels.last, !Self.isNumber(last) else {
            return nil
        }
        self = .dns(String(decoding: name.lazy.map(ASCII.lowercased), as: UTF8.self))
    }

    package var description: String {
        switch self {
        case .dns(let name): name
        case .address(let address): address.description
        }
    }

    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        let hyphen = UInt8(ascii: "-")
        guard (1...maximumLabelBytes).contains(label.count), label.first != hyphen,
            label.last != hyphen
        else { return false }
        return label.allSatisfy { byte in
            switch ASCII.lowercased(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                hyphen, UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }

    /// Decimal, or hexadecimal after "0x".
    private static func isNumber(_ label: ArraySlice<UInt8>) -> Bool {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        if label.allSatisfy(digits.contains) { return true }
        guard label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8) else { return false }
        return label.dropFirst(2).allSatisfy {
            digits.contains($0)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(ASCII.lowercased($0))
        }
    }
}
