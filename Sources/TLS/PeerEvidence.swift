import Addressing
import COpenSSL
import Pinning

/// What a server presented, for the policy to judge. Lives inside one call of the verification
/// callback, or of `TrustJudge.judge`.
struct PeerEvidence: TrustEvidence {
    private struct Evaluation {
        var host: String?
        var result: Result<BuiltChain, ChainFailure>
    }

    let leaf: CertificateIdentity
    private let certificate: OpaquePointer
    private let sent: OpaquePointer?
    private let judge: TrustJudge
    private let time: Int64?
    /// Evaluations under the configured roots, which several pinsets ask for alike.
    private var evaluations: [Evaluation] = []

    /// - Parameters:
    ///   - certificate: the leaf.
    ///   - sent: the certificates of the server's message; nil if none.
    ///   - judge: what the policy is applied by.
    ///   - time: when the certificates must be valid, in seconds since 1970; nil is now.
    /// Nil only if the library is out of memory.
    init?(
        certificate: OpaquePointer, sent: OpaquePointer?, judge: TrustJudge, time: Int64? = nil
    ) {
        guard let leaf = X509View(certificate).identity else { return nil }
        self.leaf = leaf
        self.certificate = certificate
        self.sent = sent
        self.judge = judge
        self.time = time
    }

    mutating func evaluateChain(
        anchors: TrustAnchors, host: String?
    ) -> Result<VerifiedChain, ChainFailure> {
        switch anchors {
        case .roots(let pinset):
            return underRoots(pinset: pinset, host: host).map(\.verified)
        case .pins(let pinset):
            guard let pinned = pinnedCertificates(pinset) else { return .failure(.outOfMemory) }
            return build(store: nil, trusted: pinned, host: host).map(\.verified)
        }
    }

    /// A chain that ends in a configured root, or else in one of the pinset's own anchors. Every
    /// chain ends in one anchor, so trying one set after the other is trying their union.
    private mutating func underRoots(
        pinset: Int?, host: String?
    ) -> Result<BuiltChain, ChainFailure> {
        let result: Result<BuiltChain, ChainFailure>
        if let known = evaluations.first(where: { $0.host == host }) {
            result = known.result
        } else {
            result = build(store: judge.roots.store, trusted: nil, host: host)
            evaluations.append(Evaluation(host: host, result: result))
        }
        guard case .failure(let failure) = result, let pinset,
            let anchors = judge.pinsets[pinset].anchors
        else { return result }
        let second = build(store: nil, trusted: anchors, host: host)
        // The failure that says more: a chain that reached an anchor and then broke a rule.
        if case .failure(let other) = second, other.isMissingAnchor || !failure.isMissingAnchor {
            return result
        }
        return second
    }

    /// The pinned certificates: those given whole, and those that the server sent, or that complete
    /// its chain, with a pinned fingerprint.
    private mutating func pinnedCertificates(_ pinset: Int) -> CertificateStack? {
        let certificates = judge.pinsets[pinset]
        guard !certificates.fingerprints.isEmpty else { return certificates.pinned }
        guard let stack = CertificateStack() else { return nil }
        for index in 0..<certificates.pinned.count {
            if let pinned = certificates.pinned[index] { stack.append(pinned) }
        }
        func appendIfPinned(_ candidate: OpaquePointer?) {
            guard let candidate, let fingerprint = X509View(candidate).fingerprint,
                certificates.fingerprints.contains(fingerprint)
            else { return }
            stack.append(candidate)
        }
        appendIfPinned(certificate)
        if let sent {
            for index in 0..<pinfold_sk_X509_num(sent) {
                appendIfPinned(pinfold_sk_X509_value(sent, index))
            }
        }
        // Servers do not send their root; the verified chain has it.
        if case .success(let chain) = underRoots(pinset: pinset, host: nil) {
            for index in 0..<chain.certificates.count {
                appendIfPinned(chain.certificates[index])
            }
        }
        return stack
    }

    /// Builds and checks a chain with the library.
    private func build(
        store: OpaquePointer?, trusted: CertificateStack?, host: String?
    ) -> Result<BuiltChain, ChainFailure> {
        guard let building = X509_STORE_CTX_new() else { return .failure(.outOfMemory) }
        defer {
            X509_STORE_CTX_free(building)
            ErrorQueue.clear()
        }
        guard X509_STORE_CTX_init(building, store, certificate, sent) == 1,
            X509_STORE_CTX_set_default(building, "ssl_server") == 1,
            let parameters = X509_STORE_CTX_get0_param(building)
        else { return .failure(.outOfMemory) }
        if let host, !PeerEvidence.require(host, parameters) {
            return .failure(.hostMismatch(host: host, names: X509View(certificate).names))
        }
        X509_VERIFY_PARAM_set_auth_level(parameters, judge.securityLevel)
        if let time { X509_VERIFY_PARAM_set_time(parameters, time_t(time)) }
        X509_VERIFY_PARAM_set_flags(
            parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
        if let trusted { X509_STORE_CTX_set0_trusted_stack(building, trusted.pointer) }
        guard X509_verify_cert(building) == 1 else {
            return .failure(ChainFailure(building, leaf: certificate, host: host ?? ""))
        }
        guard let chain = X509_STORE_CTX_get1_chain(building),
            let built = BuiltChain(CertificateStack(owning: chain))
        else { return .failure(.outOfMemory) }
        return .success(built)
    }

    /// Makes the host part of the check: an address by the certificate's addresses, a name by its
    /// DNS names only (RFC 9525 §2: never the common name), with whole-label wildcards.
    ///
    /// - Returns: false for what no certificate can name.
    private static func require(_ host: String, _ parameters: OpaquePointer) -> Bool {
        let bytes = Array(host.utf8)
        if let address = IPAddress(literal: bytes.span)?.unmapped.networkBytes {
            return X509_VERIFY_PARAM_set1_ip(parameters, address, address.count) == 1
        }
        X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        // An empty name would switch the check off.
        guard !bytes.isEmpty, !bytes.contains(0) else { return false }
        return bytes.withUnsafeBytes { raw in
            X509_VERIFY_PARAM_set1_host(
                parameters, raw.baseAddress?.assumingMemoryBound(to: CChar.self), raw.count) == 1
        }
    }
}

/// A chain that the library verified.
struct BuiltChain {
    let certificates: CertificateStack
    let verified: VerifiedChain

    /// Nil only if the library is out of memory.
    init?(_ certificates: CertificateStack) {
        var identities: [CertificateIdentity] = []
        var expires = Int64.max
        for index in 0..<certificates.count {
            guard let pointer = certificates[index], let identity = X509View(pointer).identity
            else { return nil }
            identities.append(identity)
            expires = min(expires, X509View(pointer).notAfter)
        }
        guard !identities.isEmpty else { return nil }
        self.certificates = certificates
        verified = VerifiedChain(certificates: identities, expires: expires)
    }
}

extension ChainFailure {
    static let outOfMemory = ChainFailure.other(
        code: X509_V_ERR_OUT_OF_MEM, text: "out of memory")

    /// The reason for which the library refused a chain.
    init(_ building: OpaquePointer, leaf: OpaquePointer, host: String) {
        let code = X509_STORE_CTX_get_error(building)
        let view = X509View(X509_STORE_CTX_get_current_cert(building) ?? leaf)
        switch code {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            self = .hostMismatch(host: host, names: X509View(leaf).names)
        case X509_V_ERR_CERT_HAS_EXPIRED:
            self = .expired(subject: view.subject, notAfter: view.notAfter)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            self = .notYetValid(subject: view.subject, notBefore: view.notBefore)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            self = .selfSigned(subject: view.subject)
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED:
            self = .untrustedRoot(subject: view.subject)
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            self = .incompleteChain(subject: view.subject, issuer: view.issuer)
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE,
            X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY:
            self = .badSignature(subject: view.subject)
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA,
            X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
            self = .wrongPurpose(subject: view.subject)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            self = .weakCryptography(subject: view.subject)
        case X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_PERMITTED_VIOLATION,
            X509_V_ERR_EXCLUDED_VIOLATION:
            self = .constraintViolated(subject: view.subject)
        default:
            self = .other(
                code: code, text: String(cString: X509_verify_cert_error_string(Int(code))))
        }
    }

    /// The library's code that makes it send the fitting alert.
    var alertCode: Int32 {
        switch self {
        case .hostMismatch: X509_V_ERR_HOSTNAME_MISMATCH
        case .expired: X509_V_ERR_CERT_HAS_EXPIRED
        case .notYetValid: X509_V_ERR_CERT_NOT_YET_VALID
        case .selfSigned: X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
        case .untrustedRoot: X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
        case .incompleteChain: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        case .badSignature: X509_V_ERR_CERT_SIGNATURE_FAILURE
        case .wrongPurpose: X509_V_ERR_INVALID_PURPOSE
        case .weakCryptography: X509_V_ERR_EE_KEY_TOO_SMALL
        case .constraintViolated: X509_V_ERR_PERMITTED_VIOLATION
        case .malformed, .noCertificate: X509_V_ERR_APPLICATION_VERIFICATION
        case .other(let code, _): code
        }
    }
}
