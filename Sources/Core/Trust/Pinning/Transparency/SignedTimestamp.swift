/// A log's promise to publish a certificate: a SignedCertificateTimestamp of version 1 (RFC 6962
/// §3.2).
package struct SignedTimestamp: Hashable, Sendable {
    /// What a log signs.
    package enum Entry: Hashable, Sendable {
        /// A certificate whose timestamp is delivered separately.
        case certificate([UInt8])
        /// The precertificate of a certificate in which the timestamp is embedded: the SHA-256 of
        /// its issuer's SubjectPublicKeyInfo, and the TBSCertificate without timestamps.
        case precertificate(issuerKey: SHA256Digest, signed: [UInt8])
    }

    /// The log's ID: the SHA-256 of its key.
    package let log: SHA256Digest
    /// When it was issued, in milliseconds since 1970.
    package let milliseconds: UInt64
    package let extensions: [UInt8]
    /// The signature algorithm, in the numbers of TLS 1.2 (RFC 5246 §7.4.1.4.1).
    package let hash: UInt8
    package let algorithm: UInt8
    package let signature: [UInt8]

    /// Whether the algorithm is SHA-256 with ECDSA or RSA: those that logs may sign with (RFC 6962
    /// §2.1.4).
    package var hasAllowedAlgorithm: Bool { hash == 4 && (algorithm == 3 || algorithm == 1) }

    /// Reads a timestamp; no bytes may follow it.
    package init(_ bytes: ArraySlice<UInt8>) throws(TimestampRejectionReason) {
        guard let version = bytes.first else { throw .malformed }
        guard version == 0 else { throw .unknownVersion(version) }
        let read: SignedTimestamp
        do throws(TLSWireError) {
            read = try SignedTimestamp(WireReader(bytes.dropFirst(), Self.what))
        } catch {
            throw .malformed
        }
        self = read
    }

    private static let what: StaticText = "a timestamp"

    /// Reads what follows the version.
    private init(_ bytes: WireReader) throws(TLSWireError) {
        var reader = bytes
        let id = try reader.take(SHA256Digest.byteCount)
        guard let log = SHA256Digest(id.span) else { throw .malformed(Self.what) }
        let time = try reader.number(bytes: 8)
        let extensions = try reader.vector(lengthBytes: 2)
        let (hash, algorithm) = (try reader.byte(), try reader.byte())
        let signature = try reader.vector(lengthBytes: 2)
        try reader.end()
        self.log = log
        milliseconds = UInt64(bitPattern: Int64(time))
        self.extensions = Array(extensions)
        (self.hash, self.algorithm) = (hash, algorithm)
        self.signature = Array(signature)
    }

    /// Reads a SignedCertificateTimestampList (RFC 6962 §3.3); each element is read separately.
    ///
    /// - Throws: `malformedList` if the list as a whole is malformed, or is empty.
    package static func list(
        _ bytes: ArraySlice<UInt8>
    ) throws(TimestampRejectionReason) -> [Result<SignedTimestamp, TimestampRejectionReason>] {
        let elements: [ArraySlice<UInt8>]
        do throws(TLSWireError) {
            var reader = WireReader(bytes, what)
            elements = try reader.vectors(lengthBytes: 2, eachLengthBytes: 2)
            try reader.end()
        } catch {
            throw .malformedList
        }
        var found: [Result<SignedTimestamp, TimestampRejectionReason>] = []
        for element in elements {
            do throws(TimestampRejectionReason) {
                found.append(.success(try SignedTimestamp(element)))
            } catch {
                found.append(.failure(error))
            }
        }
        return found
    }

    /// The content that the signature covers (RFC 6962 §3.2); `nil` if the entry is longer than any
    /// can be.
    package func signedContent(of entry: Entry) -> [UInt8]? {
        // The version, and the type of signature: a timestamp.
        var content: [UInt8] = [0, 0]
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            content.append(UInt8(truncatingIfNeeded: milliseconds >> shift))
        }
        let body: [UInt8]
        switch entry {
        case .certificate(let der):
            content += [0, 0]
            body = der
        case .precertificate(let issuerKey, let signed):
            content += [0, 1]
            content += issuerKey.bytes
            body = signed
        }
        guard body.count < 1 << 24 else { return nil }
        for shift in [16, 8, 0] { content.append(UInt8(truncatingIfNeeded: body.count >> shift)) }
        content += body
        content.append(UInt8(extensions.count >> 8))
        content.append(UInt8(extensions.count & 0xFF))
        return content + extensions
    }
}
