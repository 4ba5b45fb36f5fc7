import Foundation

/// A self-signed certificate for api.example.com, its public key and its fingerprint.
package enum SampleCertificate {
    /// The certificate.
    package static let pem = """
        -----BEGIN CERTIFICATE-----
        MIIBijCCATGgAwIBAgIUV/mi+jLkc0L436uk5XEos/FlSwYwCgYIKoZIzj0EAwIw
        GjEYMBYGA1UEAwwPYXBpLmV4YW1wbGUuY29tMCAXDTI2MTEyMTA1MDk1NloYDzIx
        MjYxMDI4MDUwOTU2WjAaMRgwFgYDVQQDDA9hcGkuZXhhbXBsZS5jb20wWTATBgcq
        hkjOPQIBBggqhkjOPQMBBwNCAAQejJNuR1lJiLvPARoKNq71tEzZ1aAxs4w2u4UU
        P1NKivp/2q8pjhThPujblRvWdJfq+grGfp8vPliOAFsdvW60o1MwUTAdBgNVHQ4E
        FgQUumD12PrKAdp1v4w1/LjEDRKURZkwHwYDVR0jBBgwFoAUumD12PrKAdp1v4w1
        /LjEDRKURZkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiArK/cy
        iP6AARyRwjrfwg/M6TY+cnT3ShjaHMRu6qRHKgIgMqqO0O3apGDqPntzfTTmRtcc
        4UhOMlYuiqKK/iUCTos=
        -----END CERTIFICATE-----

        """
    /// A certificate that is not an authority's.
    package static let serverPEM = """
        -----BEGIN CERTIFICATE-----
        MIIBjjCCATSgAwIBAgIUXXAjCLMlxWewCADXGcKNGzZX0YYwCgYIKoZIzj0EAwIw
        HTEbMBkGA1UEAwwSc2VydmVyLmV4YW1wbGUuY29tMCAXDTI2MTEyMjA4MzUyMVoY
        DzIxMjYxMDI5MDgzNTIxWjAdMRswGQYDVQQDDBJzZXJ2ZXIuZXhhbXBsZS5jb20w
        WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASVJ/fQ9RP3kQDDw/nYiug4/RnfiMbD
        HCpXJ2BI+DQAgFHvLbOydmWTt2Tg+aD5Bcp7fEZw8adrglD+Qqj4WDsTo1AwTjAd
        BgNVHQ4EFgQU+uTYbnWUjZr4Dk9Uf4HKlsSz/6YwHwYDVR0jBBgwFoAU+uTYbnWU
        jZr4Dk9Uf4HKlsSz/6YwDAYDVR0TAQH/BAIwADAKBggqhkjOPQQDAgNIADBFAiEA
        /ag6cvOVnn1zCqdOHbai0VGqRh+Edto0rG2C/K/8uhQCIEAZlxiG1uPkscukUDQa
        tIT4u6j/IYLB9ZypKlF1EEYj
        -----END CERTIFICATE-----

        """
    /// The public key of the first.
    package static let publicKeyPEM = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHoyTbkdZSYi7zwEaCjau9bRM2dWg
        MbOMNruFFD9TSor6f9qvKY4U4T7o25Ub1nSX6voKxn6fLz5YjgBbHb1utA==
        -----END PUBLIC KEY-----

        """
    /// Its SHA-256, as tools print it.
    package static let fingerprint = """
        49:69:7E:FB:8F:6C:31:FF:1C:42:F4:DA:47:76:CF:E5:87:94:2E:A7:51:9C:87:FC:06:9A:79:CC:FB:C9:\
        C0:77
        """
    /// A well-formed key pin of no particular key.
    package static let keyPin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    /// The certificate's bytes.
    package static let der: [UInt8] = {
        let lines = pem.split(separator: "\n").dropFirst().dropLast()
        return Array(Data(base64Encoded: lines.joined()) ?? Data())
    }()
}
