import COpenSSL
import PinfoldTLS
import Trust

extension FuzzTarget {
    /// A stapled OCSP response; behind a zero byte, the contents of what the authority signs in
    /// one. A server is trusted by it only if the authority has signed it, and it says that the
    /// server's certificate is good.
    func checkStapledResponse(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let bytes = bytes.first == 0 ? try SampleAuthority.response(bytes.dropFirst()) : bytes
        let lists = StapledTimestamps.lists(bytes)
        guard lists.count <= 4, lists.allSatisfy({ $0.count < bytes.count }) else {
            throw FuzzCheckError("\(lists) are in the response")
        }
        let judge = try Judge.requiringStaple.get()
        let verdict = judge.verdict(staple: bytes)
        guard verdict == judge.verdict(staple: bytes) else {
            throw FuzzCheckError("another verdict the second time")
        }
        guard case .trusted(let facts) = verdict else { return false }
        guard facts.expires ?? .max > SampleAuthority.time else {
            throw FuzzCheckError("trusted until \(facts.expires ?? 0), which has passed")
        }
        guard LibraryVerdict.isGood(staple: bytes) else {
            throw FuzzCheckError("a server is trusted, which the library does not find good")
        }
        return true
    }

    /// A list of revoked certificates; behind a zero byte, the contents of what the authority signs
    /// in one. A server is trusted only if the authority has signed it, and it does not have the
    /// server's certificate.
    func checkRevocationList(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let bytes = bytes.first == 0 ? try SampleAuthority.signed(bytes.dropFirst()) : bytes
        let list: RevocationList
        do throws(RevocationList.ParseError) {
            list = try RevocationList(der: bytes)
        } catch { return false }
        let shown = list.issuer
        guard shown.utf8.count <= 256, shown.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
            list.content == list.content, list.isOfSameSeries(as: list),
            !list.isReplaced(by: list)
        else { throw FuzzCheckError("a list of \(shown) that is not itself") }
        let judge = try Judge(lists: [bytes])
        guard case .trusted = judge.verdict(staple: nil) else { return true }
        guard list.issuer(among: judge.sample.roots) == (true, true),
            LibraryVerdict.isCleared(by: bytes)
        else { throw FuzzCheckError("a server is trusted, which the library does not clear") }
        return true
    }
}

/// Judges the sample server.
private struct Judge {
    /// What does not depend on the bytes.
    struct Sample {
        let roots: TrustRoots
        let chain: PresentedChain
    }

    private static let made = Result { () throws(FuzzCheckError) in
        try checked {
            Sample(
                roots: try TrustRoots([.file(name: "f", contents: SampleAuthority.certificate)]),
                chain: try PresentedChain(
                    der: [SampleAuthority.server, SampleAuthority.certificate]))
        }
    }
    static let requiringStaple = Result { () throws(FuzzCheckError) in
        try Judge(requiresStaple: true)
    }

    let sample: Sample
    private let verifier: TrustVerifier

    init(lists: [[UInt8]] = [], requiresStaple: Bool = false) throws(FuzzCheckError) {
        let sample = try Self.made.get()
        self.sample = sample
        verifier = try Self.checked {
            try TrustVerifier(
                PinningPolicy(), roots: sample.roots, profile: ChosenProfile(.lenient),
                revocation: lists.isEmpty ? nil : try RevocationLists(der: lists),
                requiresStaple: requiresStaple)
        }
    }

    private static func checked<Value>(
        _ make: () throws -> Value
    ) throws(FuzzCheckError) -> Value {
        do { return try make() } catch {
            throw FuzzCheckError("the sample cannot be judged: \(error)")
        }
    }

    func verdict(staple: [UInt8]?) -> TrustVerdict {
        verifier.verify(sample.chain, host: "a.test", at: SampleAuthority.time, staple: staple)
    }
}

/// What the TLS library alone says.
private enum LibraryVerdict {
    static func isGood(staple: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        guard let response = decoded(staple, d2i_OCSP_RESPONSE) else { return false }
        defer { OCSP_RESPONSE_free(response) }
        guard let basic = OCSP_response_get1_basic(response) else { return false }
        defer { OCSP_BASICRESP_free(basic) }
        return withSample { server, authority in
            guard let store = X509_STORE_new(), let known = pinfold_sk_X509_new() else {
                return false
            }
            defer {
                X509_STORE_free(store)
                pinfold_sk_X509_free(known)
            }
            X509_STORE_add_cert(store, authority)
            X509_up_ref(authority)
            guard pinfold_sk_X509_push(known, authority) > 0 else { return false }
            X509_VERIFY_PARAM_set_time(
                X509_STORE_get0_param(store), time_t(SampleAuthority.time))
            guard OCSP_basic_verify(basic, known, store, 0) == 1 else { return false }
            return [EVP_sha1(), EVP_sha256(), EVP_sha384(), EVP_sha512(), EVP_sha224(), EVP_md5()]
                .contains { digest in
                    let identifier = OCSP_cert_to_id(digest, server, authority)
                    defer { OCSP_CERTID_free(identifier) }
                    var status: Int32 = -1
                    return OCSP_resp_find_status(
                        basic, identifier, &status, nil, nil, nil, nil) == 1
                        && status == V_OCSP_CERTSTATUS_GOOD
                }
        }
    }

    static func isCleared(by list: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        guard let list = decoded(list, d2i_X509_CRL) else { return false }
        defer { X509_CRL_free(list) }
        return withSample { server, authority in
            var revoked: OpaquePointer?
            return X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1
                && X509_CRL_get0_by_cert(list, &revoked, server) == 0
        }
    }

    private static func withSample(_ body: (OpaquePointer, OpaquePointer) -> Bool) -> Bool {
        let server = parseCertificate(der: SampleAuthority.server)
        let authority = parseCertificate(der: SampleAuthority.certificate)
        defer {
            X509_free(server)
            X509_free(authority)
        }
        guard let server, let authority else { return false }
        return body(server, authority)
    }

    private static func decoded(
        _ bytes: [UInt8],
        _ read: (
            UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int
        ) -> OpaquePointer?
    ) -> OpaquePointer? {
        bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return read(nil, &position, buffer.count)
        }
    }
}
