import COpenSSL
import HTTPCore

/// An authority and the certificate of a server that it has issued, both valid until 2126. Nothing
/// else trusts it: its key is here, so that what a signature protects is fuzzed, too.
enum SampleAuthority {
    /// When everything is judged: the beginning of 2027, in seconds since 1970.
    static let time: Int64 = 1_798_761_600

    /// The authority's own certificate, in DER.
    static let certificate = decoded(
        """
        MIIBajCCARCgAwIBAgIUdFYuf4ieF2tyomqQEJkpa8py3uMwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRnV6eiBD
        QTAgFw0yNjExMjcwMzAzMTZaGA8yMTI2MTEwMzAzMDMxNlowEjEQMA4GA1UEAwwHRnV6eiBDQTBZMBMGByqGSM49
        AgEGCCqGSM49AwEHA0IABOqgrdFhtTpXmbHZoYxIPypTw16eI4yBGSuSNVDQSsve2xUtWNVpS6X3Fb7c83RXiN8B
        LKwDAlgfv98AmSMb9kmjQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgGGMB0GA1UdDgQWBBRF9CoS
        6j4l5EnIFrYNuwDxyJaIoTAKBggqhkjOPQQDAgNIADBFAiBvUK7/1AOCC1bg7n0BEMrkyBcwZBS0kC5LGcCBcCEo
        oAIhAIzZv3NG0J8uH7YShEuu6EtZRVN/l7dO6VNK4ZPbMbYH
        """)

    /// The certificate of `a.test`, in DER.
    static let server = decoded(
        """
        MIIBnzCCAUWgAwIBAgICEAAwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRnV6eiBDQTAgFw0yNjExMjcwMzAzMTZa
        GA8yMTI2MTEwMzAzMDMxNlowFDESMBAGA1UEAwwJbGVhZi50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
        KUYdwyy0BBld6qCNRRDoBwKWSD3ZwRy/lJX6rnDHsnY6y1p/nALwDzk0HRlXUIbyRk3LfF9vdVfpQVXknCELBKOB
        hjCBgzARBgNVHREECjAIggZhLnRlc3QwHwYDVR0jBBgwFoAURfQqEuo+JeRJyBa2DbsA8ciWiKEwCQYDVR0TBAIw
        ADAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0OBBYEFH7hB35UBZgvrvlVihBqj2jp
        F6flMAoGCCqGSM49BAMCA0gAMEUCICFCKf1KjqDClQLVcaPNEtdfjzIXO5Z1g8rTahSPrl1xAiEAnpjjiD4vi137
        Ehq/Fg59XljYdsF/dFC5431uYswW/Pk=
        """)

    /// The authority's key (PKCS #8), on P-256.
    private static let key = decoded(
        """
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8Y8rXThcPptjHJaTd2QrgktFhizaqkCgKV4V8CvJ
        /TqhRANCAATqoK3RYbU6V5mx2aGMSD8qU8NeniOMgRkrkjVQ0ErL3tsVLVjVaUul9xW+3PN0V4jfASysAwJYH7/f
        AJkjG/ZJ
        """)

    private static func decoded(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        let isDecoded = Base64.decode(text.utf8, into: &bytes) { $0 == 0x0A }
        precondition(isDecoded)
        return bytes
    }

    // MARK: Signing

    private static let ecdsaWithSHA256: [UInt8] = [
        0x30, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02,
    ]
    private static let basicResponse: [UInt8] = [
        0x06, 0x09, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01,
    ]

    /// A SEQUENCE of what is signed, the algorithm, and the authority's signature.
    ///
    /// - Parameter contents: the contents of the SEQUENCE that is signed.
    static func signed(_ contents: some Sequence<UInt8>) throws(FuzzCheckError) -> [UInt8] {
        let content = DERBytes.element(0x30, Array(contents))
        guard let signature = signature(of: content) else {
            throw FuzzCheckError("the authority cannot sign")
        }
        return DERBytes.element(
            0x30, content + ecdsaWithSHA256 + DERBytes.element(0x03, [0] + signature))
    }

    /// An OCSP response.
    ///
    /// - Parameter contents: the contents of its ResponseData.
    static func response(_ contents: some Sequence<UInt8>) throws(FuzzCheckError) -> [UInt8] {
        let response = basicResponse + DERBytes.element(0x04, try signed(contents))
        return DERBytes.element(
            0x30, [0x0A, 1, 0] + DERBytes.element(0xA0, DERBytes.element(0x30, response)))
    }

    private static func signature(of content: [UInt8]) -> [UInt8]? {
        let key = key.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return d2i_AutoPrivateKey(nil, &position, bytes.count)
        }
        let context = EVP_MD_CTX_new()
        defer {
            EVP_MD_CTX_free(context)
            EVP_PKEY_free(key)
        }
        var count = 80
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSignInit_ex(context, nil, "SHA256", nil, nil, key, nil) == 1,
            EVP_DigestSign(context, &signature, &count, content, content.count) == 1
        else { return nil }
        return Array(signature[..<count])
    }
}

/// DER that the checks begin with.
enum DERBytes {
    static func element(_ tag: UInt8, _ contents: some Collection<UInt8>) -> [UInt8] {
        let count = contents.count
        var octets: [UInt8] = []
        for shift in stride(from: 24, through: 0, by: -8) where count >> shift > 0 {
            octets.append(UInt8(truncatingIfNeeded: count >> shift))
        }
        let length = count < 0x80 ? [UInt8(count)] : [0x80 | UInt8(octets.count)] + octets
        return [tag] + length + contents
    }
}
