import COpenSSL
import HTTPCore

/// The properties of a new authority.
package struct AuthorityProfile: Sendable {
    /// The kinds of key that an authority may have.
    package enum Key: Hashable, Sendable {
        case ecdsaP256
        /// RSA with this many bits, at least 2048: for clients that cannot verify ECDSA.
        case rsa(bits: Int)
    }

    package var key: Key
    /// The subject's common name, 64 characters at most: what people see in a list of authorities.
    package var commonName: String
    /// Seconds since 1970.
    package var validity: ClosedRange<Int64>
    /// The names that its certificates may contain; empty for no limit.
    package var constraints: NameLimits

    package init(
        key: Key, commonName: String, validity: ClosedRange<Int64>,
        constraints: NameLimits = NameLimits()
    ) {
        self.key = key
        self.commonName = commonName
        self.validity = validity
        self.constraints = constraints
    }
}

/// The names that an authority's certificates are limited to (RFC 5280 §4.2.1.10).
///
/// Names and addresses are limited separately. If either kind is limited, unlisted entries of the
/// other kind are excluded as well: otherwise an authority for `example.com` could vouch for any
/// address.
package struct NameLimits: Hashable, Sendable {
    /// Each permits itself and every name below it.
    package private(set) var names: [String] = []
    package private(set) var networks: [IPNetwork] = []

    package init() {}

    /// Limits from texts, each of them a name or a network. Throws for the first text that is
    /// neither.
    package init(_ texts: [String]) throws(InvalidLimitError) {
        for text in texts {
            if let network = IPNetwork(text) {
                networks.append(network)
            } else if case .dns(let name) = ReferenceIdentifier(text) {
                names.append(name)
            } else {
                throw InvalidLimitError(text: text)
            }
        }
    }

    /// A text that is neither a name nor a network.
    package struct InvalidLimitError: Error, Hashable {
        package let text: String
    }

    package var isEmpty: Bool { names.isEmpty && networks.isEmpty }

    /// The extension in the notation of openssl.cnf. The names and networks have been parsed, so
    /// they contain none of that notation's syntax.
    var notation: String {
        var parts = names.map { "permitted;DNS:" + $0 }
        // A name that never exists (RFC 6761 §6.4): verifiers disagree about an empty one.
        if names.isEmpty { parts.append("permitted;DNS:invalid") }
        for network in networks {
            parts.append("permitted;IP:\(network.address)/\(Self.mask(network))")
        }
        // A permitted network already excludes all others, including those of the other family.
        // Explicit exclusions next to it would break Java's validator, which compares across
        // families.
        if networks.isEmpty { parts += ["excluded;IP:0.0.0.0/0.0.0.0", "excluded;IP:::/::"] }
        return "critical," + parts.joined(separator: ",")
    }

    /// The network's mask, written as an address.
    private static func mask(_ network: IPNetwork) -> IPAddress {
        let bits = network.prefixLength
        switch network.address {
        case .v4: return .v4(bits == 0 ? 0 : ~0 << UInt32(32 - bits))
        case .v6:
            return .v6(
                bits == 0 ? 0 : ~0 << UInt64(max(0, 64 - bits)),
                bits <= 64 ? 0 : ~0 << UInt64(128 - bits))
        }
    }
}
