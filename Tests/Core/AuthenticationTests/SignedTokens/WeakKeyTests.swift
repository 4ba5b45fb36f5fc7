import HTTPCore
import Testing

@testable import Authentication

/// Keys for which anybody can sign, or that two programs may read differently.
@Suite("Keys that are no keys")
struct WeakKeyTests {
    private static let y = (
        zero: [UInt8](repeating: 0, count: 32), p: nearP(0xED),
        eighth: bytes("JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_AU"),
        negative: bytes("xxdqcD1N2E-6PAt2DRBnDyogU_osOczGTsf9d5KsA3o")
    )

    private static func nearP(_ first: UInt8) -> [UInt8] {
        [first] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]
    }

    private static func small(_ number: UInt8) -> [UInt8] { [number] + y.zero.dropFirst() }

    /// With either sign of x.
    private static func both(_ y: [UInt8]) -> [[UInt8]] {
        [y, y.dropLast() + [y[31] | 0x80]]
    }

    /// All encodings of the eight points, by their y.
    static let lowOrder: [[UInt8]] = [
        small(1), small(0), y.eighth, y.negative, nearP(0xEC), nearP(0xED), nearP(0xEE),
    ].flatMap(both)

    /// All others of a y from p on.
    static let notCanonical: [[UInt8]] = (0xEF...0xFF).map { nearP(UInt8($0)) }.flatMap(both)

    static let sound: [[UInt8]] = [
        // The base point, and the keys of RFC 8032 §7.1.
        [0x58] + [UInt8](repeating: 0x66, count: 31),
        bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
        bytes("PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"),
        // Near those that are refused.
        small(3), small(4), nearP(0xEA), nearP(0xE9),
        [0xFD] + [UInt8](repeating: 0xFF, count: 30) + [0x7E],
        [0xFD] + [UInt8](repeating: 0xFF, count: 29) + [0xFE, 0x7F],
    ]

    private func error(_ point: [UInt8]) -> VerificationKeyError? {
        do throws(VerificationKeyError) {
            _ = try VerificationKey(der: DER.ed25519Prefix + point)
            return nil
        } catch {
            return error
        }
    }

    @Test func `no point of low order is a key, in whatever encoding`() {
        #expect(Set(Self.lowOrder).count == 14)
        for point in Self.lowOrder { #expect(error(point) == .lowOrder, "\(point)") }
    }

    @Test func `nor is a point with a y that is not reduced`() {
        #expect(Set(Self.notCanonical).count == 34)
        for point in Self.notCanonical { #expect(error(point) == .notCanonical, "\(point)") }
    }

    @Test func `others are keys`() {
        for point in Self.sound.flatMap(Self.both) { #expect(error(point) == nil, "\(point)") }
    }

    @Test func `a set and a file in PEM say which key it is, and what was expected`() {
        func jwk(_ point: [UInt8]) -> String {
            #"{"kty": "OKP", "crv": "Ed25519", "x": "\#(urlSafe(point))"}"#
        }
        for (points, problem, expected) in [
            (Self.lowOrder, "low order", "made from a private key"),
            (Self.notCanonical, "not encoded canonically", "RFC 8032 §5.1.3"),
        ] {
            for point in points {
                let set = fault("{\"keys\": [\(Signer.p256.jwk()), \(jwk(point))]}")
                #expect(set?.problem.hasPrefix("keys[1] is ") ?? false)
                let pem = fault(Self.pem(DER.ed25519Prefix + point))
                #expect(pem?.problem.hasPrefix("its key is ") ?? false)
                for found in [set, pem] {
                    #expect(found?.problem.contains(problem) ?? false)
                    #expect(found?.expected.contains(expected) ?? false)
                }
            }
        }
    }

    private static func pem(_ der: [UInt8]) -> String {
        "-----BEGIN PUBLIC KEY-----\n\(Base64.encode(der))\n-----END PUBLIC KEY-----\n"
    }

    private func fault(_ text: String) -> KeyFileError? {
        do throws(KeyFileError) {
            _ = try KeyFile(path: "/keys", content: Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    private static let ones8 = [UInt8](repeating: 0xFF, count: 8)

    static let exponents: [(bytes: [UInt8], isUsable: Bool)] = [
        ([3], true), ([5], true), ([17], true), ([1, 0, 1], true), ([0, 0, 1, 0, 1], true),
        (ones8, true), ([0x80, 0, 0, 0, 0, 0, 0, 1], true),
        ([0], false), ([1], false), ([2], false), ([4], false), ([1, 0, 0], false),
        (ones8.dropLast() + [0xFE], false), ([1] + [UInt8](repeating: 0, count: 8), false),
        ([1] + [UInt8](repeating: 0, count: 7) + [1], false), (ones8 + [0xFF], false),
        ([UInt8](repeating: 0x7F, count: 255), false),
    ]

    @Test(arguments: exponents)
    func `an exponent of RSA is odd, at least 3, and has at most 64 bits`(
        _ exponent: [UInt8], _ isUsable: Bool
    ) throws {
        let jwk = Signer.rsa.jwk().replacing(
            "\"e\": \"AQAB\"", with: "\"e\": \"\(urlSafe(exponent))\"")
        let modulus = bytes(jwk.split(separator: "\"").map(String.init)[7])
        let der = DER.rsaKey(modulus: modulus, exponent: exponent)
        for (text, place) in [
            ("{\"keys\": [\(jwk)]}", "keys[0]"), (Self.pem(der), "its key"),
        ] {
            let found = fault(text)
            #expect((found == nil) == isUsable, "\(exponent) \(found?.problem ?? "")")
            guard let found else { continue }
            #expect(found.problem.hasPrefix("\(place) has a public exponent that is even"))
            #expect(found.expected.contains("from 3 to 2^64 - 1"))
        }
    }

    @Test func `another form of the same key is none`() {
        let modulus = bytes(Signer.rsa.jwk().split(separator: "\"").map(String.init)[7])
        let good = DER.rsaKey(modulus: modulus, exponent: [0x7D])
        #expect(good[good.count - 3..<good.count] == [0x02, 0x01, 0x7D])
        #expect(fault(Self.pem(good)) == nil)
        // -3, which the library reads as 253.
        #expect(fault(Self.pem(good.dropLast() + [0xFD])) != nil)
        // The length of a sequence in more bytes than it needs.
        #expect(good[1] == 0x82)
        #expect(fault(Self.pem([0x30, 0x83, 0] + good.dropFirst(2))) != nil)
    }
}
