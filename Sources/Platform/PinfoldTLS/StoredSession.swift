import COpenSSL
import Trust

/// A session's encoded form (OpenSSL's `SSL_SESSION`) without the server's certificate.
///
/// To decode a certificate takes the library longer than the rest of a resumed handshake, and
/// nobody looks at it there: the server was verified when the session was established.
struct StoredSession: Equatable {
    /// The server's own certificate, for those who show it.
    struct Leaf: Equatable {
        var der: [UInt8]
        /// When it ends, in seconds since 1970.
        var end: Int64
    }

    var bytes: [UInt8]
    var leaf: Leaf?

    /// The size in memory, in bytes.
    var count: Int { bytes.count + (leaf?.der.count ?? 0) }

    /// The library's object, to be freed; `nil` if the encoding is not valid.
    func decoded() -> OpaquePointer? {
        bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_SSL_SESSION(nil, &position, buffer.count)
        }
    }

    /// The tag of the certificate in the sequence: [3], constructed.
    private static let certificateTag: UInt8 = 0xA3

    /// Takes the certificate out of an encoded session. What is not encoded as expected is left as
    /// it is.
    static func split(_ bytes: [UInt8]) -> (session: [UInt8], certificate: ArraySlice<UInt8>?) {
        guard let fields = DERReader.single(bytes[...], DERElement.sequence)?.children,
            let index = fields.firstIndex(where: { $0.tag == certificateTag })
        else { return (bytes, nil) }
        let field = fields[index]
        let outer = fields[0].whole.startIndex
        let contents = bytes[outer..<field.whole.startIndex] + bytes[field.whole.endIndex...]
        return (header(of: contents.count) + contents, field.contents)
    }

    /// The identifier and length of a sequence (X.690 §8.1.3).
    private static func header(of count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [DERElement.sequence, UInt8(count)] }
        let all = (0..<4).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
        let octets = all.drop { $0 == 0 }
        return [DERElement.sequence, 0x80 | UInt8(octets.count)] + octets
    }
}

extension StoredSession {
    /// Encodes a session; `nil` if that fails.
    ///
    /// - Parameter leaf: the certificate of a session that was resumed from a stored one.
    init?(_ session: OpaquePointer, leaf: Leaf?) {
        let count = i2d_SSL_SESSION(session, nil)
        guard count > 0 else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
            var position = buffer.baseAddress
            written = max(0, Int(i2d_SSL_SESSION(session, &position)))
        }
        let (stripped, certificate) = Self.split(bytes)
        self.bytes = stripped
        self.leaf = leaf
        if let certificate, let peer = SSL_SESSION_get0_peer(session) {
            self.leaf = Leaf(der: Array(certificate), end: X509View(peer).notAfter)
        }
    }
}
