import TestSupport
import Testing

@testable import PinfoldClient

@Suite("The Digest scheme")
struct DigestTests {
    private func challenge(_ parameters: String) throws -> DigestChallenge {
        let found = try HTTPChallenge.parse("Digest \(parameters)")
        return try #require(DigestChallenge(found[0]))
    }

    /// RFC 7616, section 3.9.1.
    private let mufasa = UserCredentials(user: "Mufasa", password: "Circle of Life")
    private let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    private let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    @Test(
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func `has the responses of RFC 7616`(algorithm: String, response: String) throws {
        let challenge = try challenge(
            """
            realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="\(nonce)", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """)
        var session = DigestSession(challenge, clientNonce: clientNonce)
        let value = try session.authorization(
            method: "GET", target: "/dir/index.html", credentials: mufasa)
        #expect(
            value == """
                Digest username="Mufasa", realm="http-auth@example.org", nonce="\(nonce)", \
                uri="/dir/index.html", response="\(response)", algorithm=\(algorithm), qop=auth, \
                nc=00000001, cnonce="\(clientNonce)", \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
                """)
    }

    @Test func `treats an empty list of protections as none, as in RFC 2069`() throws {
        for list in ["", " , "] {
            var session = DigestSession(
                try challenge("realm=\"r\", nonce=\"n\", qop=\"\(list)\""), clientNonce: "c")
            let value = try session.authorization(
                method: "GET", target: "/", credentials: UserCredentials(user: "u", password: "p"))
            #expect(!value.contains("qop") && !value.contains("cnonce"))
        }
        // An unsupported option in the list is no reason to do less.
        let unknown = try HTTPChallenge.parse("Digest realm=r, nonce=n, qop=auth-conf")
        #expect(DigestChallenge(unknown[0]) == nil)
    }

    @Test func `hashes and sends back the bytes that the server sent, UTF-8 or not`() throws {
        let start = Array("Digest realm=\"caf".utf8) + [0xE9] + Array("\", nonce=\"".utf8)
        let field = start + [0xFF] + Array("\", opaque=\"".utf8) + [0xFE] + Array("\"".utf8)
        let challenges = try HTTPChallenge.parse([field])
        let found = try #require(challenges.first)
        #expect(found.realm == "café")
        var session = DigestSession(
            try #require(DigestChallenge(found)), clientNonce: clientNonce)
        let value = try session.authorizationBytes(
            method: "GET", target: "/", credentials: UserCredentials(user: "u", password: "p"))
        // md5(md5(u:caf\xe9:p):\xff:md5(GET:/))
        let middle = """
            ", uri="/", response="97032ef3b4e0984b0fc14a6ac9e89142", algorithm=MD5, opaque="
            """
        let expected =
            Array("Digest username=\"u\", realm=\"caf".utf8) + [0xE9]
            + Array("\", nonce=\"".utf8) + [0xFF] + Array(middle.utf8) + [0xFE, 0x22]
        #expect(value == expected)
    }

    /// RFC 7616, section 3.9.2, with the values of its erratum 4897.
    @Test func `hashes the user's name as RFC 7616 does`() throws {
        let challenge = try challenge(
            """
            realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", \
            opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true
            """)
        var session = DigestSession(
            challenge, clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v")
        let value = try session.authorization(
            method: "GET", target: "/doe.json",
            credentials: UserCredentials(user: "Jäsøn Doe", password: "Secret, or not?"))
        #expect(
            value.hasPrefix(
                """
                Digest username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\
                ", realm="api@example.org",
                """))
        #expect(
            value.contains(
                "response=\"3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5\""))
        #expect(value.hasSuffix("userhash=true"))
    }

    /// RFC 2617, section 3.5, and the same without qop (RFC 2069), according to its formula.
    @Test func `answers servers without qop`() throws {
        let old = UserCredentials(user: "Mufasa", password: "Circle Of Life")
        let parameters = """
            realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"
            """
        var session = DigestSession(
            try challenge(parameters + ", qop=\"auth\""), clientNonce: "0a4f113b")
        #expect(
            try session.authorization(method: "GET", target: "/dir/index.html", credentials: old)
                .contains("response=\"6629fae49393a05397450978507c4ef1\""))
        session = DigestSession(try challenge(parameters), clientNonce: "0a4f113b")
        let value = try session.authorization(
            method: "GET", target: "/dir/index.html", credentials: old)
        #expect(value.contains("response=\"670fd8c2df070c60b045671b8b24ff02\""))
        #expect(!value.contains("nc=") && !value.contains("cnonce="))
    }

    @Test func `counts requests, and begins again with the next nonce`() throws {
        var session = DigestSession(
            try challenge("realm=a, nonce=b, qop=auth, algorithm=MD5-sess"), clientNonce: "c")
        func next() throws -> String {
            try session.authorization(method: "GET", target: "/", credentials: mufasa)
        }
        #expect(try next().contains("nc=00000001"))
        let second = try next()
        #expect(second.contains("nc=00000002"))
        session.take(info: ["nextnonce": "d"])
        let third = try next()
        #expect(third.contains("nonce=\"d\"") && third.contains("nc=00000001"))
        session.take(info: ["nextnonce": "d"])
        #expect(try next().contains("nc=00000002"))
        // The secret of a session is derived from its first nonce.
        let algorithm = DigestAlgorithm.md5Session
        let user = try algorithm.hexadecimal("Mufasa:a:Circle of Life")
        let secret = try algorithm.hexadecimal("\(user):b:c")
        let request = try algorithm.hexadecimal("GET:/")
        let response = try algorithm.hexadecimal("\(secret):d:00000001:c:auth:\(request)")
        #expect(third.contains("response=\"\(response)\""))
    }

    @Test func `protects content if required`() throws {
        var session = DigestSession(
            try challenge("realm=a, nonce=b, qop=auth-int, algorithm=SHA-256"), clientNonce: "c")
        let empty = try session.authorization(method: "PUT", target: "/", credentials: mufasa)
        var other = DigestSession(session.challenge, clientNonce: "c")
        let full = try other.authorization(
            method: "PUT", target: "/", credentials: mufasa, content: [1])
        #expect(empty.contains("qop=auth-int") && empty != full)
        #expect(throws: AuthenticationError.contentNeeded) {
            try other.authorization(
                method: "PUT", target: "/", credentials: mufasa, content: nil)
        }
        #expect(other.nonceCount == 1)
    }

    @Test func `escapes what it quotes`() throws {
        var session = DigestSession(
            try challenge("realm=\"a \\\"b\\\\\", nonce=n, qop=auth"), clientNonce: "c")
        let value = try session.authorization(
            method: "GET", target: "/", credentials: UserCredentials(user: "x\"y", password: ""))
        #expect(value.contains("username=\"x\\\"y\"") && value.contains("realm=\"a \\\"b\\\\\""))
        let foreign = try session.authorization(
            method: "GET", target: "/", credentials: UserCredentials(user: "Jä", password: ""))
        #expect(foreign.contains("username*=UTF-8''J%C3%A4"))
    }

    @Test(
        arguments: [
            "realm=a", "realm=a, nonce=b, algorithm=SHA-1", "realm=a, nonce=b, qop=x",
        ])
    func `ignores unsupported challenges`(parameters: String) throws {
        let found = try HTTPChallenge.parse("Digest \(parameters)")
        #expect(DigestChallenge(found[0]) == nil)
    }

    @Test(arguments: DigestAlgorithm.allCases)
    func `has all algorithms of RFC 7616, in any letter case`(algorithm: DigestAlgorithm) throws {
        #expect(DigestAlgorithm(name: algorithm.rawValue.lowercased()) == algorithm)
        let digits = [32, 32, 64, 64, 64, 64][DigestAlgorithm.allCases.firstIndex(of: algorithm)!]
        #expect(try algorithm.hexadecimal("").count == digits)
        #expect(algorithm.isSession == algorithm.rawValue.hasSuffix("s"))
    }

    @Test func `makes nonces from a random generator`() throws {
        var generator = SeededRandom(seed: 1)
        let challenge = try challenge("realm=a, nonce=b")
        let nonces = (0..<100).map { _ in
            DigestSession(challenge, using: &generator).clientNonce
        }
        #expect(Set(nonces).count == 100 && nonces.allSatisfy { $0.count == 24 })
    }
}
