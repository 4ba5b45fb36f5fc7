import HTTPCore
import TestSupport
import Testing

@testable import Authentication

/// 2026-11-27T00:00:00Z.
private let now: Int64 = 1_795_737_600
private let header = #"{"alg": "ES256", "kid": "p256", "typ": "JWT"}"#

private func claims(_ more: String = "", without: String = "") -> String {
    let members = [
        #""iss": "https://id.test""#, #""aud": "pinfold""#, #""sub": "ann""#,
        #""exp": \#(now + 60)"#, #""iat": \#(now - 60)"#, #""nbf": \#(now - 60)"#,
    ]
    let kept = members.filter { without.isEmpty || !$0.hasPrefix("\"\(without)\"") }
    return "{\((kept + (more.isEmpty ? [] : [more])).joined(separator: ", "))}"
}

/// The claims with one of them replaced.
private func with(_ name: String, _ value: String) -> String {
    claims("\"\(name)\": \(value)", without: name)
}

private let rules: SignedTokenRules = {
    var rules = SignedTokenRules()
    rules.issuer = "https://id.test"
    rules.audience = "pinfold"
    rules.groupsClaim = "roles"
    return rules
}()

private func authority(
    _ rules: SignedTokenRules = rules, _ more: String = ""
) -> SignedTokenAuthority {
    let keys = [
        Signer.rsa.jwk(#""kid": "rsa""#), Signer.p256.jwk(#""kid": "p256""#),
        Signer.ed25519.jwk(#""kid": "ed""#),
    ]
    let set = "{\"keys\": [\(keys.joined(separator: ", "))]}"
    let file = try! KeyFile(path: "/keys", content: Array((more.isEmpty ? set : more).utf8))
    return SignedTokenAuthority(rules: rules, keys: file)
}

/// Who a token proves.
private func result(
    _ token: String, _ authority: SignedTokenAuthority = authority(), at time: Int64 = now
) -> Result<Identity, SignedTokenError> {
    let bytes = Array(token.utf8)
    do throws(SignedTokenError) {
        return .success(try authority.read(bytes.span, at: time).verified())
    } catch {
        return .failure(error)
    }
}

private func isMeant(_ token: String) -> Bool {
    let bytes = Array(token.utf8)
    return SignedTokenAuthority.isMeant(by: bytes.span)
}

@Suite("Signed tokens")
struct SignedTokenTests {
    @Test func `who is named is proved`() throws {
        for (signer, header) in [
            (Signer.rsa, #"{"alg": "RS256", "kid": "rsa"}"#), (.p256, header),
            (.ed25519, #"{"alg":"EdDSA","kid":"ed","typ":"application/AT+JWT","x5t":"…"}"#),
            (.p256, #"{"alg": "ES256"}"#), (.rsa, #"{ "alg" : "RS\u0032\u0035\u0036" }"#),
        ] {
            let identity = try result(
                signer.token(header, claims(#""roles": ["build", "Domain Users"]"#))
            ).get()
            #expect(identity.user == "jwt:ann")
            #expect(identity.groups == ["jwt:Domain Users", "jwt:build"])
            #expect(identity.method == .bearer && identity.expires == now + 90)
            #expect(authority().confirms(signed(identity)))
        }
    }

    private func signed(_ identity: Identity) -> SignedTokenProof {
        guard case .signedToken(let proof) = identity.proof else { fatalError("\(identity.proof)") }
        return proof
    }

    @Test(arguments: [
        (#""roles": "build deploy""#, ["jwt:build", "jwt:deploy"]), (#""roles": """#, []),
        (#""roles": []"#, []), ("", []), (#""roles": "one""#, ["jwt:one"]),
        (#""roles": ["a", "a"]"#, ["jwt:a"]), (#""groups": ["a"]"#, []),
    ])
    func `groups are a list, or words`(_ claim: String, _ expected: [String]) throws {
        #expect(try result(Signer.p256.token(header, claims(claim))).get().groups == expected)
    }

    @Test(arguments: [
        ("exp", "\(now - 29)"), ("exp", "\(now - 29).9"), ("exp", "253402300799"),
        ("nbf", "\(now + 30)"), ("nbf", "\(now + 29).5"), ("iat", "\(now + 30)"),
        ("aud", #"["other", "pinfold"]"#), ("iss", #""https:\/\/id.test""#),
        ("sub", #""repo:org/site:ref:refs/heads/main""#), ("jti", "1"),
    ])
    func `within the leeway, and in every form`(_ name: String, _ value: String) throws {
        _ = try result(Signer.p256.token(header, with(name, value))).get()
    }

    static let wrongHeaders: [(String, SignedTokenError)] = [
        (#"{"alg": "none"}"#, .algorithm), (#"{"alg": "None"}"#, .algorithm),
        (#"{"alg": ""}"#, .algorithm), (#"{"alg": "HS256"}"#, .algorithm),
        (#"{"alg": "es256"}"#, .algorithm), (#"{"alg": "ES384"}"#, .algorithm),
        (#"{"alg": "PS256"}"#, .algorithm), (#"{"alg": "RS512"}"#, .algorithm),
        (#"{"alg": "ES256 "}"#, .algorithm), (#"{"alg": null}"#, .algorithm),
        (#"{"alg": ["ES256"]}"#, .algorithm), (#"{"kid": "p256"}"#, .malformed),
        // The key is for another algorithm.
        (#"{"alg": "RS256", "kid": "p256"}"#, .unknownKey),
        (#"{"alg": "EdDSA", "kid": "p256"}"#, .unknownKey),
        (#"{"alg": "RS256"}"#, .signature), (#"{"alg": "EdDSA"}"#, .signature),
        (#"{"alg": "ES256", "kid": "other"}"#, .unknownKey),
        (#"{"alg": "ES256", "kid": ""}"#, .unknownKey),
        (#"{"alg": "ES256", "kid": "p256\u0000"}"#, .unknownKey),
        (#"{"alg": "ES256", "kid": 1}"#, .malformed),
        (#"{"alg": "ES256", "kid": "\#(String(repeating: "a", count: 257))"}"#, .malformed),
        (#"{"alg": "none", "alg": "ES256"}"#, .malformed),
        (#"{"alg": "ES256", "\u0061lg": "ES256"}"#, .malformed),
        (#"{"alg": "ES256", "crit": ["exp"], "exp": 1}"#, .extension),
        (#"{"alg": "ES256", "crit": []}"#, .extension),
        (#"{"alg": "ES256", "b64": false, "crit": ["b64"]}"#, .extension),
        (#"{"alg": "ES256", "b64": false}"#, .extension),
        (#"{"alg": "ES256", "jwk": \#(Signer.otherP256.jwk())}"#, .bringsKey),
        (#"{"alg": "ES256", "jku": "https://evil.test/keys"}"#, .bringsKey),
        (#"{"alg": "ES256", "x5u": "https://evil.test/cert"}"#, .bringsKey),
        (#"{"alg": "ES256", "x5c": ["AA"]}"#, .bringsKey),
        (#"{"alg": "ES256", "typ": "dpop+jwt"}"#, .type),
        (#"{"alg": "ES256", "typ": "logout+jwt"}"#, .type),
        (#"{"alg": "ES256", "typ": ""}"#, .type), (#"{"alg": "ES256", "typ": 1}"#, .malformed),
        (#"{"alg": "ES256", "cty": "JWT"}"#, .type),
        (#"{"alg": "ES256", "enc": "A128GCM"}"#, .type),
        (#"{"alg": "ES256", "zip": "DEF"}"#, .type),
        (#"["alg", "ES256"]"#, .malformed),
        (#"{"alg": "ES256",}"#, .malformed), ("{'alg': 'ES256'}", .malformed), ("", .malformed),
        (#"{"alg": "ES256", "x": "\#(String(repeating: "x", count: 2048))"}"#, .tooLong),
    ]

    private static let wrongValues: [(String, String, SignedTokenError)] = [
        ("iss", #""https://id.test/""#, .issuer), ("iss", #""https://ID.test""#, .issuer),
        ("iss", #"["https://id.test"]"#, .issuer), ("iss", "null", .issuer),
        ("iss", #""https://id.test\u0000""#, .issuer),
        ("aud", #""pinfold2""#, .audience), ("aud", #""Pinfold""#, .audience),
        ("aud", #"["other"]"#, .audience), ("aud", #""other pinfold""#, .audience),
        ("aud", "[]", .audienceForm), ("aud", #"[["pinfold"]]"#, .audienceForm),
        ("aud", #"["pinfold", 1]"#, .audienceForm), ("aud", #"[null, "pinfold"]"#, .audienceForm),
        ("aud", #"["pinfold", ["other"]]"#, .audienceForm), ("aud", "[{}]", .audienceForm),
        ("aud", #"{"pinfold": 1}"#, .audienceForm), ("aud", "1", .audienceForm),
        ("aud", "null", .audienceForm), ("aud", "true", .audienceForm),
        ("exp", "\(now - 30)", .expired), ("exp", "\(now - 31)", .expired),
        ("exp", "\(now - 30).9", .expired), ("exp", "0", .expired),
        ("exp", "-1", .malformed), ("exp", "1e18", .malformed), ("exp", "1E+18", .malformed),
        ("exp", "9999999999999", .malformed), ("exp", #""\#(now + 60)""#, .malformed),
        ("exp", "null", .malformed), ("exp", "true", .malformed), ("exp", "[]", .malformed),
        ("nbf", "\(now + 31)", .notYetValid), ("nbf", "\(now + 30).1", .notYetValid),
        ("nbf", #""now""#, .malformed), ("nbf", "null", .malformed),
        ("iat", "\(now + 31)", .issuedLater), ("iat", "null", .malformed),
        ("sub", #""""#, .user), ("sub", #""a b""#, .user), ("sub", "1", .user),
        ("sub", #""a\r\nX-Evil: 1""#, .user), ("sub", #""a\u0000""#, .user),
        ("sub", #""j\u00fcrgen""#, .user), ("sub", #""a\u202eb""#, .user),
        ("sub", #""a\"b""#, .user), ("sub", #""a\\b""#, .user), ("sub", #"["ann"]"#, .user),
        ("sub", "\"\(String(repeating: "a", count: 257))\"", .user), ("sub", "null", .user),
        ("roles", "1", .groups), ("roles", "null", .groups), ("roles", "[1]", .groups),
        ("roles", #"["a", ["b"]]"#, .groups), ("roles", #"{"a": 1}"#, .groups),
        ("roles", #"["a\n"]"#, .groups), ("roles", #"[""]"#, .groups),
        ("roles", #"[" a"]"#, .groups), ("roles", #""a \u00fc""#, .groups),
        ("roles", "[\((0..<257).map { "\"g\($0)\"" }.joined(separator: ","))]", .groups),
        ("sub", #""ann", "sub": "root""#, .malformed),
        ("exp", #"\#(now - 60), "exp": \#(now + 60)"#, .malformed),
        ("roles", #"["a"], "role\u0073": ["b"]"#, .malformed),
        (
            "deep", String(repeating: "[", count: 40) + String(repeating: "]", count: 40),
            .malformed
        ),
    ]

    static let wrongClaims: [(String, SignedTokenError)] =
        wrongValues.map { (with($0.0, $0.1), $0.2) } + [
            (claims(without: "iss"), .issuer), (claims(without: "aud"), .audience),
            (claims(without: "exp"), .noExpiry), (claims(without: "sub"), .user),
            ("[]", .malformed), ("", .malformed), ("{}", .issuer), (claims() + "x", .malformed),
        ]

    @Test(arguments: wrongHeaders)
    func `a header that asks for something else proves nothing`(
        _ header: String, _ error: SignedTokenError
    ) {
        // Signed as it should be, so that nothing but the header is wrong.
        expect(Signer.p256.token(header, claims()), error)
    }

    @Test(arguments: wrongClaims)
    func `claims that do not suffice prove nothing`(_ claims: String, _ error: SignedTokenError) {
        expect(Signer.p256.token(header, claims), error)
    }

    private func expect(_ token: String, _ error: SignedTokenError) {
        guard case .failure(let found) = result(token) else {
            Issue.record("accepted: \(token)")
            return
        }
        #expect(found == error)
    }

    /// Whoever knows the public keys, which everybody may, has no token.
    @Test func `whoever is not the issuer proves nothing`() {
        let secrets = [Signer.rsa, .p256, .ed25519].flatMap { signer in
            [Array(signer.pem.utf8), signer.der, Array(signer.jwk().utf8)]
        }
        var attempts: [String] = []
        for name in SignatureAlgorithm.allCases.map(\.rawValue) + ["HS256", "none"] {
            for kid in [#", "kid": "rsa""#, #", "kid": "p256""#, #", "kid": "ed""#, ""] {
                let header = "{\"alg\": \"\(name)\"\(kid)}"
                for secret in secrets {
                    attempts.append(Signer(secret: secret).token(header, claims()))
                }
                for signer in [Signer.otherRSA, .otherP256, .otherEd25519, .shortRSA, .p384] {
                    attempts.append(signer.token(header, claims()))
                }
                let unsigned = "\(urlSafe(Array(header.utf8))).\(urlSafe(Array(claims().utf8)))."
                attempts += [unsigned, unsigned + "AA", unsigned + "AAAA"]
                attempts += [32, 64, 70, 256].map { count in
                    unsigned + urlSafe([UInt8](repeating: 0, count: count))
                }
            }
        }
        #expect(attempts.count == 5 * 4 * (9 + 5 + 7))
        for attempt in attempts {
            guard case .failure = result(attempt) else {
                Issue.record("accepted: \(attempt)")
                continue
            }
        }
    }

    @Test func `every byte of a token counts`() {
        let token = Signer.p256.token(header, claims())
        let bytes = Array(token.utf8)
        var accepted = 0
        for place in bytes.indices {
            for other in [bytes[place] ^ 1, UInt8(ascii: "="), UInt8(ascii: "."), 0x20, 0] {
                var changed = bytes
                changed[place] = other
                guard changed != bytes else { continue }
                if case .success = result(String(decoding: changed, as: UTF8.self)) {
                    accepted += 1
                }
            }
            if case .success = result(String(decoding: bytes[..<place], as: UTF8.self)) {
                accepted += 1
            }
        }
        for more in ["=", "==", "A", ".", ".AA", " ", "\n", "\0"] {
            if case .success = result(token + more) { accepted += 1 }
            if case .success = result(more + token) { accepted += 1 }
        }
        #expect(accepted == 0)
        #expect((try? result(token).get())?.user == "jwt:ann")
    }

    @Test func `sizes are bounded`() {
        let long = with("x", "\"\(String(repeating: "x", count: 20_000))\"")
        expect(Signer.p256.token(header, long), .tooLong)
        let parts = Signer.p256.token(header, claims()).split(separator: ".")
        let signature = urlSafe([UInt8](repeating: 1, count: 1025))
        expect("\(parts[0]).\(parts[1]).\(signature)", .tooLong)
    }

    @Test func `what has three parts and a header is meant as one`() {
        let token = Signer.p256.token(header, claims())
        #expect(isMeant(token) && isMeant("e30..") && isMeant("e30.x.y") && isMeant("IHt9IA.."))
        // Whatever is wrong with the header, unless it is none.
        #expect(isMeant("\(urlSafe(Array(#"{"a":1,"a":2}"#.utf8))).x.y"))
        for other in [
            "", "open-sesame", "a.b", "a.b.c", "e30.x", "e30.x.y.z", "..", ".x.y", "e31.x.y",
            "e30=.x.y", "W10.x.y", "eyJh.x.y", token + ".x",
            "\(urlSafe(Array("{\(String(repeating: " ", count: 4000))}".utf8))).x.y",
        ] {
            #expect(!isMeant(other), "\(other)")
        }
    }

    @Test func `a name of a token is never that of a file`() throws {
        var other = rules
        #expect(rules.mayName("jwt:ann") && rules.mayName("jwt:a:b"))
        #expect(!rules.mayName("ann") && !rules.mayName("jwt:") && !rules.mayName("jwt:ü"))
        #expect(!rules.mayName("JWT:ann"))
        other.prefix = ""
        #expect(other.mayName("ann") && !other.mayName(""))
        let token = Signer.p256.token(header, claims(#""roles": "build""#))
        let identity = try result(token, authority(other)).get()
        #expect(identity.user == "ann" && identity.groups == ["build"])
        other.prefix = "sso/"
        #expect(try result(token, authority(other)).get().user == "sso/ann")
    }

    @Test func `other claims may be the user`() throws {
        var other = rules
        (other.userClaim, other.groupsClaim) = ("https://id.test/name", nil)
        let token = Signer.p256.token(header, claims(#""https://id.test/name": "bob", "roles": 1"#))
        let identity = try result(token, authority(other)).get()
        #expect(identity.user == "jwt:bob" && identity.groups.isEmpty)
    }

    @Test func `what was verified counts as long as the same is demanded`() throws {
        let identity = try result(Signer.p256.token(header, claims())).get()
        let proof = signed(identity)
        func store(_ authority: SignedTokenAuthority?) -> CredentialStore {
            CredentialStore(realm: "r", signedTokens: authority)
        }
        let end = now + 90
        #expect(store(authority()).confirms(identity, at: end - 1))
        #expect(!store(authority()).confirms(identity, at: end))
        #expect(!store(nil).confirms(identity, at: now))
        let rotated = authority(rules, "{\"keys\": [\(Signer.p256.jwk()), \(Signer.rsa.jwk())]}")
        #expect(rotated.confirms(proof))
        #expect(!authority(rules, Signer.otherP256.pem).confirms(proof))
        for place in [\SignedTokenRules.issuer, \.audience, \.userClaim, \.prefix] {
            var other = rules
            other[keyPath: place] += "x"
            #expect(!authority(other).confirms(proof))
        }
        var other = rules
        other.groupsClaim = nil
        #expect(!authority(other).confirms(proof))
        (other.groupsClaim, other.leewaySeconds) = (rules.groupsClaim, 0)
        #expect(!authority(other).confirms(proof))
    }

    @Test func `it is remembered until it expires`() throws {
        let identity = try result(Signer.p256.token(header, claims())).get()
        let store = CredentialStore(realm: "r", signedTokens: authority())
        let digest = ProofKey(random: (1, 2, 3, 4)).digest(of: "Bearer x".utf8.span)
        let client = IPNetwork(client: IPAddress("192.0.2.1")!)
        var verified = VerifiedCredentials()
        verified.remember(digest, identity, in: store, from: client, at: 0)
        func known(_ store: CredentialStore, _ wall: Int64) -> Identity? {
            verified.identity(by: digest, in: store, at: 1 << 40, wall: wall)
        }
        #expect(known(store, now) === identity)
        // Another store with the same keys, as after a change of the users.
        #expect(known(CredentialStore(realm: "r", signedTokens: authority()), now) === identity)
        #expect(known(store, now + 90) == nil)
        #expect(verified.count == 0)
        verified.remember(digest, identity, in: store, from: client, at: 0)
        let other = authority(rules, Signer.otherP256.pem)
        #expect(known(CredentialStore(realm: "r", signedTokens: other), now) == nil)
        #expect(known(store, now) == nil)
    }
}
