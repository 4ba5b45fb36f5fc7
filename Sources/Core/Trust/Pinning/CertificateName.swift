import HTTPCore

/// A name that a certificate is valid for: one of its subject alternative names (RFC 5280
/// §4.2.1.6).
///
/// A host that is an address is matched against the addresses only, so the kind matters: a DNS name
/// that reads `127.0.0.1` matches nothing.
package enum CertificateName: Hashable, Sendable {
    /// A dNSName: printable ASCII.
    case dns(String)
    /// An iPAddress, as text.
    case address(String)

    /// The name without its kind.
    package var text: String {
        switch self {
        case .dns(let text), .address(let text): text
        }
    }
}

extension CertificateName: CustomStringConvertible {
    /// The name, with its kind if it could be mistaken for the other kind.
    package var description: String {
        if case .dns(let text) = self, IPAddress(literal: text.utf8.span) != nil {
            return "the DNS name \(text)"
        }
        return text
    }
}
