import COpenSSL
import HTTPCore

@testable import Authentication

/// Signs tokens, as an issuer and as whoever wants to be taken for one.
final class Signer: @unchecked Sendable {
    private let key: OpaquePointer
    private let digest: OpaquePointer?
    private let isCurve: Bool

    static let rsa = Signer(pinfold_EVP_RSA_gen(2048))
    static let otherRSA = Signer(pinfold_EVP_RSA_gen(2048))
    static let shortRSA = Signer(pinfold_EVP_RSA_gen(1024))
    static let p256 = Signer(pinfold_EVP_EC_gen("P-256"), isCurve: true)
    static let otherP256 = Signer(pinfold_EVP_EC_gen("P-256"), isCurve: true)
    static let p384 = Signer(pinfold_EVP_EC_gen("P-384"), isCurve: true)
    /// The key of RFC 8037 §A.1.
    static let ed25519 = Signer(ed25519: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    static let otherEd25519 = Signer(ed25519: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2E")

    private init(_ key: OpaquePointer?, isCurve: Bool = false, hasDigest: Bool = true) {
        self.key = key!
        self.isCurve = isCurve
        digest = hasDigest ? EVP_sha256() : nil
    }

    private convenience init(ed25519 secret: String) {
        let bytes = bytes(secret)
        self.init(
            EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, bytes, bytes.count),
            hasDigest: false)
    }

    /// With a secret that both sides know: HS256.
    convenience init(secret: [UInt8]) {
        self.init(EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, nil, secret, secret.count))
    }

    /// The public key as SubjectPublicKeyInfo.
    var der: [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &output)
        defer { CRYPTO_free(output, nil, 0) }
        return Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }

    var pem: String {
        let digits = Base64.encode(der)
        return "-----BEGIN PUBLIC KEY-----\n\(digits)\n-----END PUBLIC KEY-----\n"
    }

    /// The public key as JWK, with these members besides.
    func jwk(_ more: String = "") -> String {
        let end = more.isEmpty ? "" : ", \(more)"
        let der = der
        switch (isCurve, digest == nil) {
        case (true, _):
            let crv = der.count == 91 ? "P-256" : "P-384"
            let size = der.count == 91 ? 32 : 48
            let (x, y) = (urlSafe(der.suffix(2 * size).prefix(size)), urlSafe(der.suffix(size)))
            return #"{"kty": "EC", "crv": "\#(crv)", "x": "\#(x)", "y": "\#(y)"\#(end)}"#
        case (_, true):
            return #"{"kty": "OKP", "crv": "Ed25519", "x": "\#(urlSafe(der.suffix(32)))"\#(end)}"#
        default:
            var number: OpaquePointer?
            guard EVP_PKEY_get_bn_param(key, "n", &number) == 1 else { return "" }
            var modulus = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_bits(key)) / 8)
            BN_bn2bin(number, &modulus)
            BN_free(number)
            return #"{"kty": "RSA", "n": "\#(urlSafe(modulus))", "e": "AQAB"\#(end)}"#
        }
    }

    /// `header.claims.signature`, of whatever header and claims.
    func token(_ header: String, _ claims: String) -> String {
        let input = "\(urlSafe(Array(header.utf8))).\(urlSafe(Array(claims.utf8)))"
        return "\(input).\(urlSafe(signature(of: Array(input.utf8))))"
    }

    func signature(of input: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var count = 0
        guard EVP_DigestSignInit(context, nil, digest, nil, key) == 1,
            EVP_DigestSign(context, nil, &count, input, input.count) == 1
        else { return [] }
        var output = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &output, &count, input, input.count) == 1 else { return [] }
        output.removeLast(output.count - count)
        return isCurve ? pair(output) : output
    }

    /// The two numbers of a signature in DER, as 32 bytes each (RFC 7518 §3.4).
    private func pair(_ der: [UInt8]) -> [UInt8] {
        let size = (Int(EVP_PKEY_get_bits(key)) + 7) / 8
        var rest = der.dropFirst(2)
        var numbers: [UInt8] = []
        for _ in 0..<2 {
            let count = Int(rest[rest.startIndex + 1])
            let digits = rest.dropFirst(2).prefix(count).drop { $0 == 0 }
            numbers += [UInt8](repeating: 0, count: size - digits.count) + digits
            rest = rest.dropFirst(2 + count)
        }
        return numbers
    }
}

func urlSafe(_ bytes: some Collection<UInt8>) -> String {
    String(
        Base64.encode(Array(bytes)).compactMap { digit -> Character? in
            switch digit {
            case "+": "-"
            case "/": "_"
            case "=": nil
            default: digit
            }
        })
}

func bytes(_ text: String) -> [UInt8] { Base64.decode(urlSafe: text.utf8)! }
