import COpenSSL
import HTTPCore

/// What a new authority is to be.
package struct AuthorityProfile: Sendable {
    /// The kinds of key that an authority may have.
    package enum Key: Hashable, Sendable {
        case ecdsaP256
        /// RSA with so many bits, at least 2048: for clients that verify no ECDSA.
        case rsa(bits: Int)
    }

    package var key: Key
    /// The subject's common name, 64 characters at most; what people see in a list of authorities.
    package var commonName: String
    /// Seconds since 1970.
    package var validity: ClosedRange<Int64>
    /// What its certificates may name; empty: anything.
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
/// Names and addresses are limited apart, so that where one kind is limited, all of the other kind
/// that are not listed are excluded: else an authority for `example.com` could vouch for any
/// address.
package struct NameLimits: Hashable, Sendable {
    /// Each permits itself and every name under it.
    package private(set) var names: [String] = []
    package private(set) var networks: [IPNetwork] = []

    package init() {}

    /// Limits of texts, each a name or a network; nil for the first text that is neither.
    package init(_ texts: [String]) throws(InvalidLimit) {
        for text in texts {
            if let network = IPNetwork(text) {
                networks.append(network)
            } else if case .dns(let name) = ReferenceIdentifier(text) {
                names.append(name)
            } else {
                throw InvalidLimit(text: text)
            }
        }
    }

    /// A text that is neither a name nor a network.
    package struct InvalidLimit: Error, Hashable {
        package let text: String
    }

    package var isEmpty: Bool { names.isEmpty && networks.isEmpty }

    /// The extension as in openssl.cnf. Names and networks have been read, so that no syntax of
    /// that notation is in them.
    var notation: String {
        var parts = names.map { "permitted;DNS:" + $0 }
        // A name that never exists (RFC 6761 §6.4): verifiers differ about an empty one.
        if names.isEmpty { parts.append("permitted;DNS:invalid") }
        for network in networks {
            parts.append("permitted;IP:\(network.address)/\(Self.mask(network))")
        }
        // With a permitted network all others are forbidden, those of the other family too.
        // Excluded ones beside it would stop Java's validator, which compares across families.
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
