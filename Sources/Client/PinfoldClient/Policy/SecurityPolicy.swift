import HTTPCore
import PinfoldConfiguration
import Trust

/// Whom a session trusts: what AFNetworking calls a security policy.
///
/// Every connection by TLS is judged by it before a byte of a request is sent. Pins are compared
/// with the chain that was *verified*, never with what the server merely sent. The order of the
/// checks is AFNetworking's; it is written down at the gateway's page "Pinning".
public struct SecurityPolicy: Sendable, Hashable {
    /// What of the server is compared with the pins (`AFSSLPinningMode`).
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Nothing: the chain must be valid, and name the host.
        case none
        /// The key of some certificate of the chain must be pinned.
        case publicKey
        /// The pinned certificates are the only trust anchors: one of them must be in the chain.
        case certificate
    }

    /// What the pins are compared with.
    public var mode: Mode
    /// Any one of them is enough. A mode other than ``Mode/none`` without pins lets nobody pass,
    /// and is refused when a session is made.
    public var pins: [CertificatePin]
    /// The chain need not be valid under the trust anchors: the pins alone decide. In mode
    /// ``Mode/publicKey`` only the server's own key counts then.
    public var allowsInvalidCertificates = false
    /// The certificate must name the host.
    public var validatesDomainName = true
    /// Certificates in DER that are trust anchors beside the system's: a private authority.
    public var anchors: [[UInt8]] = []
    /// The system's trust anchors count, too. Without them and without ``anchors`` nobody is
    /// trusted.
    public var trustsSystem = true

    /// - Parameters:
    ///   - mode: ``Mode/none`` is what every client does.
    ///   - pins: See ``CertificatePin``.
    public init(mode: Mode = .none, pins: [CertificatePin] = []) {
        self.mode = mode
        self.pins = pins
    }

    /// Valid chains of the system's anchors, and the host's name.
    public static let `default` = SecurityPolicy()

    /// Whether any server but one with a valid chain for its host passes, or not even that one.
    var isPlain: Bool { mode == .none && !allowsInvalidCertificates && validatesDomainName }

    /// What the engine judges by; nil where nothing is asked beyond a valid chain.
    var pinset: Pinset? {
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
        // An empty list is one that trusts nobody.
        if !anchors.isEmpty || !trustsSystem {
            roots.append(.file(path: "SecurityPolicy.anchors", certificates: anchors))
        }
        return roots
    }
}

/// A key or a certificate that a server is expected to have.
public struct CertificatePin: Sendable, Hashable {
    let pin: Pin

    /// A pin as text: `sha256/` and the Base64 of the SHA-256 of a SubjectPublicKeyInfo (the form
    /// of RFC 7469 and of curl), or the SHA-256 of a certificate in hexadecimal digits with or
    /// without colons.
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
            // Said below: no file is expected here.
        }
        throw ClientError(
            .invalidSecurityPolicy, "the pin \(text): expected one sha256/BASE64 or fingerprint")
    }

    private init(_ pin: Pin) { self.pin = pin }

    /// The pins that a file holds: every certificate and public key in PEM, or one in DER.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidSecurityPolicy`` where there is
    ///   none, or something else stands beside them.
    public static func pins(in contents: [UInt8]) throws(ClientError) -> [CertificatePin] {
        do throws(PinError) {
            return try Pin.decode(file: contents).map(CertificatePin.init)
        } catch {
            throw ClientError(.invalidSecurityPolicy, error.problem, underlying: error)
        }
    }

    /// The DER of the certificate that is pinned; nil for a key or a digest.
    public var certificate: [UInt8]? {
        if case .certificate(let der) = pin { der } else { nil }
    }
}
