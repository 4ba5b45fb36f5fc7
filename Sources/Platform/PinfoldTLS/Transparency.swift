import COpenSSL
import Locking
import Trust

// Certificate Transparency (RFC 6962). The library's own validation is of no use here: it skips
// servers whose chain it has not built itself, and reads its list of logs in a format of its own.

/// The timestamps that a server sent outside its certificates, as received.
package struct ServerTimestamps: Hashable, Sendable {
    /// The content of the TLS extension, or `nil` if the server did not send it.
    package var handshake: [UInt8]?
    /// A stapled OCSP response in DER, or `nil` if there is none.
    package var status: [UInt8]?

    package init(handshake: [UInt8]? = nil, status: [UInt8]? = nil) {
        self.handshake = handshake
        self.status = status
    }
}

/// Keys of logs.
package enum TransparencyKey {
    /// The maximum number of certificates tried as the issuer of a server's, if no chain identifies
    /// it.
    static let issuersAtMost = 8

    /// Whether a SubjectPublicKeyInfo is a P-256 key, or an RSA key of 2048 bits or more, as logs
    /// have them (RFC 6962 §2.1.4).
    package static func isKnown(_ der: [UInt8]) -> Bool {
        guard let key = parsed(der) else { return false }
        defer {
            EVP_PKEY_free(key)
            ErrorQueue.clear()
        }
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_EC:
            var name = [CChar](repeating: 0, count: 32)
            var count = 0
            return EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1
                && String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
                    == "prime256v1"
        case EVP_PKEY_RSA: return EVP_PKEY_get_bits(key) >= 2048
        default: return false
        }
    }

    fileprivate static func parsed(_ der: [UInt8]) -> OpaquePointer? {
        let key = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            guard let key = d2i_PUBKEY(nil, &position, buffer.count) else { return nil }
            guard position == buffer.baseAddress.map({ $0 + buffer.count }) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        if key == nil { ERR_clear_error() }
        return key
    }
}

/// The keys of one policy's logs, each decoded when it is first needed.
final class TransparencyKeys: Sendable {
    /// Only read, which any number of threads may do at once.
    private final class Key: @unchecked Sendable {
        let pointer: OpaquePointer

        init?(_ der: [UInt8]) {
            guard let pointer = TransparencyKey.parsed(der) else { return nil }
            self.pointer = pointer
        }

        deinit { EVP_PKEY_free(pointer) }
    }

    private let decoded = Locked<[SHA256Digest: Key]>([:])

    private func key(_ log: TransparencyLog) -> Key? {
        decoded.withLock { decoded in
            if let known = decoded[log.id] { return known }
            let made = Key(log.key)
            decoded[log.id] = made
            return made
        }
    }

    /// Whether a log has signed the content.
    func verifies(
        _ log: TransparencyLog, _ timestamp: SignedTimestamp, _ content: [UInt8]
    ) -> Bool {
        guard let holder = key(log) else { return false }
        let key = holder.pointer
        defer { ErrorQueue.clear() }
        let isRSA = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
        // 1 is RSA and 3 is ECDSA (RFC 5246 §7.4.1.4.1).
        guard timestamp.algorithm == (isRSA ? 1 : 3), let context = EVP_MD_CTX_new() else {
            return false
        }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit_ex(context, nil, "SHA256", nil, nil, key, nil) == 1 else {
            return false
        }
        let signature = timestamp.signature
        return withExtendedLifetime(holder) {
            EVP_DigestVerify(context, signature, signature.count, content, content.count) == 1
        }
    }
}

// MARK: - The verdict

extension TrustVerifier {
    /// The verdict of the policy, followed by Certificate Transparency, which is required whatever
    /// the pinsets allow.
    func verdict(
        _ evidence: inout PeerEvidence, host: String?, now: Int64, timestamps: ServerTimestamps
    ) -> TrustVerdict {
        let evaluated = policy.evaluate(&evidence, host: host, now: now)
        let verdict = evidence.limited(evaluated)
        guard let transparency, case .trusted = verdict else { return verdict }
        guard let shown = evidence.transparency(timestamps) else {
            return .refused(TrustError(.chain(.outOfMemory)))
        }
        let failure = transparency.failure(of: shown, now: now) { log, timestamp, content in
            transparencyKeys.verifies(log, timestamp, content)
        }
        return failure.map { .refused(TrustError(.transparency($0))) } ?? verdict
    }
}

extension PeerEvidence {
    /// The timestamps that the server provided; `nil` only if the library is out of memory.
    fileprivate mutating func transparency(
        _ timestamps: ServerTimestamps
    ) -> TransparencyEvidence? {
        guard let der = X509View(certificate).der else { return nil }
        var shown = TransparencyEvidence(
            lists: [], certificate: der, precertificate: [], issuerKey: nil,
            notAfter: X509View(certificate).notAfter)
        if let content = TransparencyContent(certificate: der) {
            if let embedded = content.timestamps {
                shown.lists.append((.certificate, embedded))
                shown.precertificate = content.signed
                shown.issuerKey = issuerKey()
            }
        } else {
            // There are some, in an invalid form.
            shown.lists.append((.certificate, []))
        }
        if let list = timestamps.handshake { shown.lists.append((.handshake, list)) }
        for list in timestamps.status.map(StapledTimestamps.lists) ?? [] {
            shown.lists.append((.status, list))
        }
        return shown
    }

    /// The key that signed the certificate: from the accepted chain or, if no chain was required,
    /// the first matching one among the known certificates with the issuer's name. Each costs a
    /// signature check, and a server may send a hundred.
    private mutating func issuerKey() -> SHA256Digest? {
        defer { ErrorQueue.clear() }
        var tried = 0
        func key(_ candidate: OpaquePointer?) -> SHA256Digest? {
            guard tried < TransparencyKey.issuersAtMost, let candidate,
                X509_check_issued(candidate, certificate) == X509_V_OK,
                let key = X509_get0_pubkey(candidate)
            else { return nil }
            tried += 1
            return X509_verify(certificate, key) == 1 ? X509View(candidate).keyDigest : nil
        }
        if let found = key(accepted?[1]) { return found }
        if let sent {
            for index in 0..<pinfold_sk_X509_num(sent) {
                if let found = key(pinfold_sk_X509_value(sent, index)) { return found }
            }
        }
        // Building chains takes work, too.
        guard tried < TransparencyKey.issuersAtMost else { return nil }
        for stack in knownCertificates() {
            for index in 0..<stack.count {
                if let found = key(stack[index]) { return found }
            }
        }
        return nil
    }
}

/// Timestamps in OCSP responses (RFC 6962 §3.3).
package enum StapledTimestamps {
    /// 1.3.6.1.4.1.11129.2.4.5, which the library calls `NID_ct_cert_scts`.
    private static let identifier = NID_ct_cert_scts
    /// The maximum number of certificates in a response that are examined.
    private static let answersAtMost = 4

    /// The lists in a response in DER, one for each certificate that it covers. The response's own
    /// signature is not checked, because theirs are.
    package static func lists(_ der: [UInt8]) -> [[UInt8]] {
        defer { ErrorQueue.clear() }
        let response = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            return d2i_OCSP_RESPONSE(nil, &position, buffer.count)
        }
        guard let response else { return [] }
        defer { OCSP_RESPONSE_free(response) }
        guard let basic = OCSP_response_get1_basic(response) else { return [] }
        defer { OCSP_BASICRESP_free(basic) }
        var found: [[UInt8]] = []
        for index in 0..<min(Int32(answersAtMost), OCSP_resp_count(basic)) {
            guard let single = OCSP_resp_get0(basic, index) else { continue }
            let place = OCSP_SINGLERESP_get_ext_by_NID(single, identifier, -1)
            guard place >= 0, let one = OCSP_SINGLERESP_get_ext(single, place),
                let data = X509_EXTENSION_get_data(one), let list = content(data)
            else { continue }
            found.append(list)
        }
        return found
    }

    /// The content of the OCTET STRING in an extension's value.
    private static func content(_ data: UnsafeMutablePointer<ASN1_OCTET_STRING>) -> [UInt8]? {
        var position = ASN1_STRING_get0_data(data)
        let count = Int(ASN1_STRING_length(data))
        guard let inner = d2i_ASN1_OCTET_STRING(nil, &position, count) else { return nil }
        defer { ASN1_OCTET_STRING_free(inner) }
        guard let start = ASN1_STRING_get0_data(inner) else { return nil }
        return Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(inner))))
    }
}

// MARK: - Connections

extension ServerTimestamps {
    private static let type: UInt32 = 18
    private static let contexts = UInt32(
        SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_2_SERVER_HELLO | SSL_EXT_TLS1_3_CERTIFICATE)

    /// Makes the connections of a context request timestamps through the TLS extension (RFC 6962
    /// §3.3.1). The library itself would request them only together with its own validation.
    static func ask(in context: OpaquePointer) throws(TLSContextError) {
        let added = SSL_CTX_add_custom_ext(
            context, type, contexts,
            { _, _, _, start, count, _, _, _, _ in
                start?.pointee = nil
                count?.pointee = 0
                return 1
            }, nil, nil,
            { ssl, _, _, start, count, _, position, _, _ in
                // In TLS 1.3 each certificate has extensions; those of the issuers do not matter.
                guard position == 0, let start else { return 1 }
                TLSClientConnection.from(ssl)?.timestamps.handshake = Array(
                    UnsafeBufferPointer(start: start, count: count))
                return 1
            }, nil)
        guard added == 1 else { throw .library(ErrorQueue.drain()) }
    }
}
