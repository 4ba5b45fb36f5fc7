import COpenSSL

// Whether an identity can be used: for configuration checks.

extension TLSServerIdentity {
    /// When the certificate ends, in seconds since 1970.
    package var notAfter: Int64 { X509View(certificate).notAfter }
    /// When the certificate begins, in seconds since 1970.
    package var notBefore: Int64 { X509View(certificate).notBefore }

    /// Checks that a server that speaks these versions can present it.
    /// - Throws: for a key that belongs to another certificate, and for anything that the library
    ///   finds too weak.
    package func requireUse(minimum: TLSVersion) throws(TLSIdentityError) {
        var settings = TLSServerSettings()
        settings.minimumVersion = minimum
        do throws(TLSContextError) {
            _ = try TLSServerContext(settings, identity: self)
        } catch {
            if case .identity(let error) = error { throw error }
            throw .refused("\(error)")
        }
    }

    /// What is wrong with the staple, or `nil` if nothing is, or there is none.
    package func unusableStapleReason(at now: Int64) -> UnusableStapleReason? {
        guard let staple else { return nil }
        let response = OCSPResponse(staple)
        guard let response else { return .notAResponse }
        guard let answer = response.answer(for: certificate) else { return .otherCertificate }
        if let end = answer.nextUpdate, end <= now { return .expired }
        return answer.isGood ? nil : .notGood
    }
}

/// Why an OCSP response is of no use to a server.
package enum UnusableStapleReason: Hashable, Sendable, CustomStringConvertible {
    case notAResponse
    case otherCertificate
    case expired
    case notGood

    /// Whether it could never have been valid.
    package var isError: Bool { self == .notAResponse || self == .otherCertificate }

    package var description: String {
        switch self {
        case .notAResponse: "is not a successful OCSP response"
        case .otherCertificate: "is the OCSP response for another certificate"
        case .expired: "has expired: it is not sent; fetch a new one"
        case .notGood: "says that the certificate is revoked or unknown"
        }
    }
}

/// A parsed OCSP response (RFC 6960), owned.
struct OCSPResponse: ~Copyable {
    /// Its statement about one certificate.
    struct Answer {
        var isGood: Bool
        /// How long it is valid, in seconds since 1970, or `nil` if it does not say.
        var nextUpdate: Int64?
    }

    let basic: OpaquePointer

    /// `nil` for anything that is not a successful response.
    init?(_ der: [UInt8]) {
        let response = der.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_OCSP_RESPONSE(nil, &position, buffer.count)
        }
        defer {
            OCSP_RESPONSE_free(response)
            ErrorQueue.clear()
        }
        guard let response, OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = OCSP_response_get1_basic(response)
        else { return nil }
        self.basic = basic
    }

    deinit { OCSP_BASICRESP_free(basic) }

    /// Its statement about a certificate, or `nil` if there is none.
    func answer(for certificate: OpaquePointer) -> Answer? {
        for index in 0..<OCSP_resp_count(basic) {
            guard let single = OCSP_resp_get0(basic, index),
                Self.isAbout(certificate, OCSP_SINGLERESP_get0_id(single))
            else { continue }
            var nextUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            let status = OCSP_single_get0_status(single, nil, nil, nil, &nextUpdate)
            return Answer(
                isGood: status == V_OCSP_CERTSTATUS_GOOD,
                nextUpdate: nextUpdate.flatMap { X509View.seconds($0) })
        }
        return nil
    }

    /// Whether serial number and issuer name match the certificate.
    private static func isAbout(_ certificate: OpaquePointer, _ id: OpaquePointer?) -> Bool {
        var nameHash: UnsafeMutablePointer<ASN1_OCTET_STRING>?
        var algorithm: OpaquePointer?
        var serial: UnsafeMutablePointer<ASN1_INTEGER>?
        guard OCSP_id_get0_info(&nameHash, &algorithm, nil, &serial, id) == 1,
            ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) == 0,
            let digest = EVP_get_digestbyname(OBJ_nid2sn(OBJ_obj2nid(algorithm)))
        else { return false }
        var own = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard
            X509_NAME_digest(X509_get_issuer_name(certificate), digest, &own, &count) == 1,
            let start = ASN1_STRING_get0_data(nameHash)
        else { return false }
        let theirs = UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(nameHash)))
        return own.prefix(Int(count)).elementsEqual(theirs)
    }
}
