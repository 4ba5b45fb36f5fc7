import COpenSSL
import HTTPCore

/// An issued certificate, ready for handshakes.
struct IssuedCertificate: Sendable {
    let certificate: SharedCertificate
    let identity: TLSServerIdentity
    /// Seconds since 1970.
    let validity: ClosedRange<Int64>
}

extension CertificateAuthority {
    /// How long before now a certificate becomes valid, for clients whose clocks are behind.
    static let leewaySeconds: Int64 = 86_400
    /// How long after now it ends at the latest.
    static let lifetimeSeconds: Int64 = 30 * 86_400
    /// How long after now it ends if the server's own certificate has expired.
    static let lifetimeBehindEndSeconds: Int64 = 86_400
    /// The longest common name (RFC 5280, appendix A.1: ub-common-name).
    private static let commonNameCharacters = 64

    /// Issues a certificate for one name, for a TLS server, valid for at most 30 days.
    ///
    /// The name is the only subject alternative name. A DNS name is also the common name, which
    /// very old clients look at. If it is too long for that, or is an address, the subject consists
    /// only of the server's owner, and may be empty.
    ///
    /// - Parameters:
    ///   - request: a request for this authority.
    ///   - key: a key of the requested kind.
    ///   - now: seconds since 1970.
    func issue(
        _ request: CertificateRequest, key subjectKey: PrivateKey, now: Int64
    ) throws(IssuanceError) -> IssuedCertificate {
        let validity = try leafValidity(now: now, server: request.server)
        do {
            let draft = try CertificateDraft(key: subjectKey)
            try draft.setValidity(validity)
            if let server = request.server { draft.addOwner(of: server.certificate) }
            if let name = commonName(request.name) { draft.addToSubject(NID_commonName, name) }
            try draft.setIssuer(certificate.pointer)
            try draft.setAlternativeName(request.name)
            try addFixedExtensions(draft, kind: request.keyKind)
            try draft.sign(with: key)
            let issued = draft.finish()
            guard permits(issued) else { throw IssuanceError.outsideConstraints }
            let identity = try TLSServerIdentity(
                certificate: issued.pointer,
                chain: intermediates.filter { $0.isUnexpired(at: now) }.map(\.pointer),
                key: subjectKey.pointer)
            return IssuedCertificate(certificate: issued, identity: identity, validity: validity)
        } catch let failure as IssuanceError {
            throw failure
        } catch let failure as LibraryError {
            throw .library(failure.text)
        } catch {
            throw .library("\(error)")
        }
    }

    /// Within the authority's validity, and no later than the server's end. A server that the
    /// configuration trusts although it has expired gets a short validity.
    private func leafValidity(
        now: Int64, server: ServerCertificate?
    ) throws(IssuanceError) -> ClosedRange<Int64> {
        do { try requireValid(at: now) } catch { throw .authority(error) }
        var end = min(now + Self.lifetimeSeconds, validity.upperBound)
        if let server {
            let isOver = server.notAfter <= now
            end = min(end, isOver ? now + Self.lifetimeBehindEndSeconds : server.notAfter)
        }
        return max(now - Self.leewaySeconds, validity.lowerBound)...end
    }

    private func addFixedExtensions(
        _ draft: CertificateDraft, kind: CertificateKeyKind
    ) throws(LibraryError) {
        let issuer = certificate.pointer
        try draft.add(NID_basic_constraints, "critical,CA:FALSE", issuer: issuer)
        // RSA key transport, which old clients use, needs keyEncipherment (RFC 5246 §7.4.2).
        let usage =
            switch kind {
            case .ecdsaP256: "critical,digitalSignature"
            case .rsa2048: "critical,digitalSignature,keyEncipherment"
            }
        try draft.add(NID_key_usage, usage, issuer: issuer)
        try draft.add(NID_ext_key_usage, "serverAuth", issuer: issuer)
        try draft.add(NID_subject_key_identifier, "hash", issuer: issuer)
        try draft.add(NID_authority_key_identifier, "keyid", issuer: issuer)
    }

    /// The common name, or `nil` for none.
    private func commonName(_ name: ReferenceIdentifier) -> [UInt8]? {
        // Verifiers take the common name for a DNS name if there is no other, and check it against
        // name constraints on DNS names, including those of authorities above this one.
        guard case .dns(let text) = name, text.utf8.count <= Self.commonNameCharacters else {
            return nil
        }
        return Array(text.utf8)
    }

    /// Whether clients that check the authority's name constraints will accept the certificate.
    private func permits(_ issued: SharedCertificate) -> Bool {
        guard let nameConstraints else { return true }
        defer { ERR_clear_error() }
        // Makes the library parse the names, which it does not do by itself before comparing them.
        X509_check_purpose(issued.pointer, -1, 0)
        return NAME_CONSTRAINTS_check(issued.pointer, nameConstraints) == X509_V_OK
            && NAME_CONSTRAINTS_check_CN(issued.pointer, nameConstraints) == X509_V_OK
    }
}

extension CertificateDraft {
    /// The attributes of a subject that identify the server's owner.
    private static let ownerAttributes: Set<Int32> = [
        NID_countryName, NID_stateOrProvinceName, NID_localityName, NID_organizationName,
        NID_organizationalUnitName,
    ]

    /// Copies the owner from another certificate's subject, each attribute once. Values that are
    /// not printable text, or too long, are left out.
    func addOwner(of other: SharedCertificate) {
        let subject = X509_get_subject_name(other.pointer)
        var left = Self.ownerAttributes
        for index in 0..<X509_NAME_entry_count(subject) where !left.isEmpty {
            let entry = X509_NAME_get_entry(subject, index)
            let attribute = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry))
            guard left.contains(attribute) else { continue }
            var start: UnsafeMutablePointer<UInt8>?
            let count = ASN1_STRING_to_UTF8(&start, X509_NAME_ENTRY_get_data(entry))
            guard count > 0, let start else {
                ERR_clear_error()
                continue
            }
            defer { CRYPTO_free(start, nil, 0) }
            let value = Array(UnsafeBufferPointer(start: start, count: Int(count)))
            guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { continue }
            if addToSubject(attribute, value) { left.remove(attribute) }
        }
    }
}
