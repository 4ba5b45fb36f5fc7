import COpenSSL

/// A parsed certificate, owned. Immutable; safe to use from any number of threads at once.
final class SharedCertificate: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes ownership of the certificate.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    /// Parses DER; `nil` for anything else, including trailing bytes.
    convenience init?(der: [UInt8]) {
        guard let parsed = parseCertificate(der: der) else { return nil }
        self.init(owning: parsed)
    }

    deinit { X509_free(pointer) }

    /// All certificates of a PEM file, in order; none if any block cannot be read.
    static func all(inPEM pem: [UInt8]) -> [SharedCertificate] {
        let read = withMemoryBIO(reading: pem) { bio -> [SharedCertificate]? in
            var found: [SharedCertificate] = []
            while let next = PEM_read_bio_X509(bio, nil, { _, _, _, _ in -1 }, nil) {
                found.append(SharedCertificate(owning: next))
            }
            // The library reports the end of the blocks as a specific error.
            let reason = Int32(truncatingIfNeeded: pinfold_error_reason(ERR_peek_last_error()))
            return reason == PEM_R_NO_START_LINE ? found : nil
        }
        return read ?? []
    }

    var der: [UInt8]? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(pointer, &start)
        guard count > 0, let start else { return nil }
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    var pem: [UInt8]? { withMemoryBIO { PEM_write_bio_X509($0, pointer) == 1 } }

    /// Whether its validity, including the second of notAfter (RFC 5280 §4.1.2.5), has not ended at
    /// `now` (seconds since 1970).
    func isUnexpired(at now: Int64) -> Bool {
        // Never 0 for a time that can be read: equal counts as earlier.
        var before = Int(now) - 1
        return X509_cmp_time(X509_get0_notAfter(pointer), &before) > 0
    }
}

/// What a library function writes into memory, or `nil` if it fails.
func withMemoryBIO(_ write: (OpaquePointer) -> Bool) -> [UInt8]? {
    guard let bio = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(bio) }
    guard write(bio) else {
        ERR_clear_error()
        return nil
    }
    var start: UnsafeMutablePointer<CChar>?
    let count = pinfold_BIO_get_mem_data(bio, &start)
    guard let start, count > 0 else { return nil }
    return Array(UnsafeRawBufferPointer(start: start, count: count))
}

/// What a library function reads from memory; the error queue is empty afterwards.
func withMemoryBIO<R>(reading bytes: [UInt8], _ read: (OpaquePointer) -> R?) -> R? {
    guard !bytes.isEmpty else { return nil }
    return bytes.withUnsafeBytes { buffer in
        guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else {
            return nil
        }
        defer {
            BIO_free(bio)
            ERR_clear_error()
        }
        return read(bio)
    }
}
