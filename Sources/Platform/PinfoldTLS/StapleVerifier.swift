import COpenSSL
import Clocks
import Trust

/// Verifies the OCSP response that a server staples to its handshake (RFC 6066 §8, RFC 6960 §3.2):
/// the status of its certificate, signed by its authority.
struct StapleVerifier {
    /// The allowed difference between clocks, in seconds.
    static let skewSeconds: Int64 = 300

    /// A verified chain of the server, the leaf first, or `nil` if none was verified.
    let chain: CertificateStack?
    /// The policy's other requirements.
    let verifier: TrustVerifier
    /// When the response must be valid, in seconds since 1970; `nil` for now.
    let time: Int64?

    /// The single responses that are about the certificate, combined.
    private struct Answer {
        var status: Int32
        var thisUpdate: Int64
        var nextUpdate: Int64?
    }

    /// Verifies a response in DER; `nil` if there is none.
    ///
    /// - Returns: until when it holds, in seconds since 1970.
    func verify(_ staple: [UInt8]?) -> Result<Int64, RevocationError> {
        defer { ErrorQueue.clear() }
        guard let chain, let leaf = chain[0] else {
            return invalid("no chain was verified to check it against")
        }
        let subject = X509View(leaf).subject
        guard let staple, !staple.isEmpty else {
            return .failure(
                RevocationError(
                    .stapleMissing, "there is no stapled OCSP response for \(subject)"))
        }
        guard let response = OCSPResponse(staple) else {
            return invalid("it is not a successful OCSP response")
        }
        guard let issuer = issuer(of: leaf, in: chain) else {
            return invalid("the issuer of \(subject) is not in the chain")
        }
        if response.hasWeakSignature { return invalid("its signature uses MD5 or SHA-1") }
        guard isSigned(response, by: issuer) else {
            return invalid(
                "it is not signed by \(X509View(leaf).issuer), nor by a responder that this has "
                    + "authorized")
        }
        if let problem = problem(of: response, issuer, in: chain) { return invalid(problem) }
        return decide(answers(response, leaf, issuer), subject)
    }

    private func invalid(_ reason: String) -> Result<Int64, RevocationError> {
        .failure(
            RevocationError(.stapleInvalid, "the stapled OCSP response cannot be used: \(reason)")
        )
    }

    private func decide(
        _ answers: [Answer], _ subject: String
    ) -> Result<Int64, RevocationError> {
        guard !answers.isEmpty else { return invalid("it is about another certificate") }
        if answers.contains(where: { $0.status == V_OCSP_CERTSTATUS_REVOKED }) {
            return .failure(
                RevocationError(
                    .stapleRevoked,
                    "the stapled OCSP response says that the certificate of \(subject) is revoked"))
        }
        guard let good = answers.first(where: { $0.status == V_OCSP_CERTSTATUS_GOOD }) else {
            return .failure(
                RevocationError(
                    .stapleUnknown,
                    "the stapled OCSP response says that the authority does not know the "
                        + "certificate of \(subject)"))
        }
        let now = time ?? Clock.wallSeconds()
        guard let next = good.nextUpdate else {
            return invalid("it does not say how long it is valid")
        }
        guard good.thisUpdate <= now + Self.skewSeconds else {
            return invalid("it is dated in the future")
        }
        let end = next + Self.skewSeconds
        guard end > now else {
            return .failure(
                RevocationError(
                    .stapleExpired, "the stapled OCSP response for \(subject) is out of date"))
        }
        return .success(end)
    }

    /// The certificate above the leaf, or the leaf itself if it is self-issued.
    private func issuer(
        of leaf: OpaquePointer, in chain: CertificateStack
    ) -> OpaquePointer? {
        if chain.count > 1 { return chain[1] }
        return X509_check_issued(leaf, leaf) == X509_V_OK ? leaf : nil
    }

    /// Whether a response was signed by the issuer, or by a responder whose certificate the issuer
    /// issued for that purpose (RFC 6960 §4.2.2.2) and which is included in the response.
    private func isSigned(_ response: borrowing OCSPResponse, by issuer: OpaquePointer) -> Bool {
        guard let store = X509_STORE_new(), let known = CertificateStack() else { return false }
        defer { X509_STORE_free(store) }
        known.append(issuer)
        guard X509_STORE_add_cert(store, issuer) == 1, let parameters = X509_STORE_get0_param(store)
        else { return false }
        X509_STORE_set_verify_cb(store, InclusiveExpiry.callback)
        X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        X509_VERIFY_PARAM_set_auth_level(parameters, verifier.securityLevel)
        if let time { X509_VERIFY_PARAM_set_time(parameters, time_t(time)) }
        let flags = UInt(OCSP_NOEXPLICIT | OCSP_PARTIAL_CHAIN)
        return OCSP_basic_verify(response.basic, known.pointer, store, flags) == 1
    }

    /// What is wrong with the certificate of the signing responder, if it is not the issuer's own:
    /// it may be revoked (RFC 6960 §4.2.2.2.1). `nil` if nothing is.
    ///
    /// With id-pkix-ocsp-nocheck an authority declares that nobody need check it; a list that is
    /// available counts nevertheless. The CA/Browser Forum's baseline requirements (§4.9.9) demand
    /// that extension; private authorities commonly omit it.
    private func problem(
        of response: borrowing OCSPResponse, _ issuer: OpaquePointer, in chain: CertificateStack
    ) -> String? {
        var signer: OpaquePointer?
        guard let known = CertificateStack() else { return "out of memory" }
        known.append(issuer)
        guard OCSP_resp_get0_signer(response.basic, &signer, known.pointer) == 1, let signer else {
            return "its responder is unknown"
        }
        if X509_cmp(signer, issuer) == 0 { return nil }
        let waives = X509_get_ext_by_NID(signer, NID_id_pkix_OCSP_noCheck, -1) >= 0
        if let lists = verifier.revocation {
            let found = lists.failure(
                of: signer, issuedBy: issuer, level: verifier.securityLevel, at: time)
            guard let found, !waives || found.reason == .revoked else { return nil }
            return "its responder's certificate is not accepted: \(found)"
        }
        guard !waives, asksForNoCheck(chain) else { return nil }
        return "the certificate of its responder, \(X509View(signer).subject), lacks "
            + "id-pkix-ocsp-nocheck, and there is no CRL to check it in"
    }

    /// Whether a responder that nobody can check is refused.
    private func asksForNoCheck(_ chain: CertificateStack) -> Bool {
        guard verifier.profile.profile != .lenient else { return false }
        return verifier.profile.isChosen
            || chain[chain.count - 1].map { SystemStore.contains($0) } ?? true
    }

    private func answers(
        _ response: borrowing OCSPResponse, _ leaf: OpaquePointer, _ issuer: OpaquePointer
    ) -> [Answer] {
        var answers: [Answer] = []
        for index in 0..<OCSP_resp_count(response.basic) {
            guard let single = OCSP_resp_get0(response.basic, index),
                isAbout(leaf, issuer, OCSP_SINGLERESP_get0_id(single))
            else { continue }
            var thisUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var nextUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            let status = OCSP_single_get0_status(single, nil, nil, &thisUpdate, &nextUpdate)
            answers.append(
                Answer(
                    status: status, thisUpdate: thisUpdate.flatMap { X509View.seconds($0) } ?? .max,
                    nextUpdate: nextUpdate.map { X509View.seconds($0) ?? .min }))
        }
        return answers
    }

    /// Whether an identifier is the certificate's: its serial number, and its issuer's name and key
    /// (RFC 6960 §4.1.1).
    private func isAbout(
        _ leaf: OpaquePointer, _ issuer: OpaquePointer, _ identifier: OpaquePointer?
    ) -> Bool {
        var algorithm: OpaquePointer?
        guard let identifier,
            OCSP_id_get0_info(nil, &algorithm, nil, nil, identifier) == 1,
            let digest = EVP_get_digestbyname(OBJ_nid2sn(OBJ_obj2nid(algorithm))),
            let own = OCSP_cert_to_id(digest, leaf, issuer)
        else { return false }
        defer { OCSP_CERTID_free(own) }
        return OCSP_id_cmp(own, identifier) == 0
    }
}

extension OCSPResponse {
    /// Whether its signature uses a digest for which collisions can be found.
    var hasWeakSignature: Bool {
        var identifier: OpaquePointer?
        X509_ALGOR_get0(&identifier, nil, nil, OCSP_resp_get0_tbs_sigalg(basic))
        var digest: Int32 = 0
        let kind = OBJ_obj2nid(identifier)
        if kind == NID_rsassaPss {
            digest = pssDigest
        } else if OBJ_find_sigid_algs(kind, &digest, nil) != 1 {
            return true
        }
        return [NID_md2, NID_md4, NID_md5, NID_sha1, NID_ripemd160].contains(digest)
    }

    /// The digest of an RSASSA-PSS signature (RFC 4055 §3.1).
    private var pssDigest: Int32 {
        var kind: Int32 = 0
        var value: UnsafeRawPointer?
        X509_ALGOR_get0(nil, &kind, &value, OCSP_resp_get0_tbs_sigalg(basic))
        // SHA-1 is the default if nothing is specified.
        guard kind == V_ASN1_SEQUENCE,
            let string = value?.assumingMemoryBound(to: ASN1_STRING.self)
        else { return NID_sha1 }
        var position = ASN1_STRING_get0_data(string)
        guard let parameters = d2i_RSA_PSS_PARAMS(nil, &position, Int(ASN1_STRING_length(string)))
        else { return NID_sha1 }
        defer { RSA_PSS_PARAMS_free(parameters) }
        guard let algorithm = parameters.pointee.hashAlgorithm else { return NID_sha1 }
        var identifier: OpaquePointer?
        X509_ALGOR_get0(&identifier, nil, nil, algorithm)
        return OBJ_obj2nid(identifier)
    }
}

extension TLSClientConnection {
    /// Makes connections ask servers for an OCSP response, and verifies anything that waits for it
    /// before data is sent.
    static func askForStaples(in context: OpaquePointer) throws(TLSContextError) {
        guard pinfold_SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp) == 1,
            pinfold_SSL_CTX_set_tlsext_status_cb(
                context,
                { ssl, _ in
                    guard let connection = TLSClientConnection.from(ssl) else { return 0 }
                    return connection.verifyWithStaple() && connection.verifyStaple() ? 1 : 0
                }) == 1
        else { throw .library(ErrorQueue.drain()) }
    }

    /// The OCSP response that the server stapled, in DER, or `nil` if none has arrived.
    var staple: [UInt8]? {
        var start: UnsafePointer<UInt8>?
        let count = pinfold_SSL_get_tlsext_status_ocsp_resp(ssl, &start)
        guard let start, count > 0 else { return nil }
        return Array(UnsafeBufferPointer(start: start, count: count))
    }

    /// Verifies the response if one is required. Called by the library when the server's flight is
    /// complete, with or without a response.
    private func verifyStaple() -> Bool {
        // It was verified when the session was established.
        if isResumed || !context.settings.requiresStaple { return true }
        guard let stapleVerifier else { return false }
        switch stapleVerifier.verify(staple) {
        case .success(let end):
            limitTrust(to: end)
            self.stapleVerifier = nil
            return true
        case .failure(let failure):
            finding = .trust(TrustError(.chain(.revocation(failure))))
            return false
        }
    }
}
