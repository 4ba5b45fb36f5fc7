/// What a pinset compares, as in AFNetworking's `AFSSLPinningMode`.
package enum PinningMode: String, Hashable, Sendable, CaseIterable {
    /// No pins are compared.
    case none
    /// A key of the chain must be pinned.
    case publicKey
    /// The pinned certificates are the only trust anchors, and one of them must be in the chain.
    case certificate
}

/// Why a pinset can never pass, whatever a server presents: an error of the configuration.
package enum PinsetError: Error, Hashable, Sendable, CaseIterable {
    case pinsetWithoutPins
    case keyPinInCertificateMode
    case hostNameWithoutPins

    /// What is wrong and what was expected, for a configuration's error line.
    package var problem: String {
        switch self {
        case .pinsetWithoutPins:
            "a pinset with a mode needs pins; expected at least one, or mode: none"
        case .keyPinInCertificateMode:
            "certificate mode compares certificates; expected certificate files or fingerprints,"
                + " or mode: publicKey"
        case .hostNameWithoutPins:
            "allowInvalidCertificates without pins proves no host name; expected pins, or"
                + " validatesDomainName: false"
        }
    }
}

/// Pins and how they are applied, under the name given in the configuration.
package struct Pinset: Hashable, Sendable {
    /// The name in the configuration; also the metrics' label.
    package var name: String
    package var mode: PinningMode
    /// One matching pin is enough.
    package var pins: [Pin]
    /// Whether the chain need not be valid under the trust anchors; see `PinningPolicy`.
    package var allowInvalidCertificates: Bool
    /// Whether the chain check includes the host name.
    package var validatesDomainName: Bool
    /// The DER of certificates that are trust anchors for this pinset in addition to the configured
    /// roots (a private CA), so that its chain can be verified without allowing invalid ones.
    package var anchors: [[UInt8]]
    /// Whether a server is refused if no pin matches. If false, this is only reported, and the
    /// server passes if its chain is valid and names the host.
    package var isEnforced = true
    /// When the pinset expires, in seconds since 1970; `nil` if never.
    package var expires: Int64?
    /// What happens when it has expired, if it is enforced.
    package var afterExpiry = PinsetExpiry.refuse

    package init(
        name: String, mode: PinningMode = .none, pins: [Pin] = [],
        allowInvalidCertificates: Bool = false, validatesDomainName: Bool = true,
        anchors: [[UInt8]] = []
    ) {
        self.name = name
        self.mode = mode
        self.pins = pins
        self.allowInvalidCertificates = allowInvalidCertificates
        self.validatesDomainName = validatesDomainName
        self.anchors = anchors
    }

    /// Why no server can pass; `nil` if some can. A configuration reports it; evaluation refuses
    /// anyway.
    package var configurationError: PinsetError? {
        if mode != .none, pins.isEmpty { return .pinsetWithoutPins }
        if mode == .none, allowInvalidCertificates, validatesDomainName {
            return .hostNameWithoutPins
        }
        if mode == .certificate {
            for pin in pins {
                switch pin {
                case .keyDigest, .publicKey: return .keyPinInCertificateMode
                case .certificateFingerprint, .certificate: continue
                }
            }
        }
        return nil
    }
}
