import HTTPCore
import Testing

@testable import Authentication

@Suite("Authorization fields")
struct WrittenProofTests {
    private func parse(_ value: String) -> WrittenProof? { WrittenProof(value.utf8.span) }

    @Test(arguments: [
        ("Basic dTpw", AuthenticationMethod.basic, "dTpw"),
        ("basic dTpw", .basic, "dTpw"), ("BASIC   dTpw==", .basic, "dTpw=="),
        ("Bearer a.b-c_d~e+f/1=", .bearer, "a.b-c_d~e+f/1="), ("bEARER x", .bearer, "x"),
    ])
    func `schemes are recognized in any case`(
        _ value: String, _ method: AuthenticationMethod, _ token: String
    ) throws {
        let proof = try #require(parse(value))
        #expect(proof.method == method)
        #expect(String(decoding: Array(value.utf8)[proof.token], as: UTF8.self) == token)
    }

    @Test(arguments: [
        "", "Basic", "Basic ", "Bearer", "BasicdTpw", "Basic\tdTpw", "Basic dTpw dTpw",
        "Basic dT pw", "Basic =", "Bearer ===", "Bearer a=b", "Bearer a,b", "Bearer \"a\"",
        "Digest username=\"u\"", "Negotiate YII=", "Basi dTpw", "Basic: dTpw", " Basic dTpw",
        "Basic dTpw, Bearer x", "Bearer \u{e9}",
    ])
    func `anything else is no proof`(_ value: String) {
        #expect(parse(value) == nil)
    }

    /// No byte in any place makes another scheme of one, or is taken into a token that may not be
    /// there.
    @Test func `every byte in every place of a value is judged by the grammar`() {
        let value = Array("Basic dTpw".utf8)
        for place in value.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = value
                changed[place] = byte
                let proof = WrittenProof(changed.span)
                let isToken68 =
                    ASCII.isLetter(byte) || ASCII.isDigit(byte)
                    || "-._~+/".utf8.contains(byte)
                let expected: Bool
                switch place {
                case 0..<5: expected = ASCII.lowercased(byte) == ASCII.lowercased(value[place])
                case 5: expected = byte == 0x20
                case 6: expected = isToken68 || byte == 0x20
                case value.count - 1: expected = isToken68 || byte == UInt8(ascii: "=")
                default: expected = isToken68
                }
                #expect((proof != nil) == expected, "\(place) \(byte)")
            }
        }
    }

    private func credentials(_ pair: [UInt8]) -> UserPassword? {
        UserPassword(token: Base64.encode(pair).utf8.span)
    }

    @Test func `user and password are separated by the first colon`() throws {
        let found = try #require(credentials(Array("ann:a:b".utf8)))
        #expect(found.user == "ann")
        #expect(found.password == Array("a:b".utf8))
        let utf8 = try #require(credentials(Array("jürgen:pässwörd€".utf8)))
        #expect(utf8.user == "jürgen")
        #expect(utf8.password == Array("pässwörd€".utf8))
        #expect(credentials(Array("ann:".utf8))?.password == [])
    }

    @Test(arguments: [
        "ann", "", ":", ":secret", "a b:x", "ann:a\u{0}b", "ann:a\u{7f}", "ann:a\nb", "a\u{1}:b",
    ])
    func `what is no user and password is refused`(_ pair: String) {
        #expect(credentials(Array(pair.utf8)) == nil)
    }

    @Test func `what is not UTF-8, not canonical base64, or too long is refused`() {
        #expect(credentials([0x61, 0x3A, 0xFF]) == nil)
        #expect(credentials([0xFF, 0x3A, 0x61]) == nil)
        #expect(credentials(Array("a:".utf8) + [UInt8](repeating: 0x61, count: 511)) != nil)
        #expect(credentials(Array("a:".utf8) + [UInt8](repeating: 0x61, count: 512)) == nil)
        for token in ["dTpw=", "dTp", "dTq=", "dT-w", "dTpw\n"] {
            let credentials = UserPassword(token: token.utf8.span)
            #expect(credentials == nil, "\(token)")
        }
        let long = String(repeating: "YWFh", count: 300)
        let credentials = UserPassword(token: long.utf8.span)
        #expect(credentials == nil)
    }

    @Test func `challenges name the realm and the coding, strongest first`() {
        let store = CredentialStore(realm: #"a "b\"#, users: nil, groups: nil, tokens: nil)
        func text(_ challenges: [Challenge]) -> [String] {
            challenges.map { String(decoding: $0.value, as: UTF8.self) }
        }
        let bearer = #"Bearer realm="a \"b\\""#
        let basic = #"Basic realm="a \"b\\", charset="UTF-8""#
        #expect(text(store.challenges([.basic, .bearer])) == [bearer, basic])
        #expect(text(store.challenges(.basic)) == [basic])
        #expect(text(store.challenges([])) == [])
        let refused = text(store.challenges([.basic, .bearer], refused: .bearer))
        #expect(refused == [bearer + #", error="invalid_token""#, basic])
        #expect(text(store.challenges([.basic, .bearer], refused: .basic)) == [bearer, basic])
        #expect(Challenge.isRealm("Pinfold") && !Challenge.isRealm("") && !Challenge.isRealm("é"))
        #expect(!Challenge.isRealm("a\r\nb"))
        #expect(!Challenge.isRealm(String(repeating: "a", count: 129)))
    }
}
