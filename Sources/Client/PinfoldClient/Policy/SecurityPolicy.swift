import HTTPCore
import PinfoldConfiguration
import Trust

/// Determines which servers a session trusts, like AFNetworking's security policy.
///
/// Every TLS connection is evaluated before a byte of a request is sent. Pins are compared with the
/// *verified* chain, never with the certificates that the server merely sent. The order of the
/// checks is AFNetworking's; it is described on the gateway's page "Pinning".
public struct SecurityPolicy: Sendable, Hashable {
    /// What is compared with the pins (`AFSSLPinningMode`).
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Nothing. The chain must be valid and the certificate must match the host name.
        case none
        /// The public key of a certificate in the chain must be pinned.
        case publicKey
        /// The pinned certificates are the only trust anchors, so one of them must be in the chain.
        case certificate
    }

    /// What is compared with the pins.
    public var mode: Mode
    /// The pins. A match with one of them is sufficient. A mode other than ``Mode/none`` without
    /// any pins would reject every server, and is an error when a session is created.
    public var pins: [CertificatePin]
    /// Whether chains that are not valid under the trust anchors are allowed, so that only the pins
    /// decide. In mode ``Mode/publicKey``, only the server's own key is then compared.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must match the host name.
    public var validatesDomainName = true
    /// Additional trust anchors in DER, such as those of a private authority.
    public var anchors: [[UInt8]] = []
    /// Whether the system's trust anchors are used. Without them and without ``anchors``, no server
    /// is trusted.
    public var trustsSystem = true

    /// Creates a security policy.
    ///
    /// - Parameters:
    ///   - mode: What is compared with the pins. ``Mode/none`` is what clients usually do.
    ///   - pins: The pins; see ``CertificatePin``.
    public init(mode: Mode = .none, pins: [CertificatePin] = []) {
        self.mode = mode
        self.pins = pins
    }

    /// The default policy: a valid chain to one of the system's anchors, and a matching host name.
    public static let `default` = SecurityPolicy()

    /// Whether the policy never accepts a server without a valid chain for its host.
    var isPlain: Bool { mode == .none && !allowsInvalidCertificates && validatesDomainName }

    /// The policy in the engine's form, or `nil` if it requires no more than a valid chain.
    package var pinset: Pinset? {
        guard !isPlain else { return nil }
        let mode: PinningMode =
            switch self.mode {
            case .none: .none
            case .publicKey: .publicKey
            case .certificate: .certificate
            }
        return Pinset(
            name: "session", mode: mode, pins: pins.map(\.pin),
            allowInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName)
    }

    var roots: [PinfoldConfiguration.TrustRoots] {
        var roots: [PinfoldConfiguration.TrustRoots] = trustsSystem ? [.system] : []
        // An empty list means that no server is trusted.
        if !anchors.isEmpty || !trustsSystem {
            roots.append(.file(path: "SecurityPolicy.anchors", certificates: anchors))
        }
        return roots
    }
}

/// A public key or certificate that a server is expected to have.
public struct CertificatePin: Sendable, Hashable {
    let pin: Pin

    /// Creates a pin from text: either `sha256/` and the Base64 encoding of the SHA-256 of a
    /// SubjectPublicKeyInfo (the format of RFC 7469 and of curl), or the SHA-256 of a certificate
    /// in hexadecimal digits, with or without colons.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy``.
    public init(_ text: String) throws(ClientError) {
        do throws(PinError) {
            if case .literal(let pins) = try Pin.parse(text), pins.count == 1 {
                pin = pins[0]
                return
            }
        } catch  where error != .empty {
            throw ClientError(
                .invalidSecurityPolicy, "the pin \(text): \(error.problem)", underlying: error)
        } catch {
            // The error below is thrown instead: no file is expected here.
        }
        throw ClientError(
            .invalidSecurityPolicy, "the pin \(text): expected one sha256/BASE64 or fingerprint")
    }

    private init(_ pin: Pin) { self.pin = pin }

    /// Returns the pins in a file: of all certificates and public keys in PEM, or of a single one
    /// in DER.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy`` if there are
    ///   none, or the file contains anything else.
    public static func pins(in contents: [UInt8]) throws(ClientError) -> [CertificatePin] {
        do throws(PinError) {
            return try Pin.decode(file: contents).map(CertificatePin.init)
        } catch {
            throw ClientError(.invalidSecurityPolicy, error.problem, underlying: error)
        }
    }

    /// The pinned certificate in DER, or `nil` for a key or a digest.
    public var certificate: [UInt8]? {
        if case .certificate(let der) = pin { der } else { nil }
    }
}
