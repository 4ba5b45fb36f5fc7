import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("Lists of cipher suites")
struct CipherListTests {
    @Test(arguments: [
        "DEFAULT", "DEFAULT:!SHA1", "HIGH:!aNULL:!MD5:!RC4:!3DES:!EXPORT", "ALL:@STRENGTH",
        "ECDHE+AESGCM:ECDHE+CHACHA20", "ECDHE-RSA-AES128-GCM-SHA256", "HIGH -AES128;+AES256,AES",
    ])
    func `what the library accepts is valid`(list: String) throws {
        try CipherLists.check(ciphers: list)
    }

    @Test(
        arguments: [
            ("FOO", .unknown("FOO")), ("HIGH:FOO", .unknown("FOO")),
            ("HIGH:!FOO", .unknown("!FOO")),
            ("HIGH:ECDHE+FOO", .unknown("ECDHE+FOO")), ("HIGH:ECDHE+", .unknown("ECDHE+")),
            ("HIGH:!", .unknown("!")), ("HIGH:DEFAULT", .unknown("DEFAULT")),
            ("HIGH:@FOO", .unknown("@FOO")), ("HIGH:é", .unknown("é")),
            ("HIGH:TLS_AES_128_GCM_SHA256", .ofTLS13("TLS_AES_128_GCM_SHA256")),
            ("HIGH:@SECLEVEL=0", .securityLevel), ("@SECLEVEL=5:HIGH", .securityLevel),
            ("ALL@SECLEVEL=0", .securityLevel), ("eNULL@SECLEVEL=0", .securityLevel),
            ("DEFAULT@SECLEVEL=1", .securityLevel), ("!MD5@SECLEVEL=0:HIGH", .securityLevel),
            ("HIGH@STRENGTH", .unknown("HIGH@STRENGTH")), ("@STRENGTH@", .unknown("@STRENGTH@")),
            ("ALL!eNULL", .unknown("ALL!eNULL")), ("HIGH\0", .unknown("HIGH\0")),
            ("COMPLEMENTOFALL", .leavesNothing), ("NULL-SHA256", .leavesNothing),
            ("", .leavesNothing), (":", .leavesNothing), ("!HIGH", .leavesNothing),
            ("HIGH:!ALL", .leavesNothing), ("aNULL", .leavesNothing), ("eNULL", .leavesNothing),
            ("RC4", .leavesNothing), ("ADH:AECDH", .leavesNothing), ("PSK", .leavesNothing),
        ] as [(String, CipherListError)])
    func `what it ignores or cannot use is named`(list: String, problem: CipherListError) {
        #expect(throws: problem) { try CipherLists.check(ciphers: list) }
        #expect(!problem.description.isEmpty)
    }

    @Test func `no list offers a suite without encryption or without a certificate`() throws {
        let context = try #require(SSL_CTX_new(TLS_client_method()))
        defer { SSL_CTX_free(context) }
        // At this level the library itself would.
        SSL_CTX_set_security_level(context, 0)
        #expect(CipherLists.offer(ciphers: "ALL:eNULL:aNULL", in: context))
        #expect(!CipherLists.offer(ciphers: "eNULL:aNULL", in: context))
        #expect(CipherLists.offer(ciphers: "ALL:COMPLEMENTOFALL", in: context))
        let ssl = try #require(SSL_new(context))
        defer { SSL_free(ssl) }
        let names = (Int32(0)...).lazy.map { SSL_get_cipher_list(ssl, $0) }
            .prefix { $0 != nil }.compactMap { $0.map { String(cString: $0) } }
        #expect(names.contains("ECDHE-RSA-AES128-GCM-SHA256"))
        for name in names {
            for word in ["NULL", "ADH", "AECDH"] { #expect(!name.contains(word)) }
        }
    }

    @Test func `every suite of TLS 1.3 may be alone, and in any order`() throws {
        for suite in CipherLists.suitesOfTLS13 { try CipherLists.check(cipherSuites: suite) }
        try CipherLists.check(
            cipherSuites: CipherLists.suitesOfTLS13.reversed().joined(separator: ":"))
    }

    @Test(
        arguments: [
            ("TLS_FOO", .unknown("TLS_FOO")), ("HIGH", .unknown("HIGH")),
            ("TLS_AES_128_GCM_SHA256:tls_aes_256_gcm_sha384", .unknown("tls_aes_256_gcm_sha384")),
            ("", .leavesNothing),
        ] as [(String, CipherListError)])
    func `other names are not of TLS 1.3`(list: String, problem: CipherListError) {
        #expect(throws: problem) { try CipherLists.check(cipherSuites: list) }
    }
}
