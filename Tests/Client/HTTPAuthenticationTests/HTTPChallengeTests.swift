import PinfoldClient
import Testing

@Suite("Challenges")
struct HTTPChallengeTests {
    private typealias Challenge = HTTPChallenge

    @Test(
        arguments: [
            ("", []), (" , ,", []),
            ("Basic", [Challenge(scheme: "basic")]),
            (
                "Basic realm=\"WallyWorld\"",
                [Challenge(scheme: "basic", parameters: ["realm": "WallyWorld"])]
            ),
            (
                "BASIC Realm=simple , Charset = \"UTF-8\"",
                [Challenge(scheme: "basic", parameters: ["realm": "simple", "charset": "UTF-8"])]
            ),
            ("Negotiate abc+/=", [Challenge(scheme: "negotiate", token68: "abc+/=")]),
            (
                "Negotiate a== , Basic",
                [
                    Challenge(scheme: "negotiate", token68: "a=="), Challenge(scheme: "basic"),
                ]
            ),
            // RFC 9110, section 11.6.1.
            (
                #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#,
                [
                    Challenge(scheme: "basic", parameters: ["realm": "simple"]),
                    Challenge(
                        scheme: "newauth",
                        parameters: [
                            "realm": "apps", "type": "1", "title": "Login to \"apps\"",
                        ]),
                ]
            ),
            (
                "A, B ,C x=y,,D",
                [
                    Challenge(scheme: "a"), Challenge(scheme: "b"),
                    Challenge(scheme: "c", parameters: ["x": "y"]), Challenge(scheme: "d"),
                ]
            ),
            ("A ,x=y", [Challenge(scheme: "a", parameters: ["x": "y"])]),
            (
                "A x=\"\", y=\"a,b=c\"",
                [Challenge(scheme: "a", parameters: ["x": "", "y": "a,b=c"])]
            ),
            ("A x=\"é\"", [Challenge(scheme: "a", parameters: ["x": "é"])]),
        ])
    func `are read from one field`(field: String, challenges: [HTTPChallenge]) throws {
        #expect(try HTTPChallenge.parse(field) == challenges)
    }

    @Test(
        arguments: [
            ("Basic realm=my realm", ["realm": "my realm"]),
            (
                "Basic realm = My 1 + 1 = 2 realm , charset=UTF-8",
                ["realm": "My 1 + 1 = 2 realm", "charset": "UTF-8"]
            ),
            ("Digest realm=my realm nonce=YWJj==", ["realm": "my realm", "nonce": "YWJj=="]),
            ("Digest nonce=YWJj==, realm=\"a\"", ["realm": "a", "nonce": "YWJj=="]),
            (
                "Digest realm=\"a\" nonce=\"b\"\tqop=auth opaque=c",
                ["realm": "a", "nonce": "b", "qop": "auth", "opaque": "c"]
            ),
            ("Digest realm=\"a\"nonce=\"b\"", ["realm": "a", "nonce": "b"]),
            ("Digest nonce=a/+:;b, opaque=, a=", ["opaque": "", "nonce": "a/+:;b", "a": ""]),
            ("Digest nonce=a, nonce=b, realm=r, realm=\"r\"", ["nonce": "b", "realm": "r"]),
            ("Digest qop=\"\", nonce=\"n\"", ["qop": "", "nonce": "n"]),
            (
                "Digest nonce=n, qop=auth,auth-int, opaque=\"zz\", algorithm=MD5",
                ["nonce": "n", "qop": "auth,auth-int", "opaque": "zz", "algorithm": "MD5"]
            ),
            (
                "Digest nonce=n, qop = AUTH-INT , Auth",
                ["nonce": "n", "qop": "AUTH-INT,auth"]
            ),
            ("Basic realm=\"x\"; charset=\"UTF-8\"", ["realm": "x", "charset": "UTF-8"]),
            ("Basic realm=\"x\"; foo", ["realm": "x"]),
            ("Basic realm=\"x\"z; y", ["realm": "x"]),
            ("Basic \"my, realm\"", [:]), ("Basic x y", [:]),
            ("Basic \"my\", realm=\"x\"", ["realm": "x"]),
            // Of two schemes without a comma between them, the first one counts.
            ("Basic realm=\"a\" Digest realm=\"b\", nonce=\"c\", qop=\"auth\"", ["realm": "a"]),
            ("Basic realm=\"a\" Digest nonce=\"c\", realm=\"b, c\"", ["realm": "a"]),
        ] as [(String, [String: String])])
    func `of devices are read as curl and wget read them`(
        field: String, parameters: [String: String]
    ) throws {
        let scheme = String(field.prefix { $0 != " " })
        #expect(
            try HTTPChallenge.parse(field) == [
                HTTPChallenge(scheme: scheme, parameters: parameters)
            ])
        // After a comma there is a separate challenge.
        let found = try HTTPChallenge.parse("A x=y, \(field), Other z=w")
        #expect(found.map(\.scheme) == ["a", scheme.lowercased(), "other"])
        #expect(found[1].parameters == parameters)
    }

    @Test func `are read from several fields as from one`() throws {
        let found = try HTTPChallenge.parse(["Basic realm=a", "", "Digest realm=b"])
        #expect(found.map(\.scheme) == ["basic", "digest"])
        #expect(found.map(\.realm) == ["a", "b"])
    }

    @Test(
        arguments: [
            ("=", ChallengeError.unexpected(at: 0)), ("Basic\"x\"", .unexpected(at: 5)),
            ("A x=y\"z\"", .unexpected(at: 5)), ("A x=\"y\"z", .unexpected(at: 7)),
            ("A x=\"y\" B z=w", .unexpected(at: 8)), ("A x=y\u{1}", .unexpected(at: 5)),
            ("A x=\"y", .unendedString), ("A x=\"y\\", .unendedString),
            ("A x=\"y\u{1}\"", .unexpected(at: 6)),
            // Whose credentials to send is never guessed, even if a comma or quotes are missing.
            ("Basic realm=a, Realm=b", .duplicate("realm")),
            ("Basic realm=\"a\"; realm=\"b\"", .duplicate("realm")),
            ("Basic realm=\"a", .unendedString), ("Basic; realm=\"a\"", .unexpected(at: 5)),
            ("Digest realm=\"a\"; nonce=\"b\"", .unexpected(at: 16)),
            ("Basic realm=a Digest realm=b, nonce=c", .duplicate("realm")),
            ("A x y", .unexpected(at: 2)), ("A é", .unexpected(at: 2)),
        ])
    func `are rejected with the position`(field: String, error: ChallengeError) {
        #expect(throws: error) { try HTTPChallenge.parse(field) }
    }

    @Test func `are bounded`() throws {
        let many = (0..<32).map { "s\($0)" }.joined(separator: ",")
        #expect(try HTTPChallenge.parse(many).count == 32)
        #expect(throws: ChallengeError.tooLarge) { try HTTPChallenge.parse(many + ",s") }
        let parameters = "A " + (0..<64).map { "p\($0)=1" }.joined(separator: ",")
        #expect(try HTTPChallenge.parse(parameters)[0].parameters.count == 64)
        #expect(throws: ChallengeError.tooLarge) {
            try HTTPChallenge.parse(parameters + ",p=1")
        }
        #expect(throws: ChallengeError.tooLarge) {
            try HTTPChallenge.parse("A " + String(repeating: "x", count: 65_535))
        }
    }

    @Test func `never cause any other error`() {
        var generator = SystemRandomNumberGenerator()
        let letters = Array("aB =\",;\\/\t\u{1}é".unicodeScalars)
        for round in 0..<5000 {
            var text = ["", "Basic ", "Basic realm=a ", "Digest qop=auth,"][round % 4]
            for _ in 0..<Int.random(in: 0...20, using: &generator) {
                text.unicodeScalars.append(letters.randomElement(using: &generator) ?? " ")
            }
            // The result is either challenges, each with a scheme, or the typed error.
            if let found = try? HTTPChallenge.parse(text) {
                #expect(found.allSatisfy { !$0.scheme.isEmpty }, "\(text.debugDescription)")
            }
        }
    }

    @Test func `have an answer in Authentication-Info`() throws {
        #expect(
            try HTTPChallenge.parse(info: "nextnonce=\"a\", qop=auth, nc=00000001")
                == ["nextnonce": "a", "qop": "auth", "nc": "00000001"])
        #expect(throws: ChallengeError.unexpected(at: 0)) {
            try HTTPChallenge.parse(info: "Digest nextnonce=a")
        }
    }
}

@Suite("The Basic scheme")
struct BasicTests {
    @Test(
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123£", "Basic dGVzdDoxMjPCow=="), ("", "", "Basic Og=="),
            ("a", "b:c", "Basic YTpiOmM="),
        ])
    func `has the values of RFC 7617`(user: String, password: String, value: String) throws {
        #expect(try UserCredentials(user: user, password: password).basic() == value)
    }

    @Test(
        arguments: [
            ("a:b", "", AuthenticationError.colonInUserName), ("a", "b\n", .controlCharacter),
            ("a\u{7F}", "b", .controlCharacter),
            (String(repeating: "a", count: 8193), "b", .tooLong),
        ])
    func `rejects what it cannot represent`(
        user: String, password: String, error: AuthenticationError
    ) {
        #expect(throws: error) { try UserCredentials(user: user, password: password).basic() }
    }
}
