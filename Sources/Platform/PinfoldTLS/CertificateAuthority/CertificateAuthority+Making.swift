import COpenSSL

/// The files of an authority that was just made.
package struct AuthorityFiles: Sendable {
    /// Its certificate, and behind it those that lead to authorities before it.
    package let certificatePEM: [UInt8]
    /// Its private key in PKCS #8, not encrypted: for nobody else to read.
    package let keyPEM: [UInt8]
}

extension CertificateAuthority {
    /// How many authorities may stand between a new one and a server's certificate: one, its
    /// successor.
    private static let pathLength = 1

    /// Makes an authority with a new key, which vouches for itself.
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

    /// Makes an authority with a new key that vouches for itself, and for which this one vouches
    /// too: behind its own certificate stands one for the same key that this one signed. Clients
    /// that trust either authority accept what the new one issues. It has this one's name
    /// constraints; those of the profile do not count.
    ///
    /// - Throws: also if this one is limited to vouch for no authority, or has the same name.
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
    ///   - issuer: who signs; nil: the key itself.
    ///   - former: the authority whose name constraints it takes over, in place of the profile's.
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
