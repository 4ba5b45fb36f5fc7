import COpenSSL

/// The files of a newly made authority.
package struct AuthorityFiles: Sendable {
    /// Its certificate, followed by those that lead to earlier authorities.
    package let certificatePEM: [UInt8]
    /// Its private key in PKCS #8, unencrypted: nobody else may read it.
    package let keyPEM: [UInt8]
}

extension CertificateAuthority {
    /// The number of authorities allowed between a new one and a server's certificate: one, its
    /// successor.
    private static let pathLength = 1

    /// Makes a self-signed authority with a new key.
    package static func make(
        _ profile: AuthorityProfile
    ) throws(AuthorityError) -> AuthorityFiles {
        do throws(LibraryError) {
            let key = try PrivateKey(profile.key)
            let own = try certificate(profile, key: key, issuer: nil)
            guard let certificate = own.pem, let pem = key.pem else { throw LibraryError() }
            return AuthorityFiles(certificatePEM: certificate, keyPEM: pem)
        } catch {
            throw .library(error.text)
        }
    }

    /// Makes an authority with a new key, which is self-signed and also signed by this authority:
    /// after its own certificate comes another for the same key that this authority signed. Clients
    /// that trust either authority accept what the new one issues. It inherits this one's name
    /// constraints; those of the profile are ignored.
    ///
    /// - Throws: also if this authority may not sign another, or if both have the same name.
    package func makeSuccessor(
        _ profile: AuthorityProfile
    ) throws(AuthorityError) -> AuthorityFiles {
        guard X509_get_pathlen(certificate.pointer) != 0 else { throw .noSuccessor }
        do {
            let key = try PrivateKey(profile.key)
            let own = try Self.certificate(profile, key: key, issuer: nil, within: certificate)
            guard !hasSameSubject(as: own) else { throw AuthorityError.sameName }
            let crossed = try Self.certificate(profile, key: key, issuer: self, within: certificate)
            guard let first = own.pem, let second = crossed.pem, let pem = key.pem else {
                throw LibraryError()
            }
            return AuthorityFiles(certificatePEM: first + second, keyPEM: pem)
        } catch let error as AuthorityError {
            throw error
        } catch let error as LibraryError {
            throw .library(error.text)
        } catch {
            throw .library("\(error)")
        }
    }

    /// - Parameters:
    ///   - issuer: the signer, or `nil` for a self-signed certificate.
    ///   - former: the authority whose name constraints are inherited instead of the profile's.
    private static func certificate(
        _ profile: AuthorityProfile, key: PrivateKey, issuer: CertificateAuthority?,
        within former: SharedCertificate? = nil
    ) throws(LibraryError) -> SharedCertificate {
        let draft = try CertificateDraft(key: key)
        var validity = profile.validity
        if let issuer { validity = validity.clamped(to: issuer.validity) }
        try draft.setValidity(validity)
        draft.addToSubject(NID_organizationName, Array("Pinfold".utf8))
        guard draft.addToSubject(NID_commonName, Array(profile.commonName.utf8)) else {
            throw LibraryError(text: "not a common name: \(profile.commonName)")
        }
        let signer = issuer?.certificate.pointer ?? draft.pointer
        try draft.setIssuer(signer)
        let length = issuer == nil ? pathLength : 0
        try draft.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:\(length)", issuer: signer)
        try draft.add(NID_key_usage, "critical,keyCertSign,cRLSign", issuer: signer)
        try draft.add(NID_subject_key_identifier, "hash", issuer: signer)
        if issuer != nil { try draft.add(NID_authority_key_identifier, "keyid", issuer: signer) }
        if let former {
            try draft.copy(NID_name_constraints, from: former)
        } else if !profile.constraints.isEmpty {
            try draft.add(NID_name_constraints, profile.constraints.notation, issuer: signer)
        }
        try draft.sign(with: issuer?.key ?? key)
        return draft.finish()
    }

    private func hasSameSubject(as other: SharedCertificate) -> Bool {
        X509_NAME_cmp(
            X509_get_subject_name(certificate.pointer), X509_get_subject_name(other.pointer)) == 0
    }

    /// Seconds since 1970.
    var validity: ClosedRange<Int64> { inspection.notBefore...inspection.notAfter }
}

extension PrivateKey {
    fileprivate convenience init(_ key: AuthorityProfile.Key) throws(LibraryError) {
        switch key {
        case .ecdsaP256: try self.init(generating: .ecdsaP256)
        case .rsa(let bits): try self.init(generatingRSA: bits)
        }
    }
}
