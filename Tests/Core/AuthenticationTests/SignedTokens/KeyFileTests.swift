import HTTPCore
import Testing

@testable import Authentication

private func file(_ text: String) throws(KeyFileError) -> KeyFile {
    try KeyFile(path: "/keys", content: Array(text.utf8))
}

private func set(_ keys: String...) throws(KeyFileError) -> KeyFile {
    try file("{\"keys\": [\(keys.joined(separator: ",\n"))]}")
}

private func error(_ body: () throws(KeyFileError) -> KeyFile) -> KeyFileError? {
    do throws(KeyFileError) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}

@Suite("Public keys and their signatures")
struct VerificationKeyTests {
    private static let payload = """
        eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cn\
        VlfQ
        """
    static let rfc7515RSA = """
        {"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qP\
        CJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LO\
        L-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5Zw\
        Kh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\
        ","e":"AQAB"}
        """
    private static let rfc7515EC = """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
        """
    private static let rfc8037 = """
        {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
        """

    static let vectors = [
        (
            "RFC 7515 §A.2", rfc7515RSA, "eyJhbGciOiJSUzI1NiJ9.\(payload)",
            """
            cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O\
            8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARN\
            PvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ\
            1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
            """
        ),
        (
            "RFC 7515 §A.3", rfc7515EC, "eyJhbGciOiJFUzI1NiJ9.\(payload)",
            """
            DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
            """
        ),
        (
            "RFC 8037 §A.4", rfc8037,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
            """
            hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
            """
        ),
    ]

    @Test(arguments: vectors)
    func `the examples of the RFCs are verified, and nothing else`(
        _ name: String, _ jwk: String, _ input: String, _ signature: String
    ) throws {
        let key = try #require(try set(jwk).keys.first?.key)
        let input = Array(input.utf8)
        let signature = bytes(signature)
        #expect(key.verifies(signature, of: input[...]), "\(name)")
        for place in [0, input.count / 2, input.count - 1] {
            var other = input
            other[place] ^= 1
            #expect(!key.verifies(signature, of: other[...]))
        }
        for place in signature.indices {
            var other = signature
            other[place] ^= 1
            #expect(!key.verifies(other, of: input[...]))
        }
        for count in [0, 1, 63, signature.count - 1] {
            #expect(!key.verifies(Array(signature.prefix(count)), of: input[...]))
        }
        #expect(!key.verifies(signature + [0], of: input[...]))
        #expect(!key.verifies([UInt8](repeating: 0, count: signature.count), of: input[...]))
        #expect(!key.verifies(signature, of: []))
    }

    @Test func `a signature of two numbers is not taken in another form`() throws {
        let key = try VerificationKey(der: Signer.p256.der)
        let input = Array("input".utf8)
        let pair = Signer.p256.signature(of: input)
        #expect(key.verifies(pair, of: input[...]))
        let der = DER.sequence([DER.integer(pair[..<32]), DER.integer(pair[32...])])
        #expect(!key.verifies(der, of: input[...]))
        // r or s of zero, and one that is the order of the group (CVE-2022-21449).
        let order = bytes("_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE")
        for (r, s) in [
            ([UInt8](repeating: 0, count: 32), Array(pair[32...])),
            (Array(pair[..<32]), [UInt8](repeating: 0, count: 32)), (order, order),
        ] {
            #expect(!key.verifies(r + s, of: input[...]))
        }
    }

    @Test func `numbers are written as DER has them`() {
        #expect(DER.integer([]) == [2, 1, 0])
        #expect(DER.integer([0, 0]) == [2, 1, 0])
        #expect(DER.integer([0, 0x7F]) == [2, 1, 0x7F])
        #expect(DER.integer([0x80]) == [2, 2, 0, 0x80])
        #expect(DER.element(4, [UInt8](repeating: 1, count: 0x7F)).prefix(2) == [4, 0x7F])
        #expect(DER.element(4, [UInt8](repeating: 1, count: 0x80)).prefix(3) == [4, 0x81, 0x80])
        #expect(DER.element(4, [UInt8](repeating: 1, count: 300)).prefix(4) == [4, 0x82, 1, 44])
        for signer in [Signer.rsa, .p256, .ed25519] {
            #expect(try! set(signer.jwk()).keys.map(\.key.der) == [signer.der])
        }
    }

    @Test func `the algorithm follows from the key`() throws {
        for (signer, algorithm) in [
            (Signer.rsa, SignatureAlgorithm.rs256), (.p256, .es256), (.ed25519, .edDSA),
        ] {
            #expect(try VerificationKey(der: signer.der).algorithm == algorithm)
        }
        for (der, problem) in [
            (Signer.shortRSA.der, VerificationKeyError.tooShort(bits: 1024)),
            (Signer.p384.der, .unsupported), (Signer.rsa.der + [0], .malformed),
            (Array(Signer.rsa.der.dropLast()), .malformed), ([], .malformed),
            (DER.p256Prefix + [UInt8](repeating: 1, count: 64), .malformed),
            (
                DER.rsaKey(modulus: [UInt8](repeating: 0xFF, count: 1025), exponent: [3]),
                .tooLong(bits: 8200)
            ),
        ] {
            #expect(throws: problem) { try VerificationKey(der: der) }
        }
        let modulus = Array(bytes(modulusOfRFC7515))
        for exponent in [[1], [2], [0], [1, 0, 0]] as [[UInt8]] {
            #expect(throws: VerificationKeyError.self) {
                try VerificationKey(der: DER.rsaKey(modulus: modulus, exponent: exponent))
            }
        }
    }

    private var modulusOfRFC7515: String {
        Self.rfc7515RSA.split(separator: "\"").map(String.init)[7]
    }
}

@Suite("Files of keys")
struct KeyFileTests {
    @Test func `sets and single keys in PEM are read`() throws {
        let keys = try set(
            Signer.rsa.jwk(#""kid": "a", "alg": "RS256", "use": "sig", "x5c": ["…"]"#),
            Signer.p256.jwk(#""kid": "b", "key_ops": ["verify"]"#), Signer.ed25519.jwk())
        #expect(keys.keys.map(\.key.algorithm) == [.rs256, .es256, .edDSA])
        #expect(keys.keys.map(\.id) == [Array("a".utf8), Array("b".utf8), nil])
        #expect(keys.remarks.isEmpty)
        for signer in [Signer.rsa, .p256, .ed25519] {
            let pem = try file("# a key\n\(signer.pem)")
            #expect(pem.keys == [KeyFile.Key(id: nil, key: try VerificationKey(der: signer.der))])
        }
        #expect(try set(Signer.p256.jwk()) != set(Signer.p256.jwk(), Signer.p384.jwk()))
    }

    @Test func `keys for something else are passed over`() throws {
        let keys = try set(
            Signer.rsa.jwk(#""use": "enc""#), Signer.rsa.jwk(#""alg": "PS256""#),
            Signer.rsa.jwk(#""key_ops": ["wrapKey"]"#), Signer.p384.jwk(),
            #"{"kty": "OKP", "crv": "X25519", "x": "AA"}"#, #"{"kty": "new\u0001"}"#,
            Signer.p256.jwk(#""alg": "EdDSA""#), Signer.ed25519.jwk())
        #expect(keys.keys.map(\.key.algorithm) == [.edDSA])
        #expect(
            keys.remarks.map { $0.split(separator: ":").last.map(String.init) } == [
                " it is for use enc", " its alg is PS256", " its key_ops have no verify",
                " its curve is P-384", " its curve is X25519", " its kty is another one",
                " its alg is EdDSA",
            ])
    }

    private static let named = #""kid": "a""#
    private static let many = [String](repeating: Signer.p256.jwk(), count: 17)

    static let mistakes: [(String, String)] = [
        ("", "neither JSON nor PEM"), ("hello", "neither JSON nor PEM"),
        ("{\"keys\":\n[}", "line 2"), ("{}", "no list"), ("{\"keys\": {}}", "no list"),
        (Signer.rsa.jwk(), "a single key"), ("{\"keys\": []}", "no key"),
        ("{\"keys\": [1]}", "keys[0] is a number"), ("{\"keys\": [{}]}", "keys[0] has no kty"),
        ("{\"keys\": [{\"kty\": 1}]}", "kty that is a number"),
        ("{\"keys\": [\(Signer.p384.jwk())]}", "P-384"),
        ("{\"keys\": [\(Signer.shortRSA.jwk())]}", "keys[0] has 1024 bits"),
        (#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#, "keys[0] has \"k\""),
        ("{\"keys\": [\(Signer.rsa.jwk(#""d": "c2VjcmV0""#))]}", "keys[0] has \"d\""),
        ("{\"keys\": [\(Signer.rsa.jwk()), \(Signer.p256.jwk(#""kid": 1"#))]}", "keys[1]"),
        (#"{"keys": [{"kty": "RSA", "n": "AQAB"}]}"#, "no usable e"),
        (#"{"keys": [{"kty": "RSA", "n": "A+AB", "e": "AQAB"}]}"#, "no usable n"),
        (#"{"keys": [{"kty": "RSA", "n": "", "e": "AQAB"}]}"#, "no usable n"),
        (#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}]}"#, "no usable x"),
        (#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AQAB"}]}"#, "no usable x"),
        (
            "{\"keys\": [\(Signer.rsa.jwk(named)), \(Signer.otherRSA.jwk(named))]}",
            "keys[1] has the same kid"
        ),
        (
            "{\"keys\": [\(Signer.rsa.jwk("\"kid\": \"\(String(repeating: "a", count: 257))\""))]}",
            "too long"
        ),
        (
            "{\"keys\": [\(many.joined(separator: ","))]}",
            "17 keys"
        ),
        (Signer.shortRSA.pem, "1024 bits"), (Signer.p384.pem, "not supported"),
        (Signer.rsa.pem + Signer.p256.pem, "not one public key"),
        ("-----BEGIN CERTIFICATE-----\nAQAB\n-----END CERTIFICATE-----", "not one public key"),
        ("-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----", "private key"),
        ("-----BEGIN PUBLIC KEY-----\nAQAB\n-----END PUBLIC KEY-----", "not a valid public key"),
        ("-----BEGIN PUBLIC KEY-----\nAQAB\n", "not readable as PEM"),
    ]

    @Test(arguments: mistakes)
    func `others are refused without a secret`(_ text: String, _ problem: String) {
        let found = error { () throws(KeyFileError) in try file(text) }
        let line = found?.line.map { "line \($0)" } ?? ""
        let all = "\(line) \(found?.problem ?? "") \(found?.expected ?? "")"
        #expect(all.contains(problem), "\(all)")
        #expect(!all.contains("c2VjcmV0"))
    }

    @Test func `a key is chosen by its name and its algorithm`() throws {
        let keys = try set(
            Signer.rsa.jwk(#""kid": "a""#), Signer.otherRSA.jwk(#""kid": "b""#),
            Signer.p256.jwk(#""kid": "a""#), Signer.ed25519.jwk())
        func count(_ id: String?, _ algorithm: SignatureAlgorithm) -> Int {
            keys.candidates(id: id.map { Array($0.utf8) }, algorithm).count
        }
        #expect(count("a", .rs256) == 1 && count("b", .rs256) == 1 && count(nil, .rs256) == 2)
        #expect(count("c", .rs256) == 0 && count("a", .es256) == 1 && count("b", .es256) == 0)
        // One without a name may be meant by any.
        #expect(count("c", .edDSA) == 1 && count(nil, .edDSA) == 1)
    }
}
