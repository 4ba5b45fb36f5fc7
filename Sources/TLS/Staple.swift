import COpenSSL
import Clocks
import Pinning

/// Judges what a server says, with its authority's signature, of its certificate's state: the OCSP
/// response that it staples to its handshake (RFC 6066 §8, RFC 6960 §3.2).
struct StapleJudge {
    /// By how many seconds clocks may differ.
    static let skewSeconds: Int64 = 300

    /// A verified chain of the server's, the leaf first; nil: none was verified.
    let chain: CertificateStack?
    /// What keys and signatures must be worth (SSL_CTX_set_security_level(3)).
    let securityLevel: Int32
    /// When the response must be valid, in seconds since 1970; nil is now.
    let time: Int64?

    /// What is said by singles that are about the certificate.
    private struct Answer {
        var status: Int32
        var thisUpdate: Int64
        var nextUpdate: Int64?
    }

    /// Judges a response in DER; nil: there is none.
    ///
    /// - Returns: until when it holds, in seconds since 1970.
    func judge(_ staple: [UInt8]?) -> Result<Int64, RevocationFailure> {
        defer { ErrorQueue.clear() }
        guard let chain, let leaf = chain[0] else {
            return invalid("no chain was verified that it could be judged by")
        }
        let subject = X509View(leaf).subject
        guard let staple, !staple.isEmpty else {
            return .failure(
                RevocationFailure(
                    .stapleMissing, "there is no stapled OCSP response for \(subject)"))
        }
        guard let response = OCSPResponse(staple) else {
            return invalid("it is not a successful OCSP response")
        }
        guard let issuer = issuer(of: leaf, in: chain) else {
            return invalid("the issuer of \(subject) is not in the chain")
        }
        if response.hasWeakSignature { return invalid("its signature is made of MD5 or SHA-1") }
        guard isSigned(response, by: issuer) else {
            return invalid(
                "it is not signed by \(X509View(leaf).issuer), nor by a responder that this has "
                    + "authorised")
        }
        return decide(answers(response, leaf, issuer), subject)
    }

    private func invalid(_ reason: String) -> Result<Int64, RevocationFailure> {
        .failure(
            RevocationFailure(.stapleInvalid, "the stapled OCSP response cannot be used: \(reason)")
        )
    }

    private func decide(
        _ answers: [Answer], _ subject: String
    ) -> Result<Int64, RevocationFailure> {
        guard !answers.isEmpty else { return invalid("it is about another certificate") }
        if answers.contains(where: { $0.status == V_OCSP_CERTSTATUS_REVOKED }) {
            return .failure(
                RevocationFailure(
                    .stapleRevoked,
                    "the stapled OCSP response says that the certificate of \(subject) is revoked"))
        }
        guard let good = answers.first(where: { $0.status == V_OCSP_CERTSTATUS_GOOD }) else {
            return .failure(
                RevocationFailure(
                    .stapleUnknown,
                    "the stapled OCSP response says that the authority does not know the "
                        + "certificate of \(subject)"))
        }
        let now = time ?? Clock.coarseWallSeconds()
        guard let next = good.nextUpdate else {
            return invalid("it does not say until when it holds")
        }
        guard good.thisUpdate <= now + Self.skewSeconds else {
            return invalid("it is of the future")
        }
        let end = next + Self.skewSeconds
        guard end > now else {
            return .failure(
                RevocationFailure(
                    .stapleExpired, "the stapled OCSP response for \(subject) is out of date"))
        }
        return .success(end)
    }

    /// The certificate above the leaf; the leaf itself if it is its own issuer.
    private func issuer(
        of leaf: OpaquePointer, in chain: CertificateStack
    ) -> OpaquePointer? {
        if chain.count > 1 { return chain[1] }
        return X509_check_issued(leaf, leaf) == X509_V_OK ? leaf : nil
    }

    /// Whether the issuer signed a response, or a responder whose certificate it issued for that
    /// purpose (RFC 6960 §4.2.2.2), which is in the response.
    private func isSigned(_ response: borrowing OCSPResponse, by issuer: OpaquePointer) -> Bool {
        guard let store = X509_STORE_new(), let known = CertificateStack() else { return false }
        defer { X509_STORE_free(store) }
        known.append(issuer)
        guard X509_STORE_add_cert(store, issuer) == 1, let parameters = X509_STORE_get0_param(store)
        else { return false }
        X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        X509_VERIFY_PARAM_set_auth_level(parameters, securityLevel)
        if let time { X509_VERIFY_PARAM_set_time(parameters, time_t(time)) }
        let flags = UInt(OCSP_NOEXPLICIT | OCSP_PARTIAL_CHAIN)
        return OCSP_basic_verify(response.basic, known.pointer, store, flags) == 1
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

    /// Whether an identifier is that of the certificate: its serial number, and name and key of its
    /// issuer (RFC 6960 §4.1.1).
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
    /// Whether its signature is made of a digest for which two texts can be found that have it.
    var hasWeakSignature: Bool {
        var identifier: OpaquePointer?
        X509_ALGOR_get0(&identifier, nil, nil, OCSP_resp_get0_tbs_sigalg(basic))
        var digest: Int32 = 0
        guard OBJ_find_sigid_algs(OBJ_obj2nid(identifier), &digest, nil) == 1 else { return true }
        return [NID_md2, NID_md4, NID_md5, NID_sha1, NID_ripemd160].contains(digest)
    }
}

extension TLSClientConnection {
    /// Has servers asked for an OCSP response, and what waits for it judged before anything is
    /// sent.
    static func askForStaples(in context: OpaquePointer) throws(TLSContextError) {
        guard pinfold_SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp) == 1,
            pinfold_SSL_CTX_set_tlsext_status_cb(
                context,
                { ssl, _ in
                    guard let connection = TLSClientConnection.from(ssl) else { return 0 }
                    return connection.judgeWithStaple() && connection.judgeStaple() ? 1 : 0
                }) == 1
        else { throw .library(ErrorQueue.drain()) }
    }

    /// The OCSP response that the server stapled, in DER; nil: none has come.
    var staple: [UInt8]? {
        var start: UnsafePointer<UInt8>?
        let count = pinfold_SSL_get_tlsext_status_ocsp_resp(ssl, &start)
        guard let start, count > 0 else { return nil }
        return Array(UnsafeBufferPointer(start: start, count: count))
    }

    /// Judges the response where one is required. Called by the library when the server's flight is
    /// complete, with a response or without.
    private func judgeStaple() -> Bool {
        // It was judged when the session was made.
        if isResumed || !context.settings.requiresStaple { return true }
        guard let stapleJudge else { return false }
        switch stapleJudge.judge(staple) {
        case .success(let end):
            limitTrust(to: end)
            self.stapleJudge = nil
            return true
        case .failure(let failure):
            finding = .trust(TrustFailure(.chain(.revocation(failure))))
            return false
        }
    }
}
