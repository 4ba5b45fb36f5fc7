import COpenSSL
import Trust

@testable import PinfoldTLS

/// A Certificate Transparency log that promises whatever it is asked to.
final class TestLog: @unchecked Sendable {
    private let key: OpaquePointer
    let der: [UInt8]
    let id: SHA256Digest

    /// - Parameter rsaBits: `nil` for an EC key.
    init(rsaBits: Int32? = nil) {
        let holder = TestCertificate(
            .init(name: "Log", rsaBits: rsaBits), issuer: nil)
        EVP_PKEY_up_ref(holder.key)
        key = holder.key
        let encoded = holder.publicKey
        der = encoded
        guard let digest = SHA256Digest(hashing: encoded.span) else { fatalError("no digest") }
        id = digest
    }

    deinit { EVP_PKEY_free(key) }

    /// How a list of logs describes it.
    func described(
        _ state: TransparencyLog.State = .usable, since: Int64 = 0, expiries: Range<Int64>? = nil
    ) -> TransparencyLog {
        TransparencyLog(
            name: "test log", id: id, key: der, state: state, stateSince: since,
            expiries: expiries)
    }

    /// A timestamp for an entry.
    func promise(_ entry: SignedTimestamp.Entry, at seconds: Int64) -> [UInt8] {
        var bytes: [UInt8] = [0] + id.bytes
        for shift in stride(from: Int64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: (seconds * 1000) >> shift))
        }
        bytes += [0, 0, 4, EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? 1 : 3]
        guard let blank = try? SignedTimestamp((bytes + [0, 0])[...]),
            let content = blank.signedContent(of: entry)
        else { fatalError("no timestamp") }
        let signature = TestLog.sign(content, key)
        return bytes + [UInt8(signature.count >> 8), UInt8(signature.count & 255)] + signature
    }

    private static func sign(_ content: [UInt8], _ key: OpaquePointer) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { fatalError("no memory") }
        defer { EVP_MD_CTX_free(context) }
        EVP_DigestSignInit_ex(context, nil, "SHA256", nil, nil, key, nil)
        var count = 0
        EVP_DigestSign(context, nil, &count, content, content.count)
        var signature = [UInt8](repeating: 0, count: count)
        EVP_DigestSign(context, &signature, &count, content, content.count)
        return Array(signature.prefix(count))
    }

    /// A list of timestamps.
    static func list(_ elements: [[UInt8]]) -> [UInt8] {
        var content: [UInt8] = []
        for one in elements {
            content += [UInt8(one.count >> 8), UInt8(one.count & 255)] + one
        }
        return [UInt8(content.count >> 8), UInt8(content.count & 255)] + content
    }
}

extension TestCertificate {
    /// The TBSCertificate, as the library writes it.
    var signedPart: [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_re_X509_tbs(x509, &encoded)
        defer { CRYPTO_free(encoded, nil, 0) }
        return Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
    }

    /// The same certificate in DER, with a list of timestamps in it.
    func embedding(_ list: [UInt8], issuer: TestCertificate) -> [UInt8] {
        guard let inner = ASN1_OCTET_STRING_new() else { fatalError("no memory") }
        defer { ASN1_OCTET_STRING_free(inner) }
        ASN1_OCTET_STRING_set(inner, list, Int32(list.count))
        var wrapped: UnsafeMutablePointer<UInt8>?
        let wrappedCount = i2d_ASN1_OCTET_STRING(inner, &wrapped)
        defer { CRYPTO_free(wrapped, nil, 0) }
        return embedding(
            raw: Array(UnsafeBufferPointer(start: wrapped, count: Int(wrappedCount))),
            issuer: issuer)
    }

    /// The same with an arbitrary extension value.
    func embedding(raw value: [UInt8], issuer: TestCertificate) -> [UInt8] {
        guard let copy = X509_dup(x509), let data = ASN1_OCTET_STRING_new() else {
            fatalError("no memory")
        }
        defer {
            X509_free(copy)
            ASN1_OCTET_STRING_free(data)
        }
        ASN1_OCTET_STRING_set(data, value, Int32(value.count))
        guard
            let made = X509_EXTENSION_create_by_NID(nil, NID_ct_precert_scts, 0, data)
        else { fatalError("no extension") }
        X509_add_ext(copy, made, 0)
        X509_EXTENSION_free(made)
        X509_sign(copy, issuer.key, EVP_sha256())
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(copy, &encoded)
        defer { CRYPTO_free(encoded, nil, 0) }
        return Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
    }
}
