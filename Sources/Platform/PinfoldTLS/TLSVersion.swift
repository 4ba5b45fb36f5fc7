import COpenSSL

/// The versions that can be required, oldest first.
///
/// Versions before 1.2 are for clients that support nothing newer; they are never used to servers.
package enum TLSVersion: UInt8, Hashable, Sendable, CaseIterable {
    case tls10
    case tls11
    case tls12
    case tls13

    /// The name used in configurations.
    package var text: String {
        switch self {
        case .tls10: "1.0"
        case .tls11: "1.1"
        case .tls12: "1.2"
        case .tls13: "1.3"
        }
    }

    /// The version with a name used in configurations, or `nil` for none.
    package init?(text: String) {
        guard let version = Self.allCases.first(where: { $0.text == text }) else { return nil }
        self = version
    }

    /// Whether the library supports it only at its lowest security level, because its signatures
    /// use MD5 and SHA-1.
    var isObsolete: Bool { self < .tls12 }

    var number: Int32 {
        switch self {
        case .tls10: TLS1_VERSION
        case .tls11: TLS1_1_VERSION
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}

extension TLSVersion: Comparable {
    package static func < (one: TLSVersion, other: TLSVersion) -> Bool {
        one.rawValue < other.rawValue
    }
}
