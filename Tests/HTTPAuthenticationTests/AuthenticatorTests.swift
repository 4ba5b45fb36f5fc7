import HTTPAuthentication
import Testing

@Suite("The authenticator")
struct AuthenticatorTests {
    private static let origin = ProtectionSpace.Origin(scheme: "https", host: "X.test", port: 443)
    private static let user = UserCredentials(user: "u", password: "p")
    private static let basic = "Basic dTpw"

    private func request(
        _ target: String = "/a/b", origin: ProtectionSpace.Origin = Self.origin
    ) -> Authenticator.Request {
        Authenticator.Request(origin: origin, method: "GET", target: target)
    }

    private func filled(
        allowing schemes: Set<Authenticator.Scheme> = [.basic, .digest],
        origin: ProtectionSpace.Origin = Self.origin
    ) -> Authenticator {
        var authenticator = Authenticator(allowedSchemes: schemes)
        authenticator.set(Self.user, for: ProtectionSpace(origin: origin, realm: "r"))
        return authenticator
    }

    private func decide(
        _ authenticator: inout Authenticator, _ field: String, sent: Bool = false,
        target: String = "/a/b", origin: ProtectionSpace.Origin = Self.origin
    ) throws -> Authenticator.Decision {
        var generator = SystemRandomNumberGenerator()
        return try authenticator.decide(
            AuthenticationChallenge.parse(field), for: request(target, origin: origin), sent: sent,
            using: &generator)
    }

    @Test(
        arguments: [
            ("Basic realm=r, Digest realm=r, nonce=n", "algorithm=MD5"),
            (
                """
                Digest realm=r, nonce=n, Digest realm=r, nonce=n, algorithm=SHA-256, \
                Digest realm=r, nonce=n, algorithm=SHA-512-256-sess, Basic realm=r
                """, "algorithm=SHA-512-256-sess"
            ),
            ("Negotiate, Digest realm=r, nonce=n, algorithm=x, Basic realm=r", "Basic dTpw"),
            ("Digest realm=other, nonce=n, Basic realm=r", "Basic dTpw"),
        ])
    func `takes the strongest scheme for which it has credentials`(
        field: String, part: String
    ) throws {
        var authenticator = filled()
        guard case .answer(let value) = try decide(&authenticator, field) else {
            Issue.record("no answer")
            return
        }
        #expect(value.contains(part))
    }

    @Test func `says what it lacks`() throws {
        var authenticator = Authenticator()
        #expect(
            try decide(&authenticator, "Basic realm=b, Digest realm=d, nonce=n")
                == .needsCredentials([
                    ProtectionSpace(origin: Self.origin, realm: "d"),
                    ProtectionSpace(origin: Self.origin, realm: "b"),
                ]))
        #expect(
            try decide(&authenticator, "Negotiate, Bearer realm=b")
                == .notSupported(["negotiate", "bearer"]))
        #expect(try decide(&authenticator, "") == .notSupported([]))
        authenticator.allowedSchemes = [.digest]
        #expect(try decide(&authenticator, "Basic realm=r") == .notSupported(["basic"]))
    }

    @Test func `tells wrong credentials from an old nonce`() throws {
        var authenticator = filled()
        let fields = ["nonce=n", "nonce=m, stale=TRUE", "nonce=o"].map {
            "Digest realm=r, qop=auth, \($0)"
        }
        guard case .answer = try decide(&authenticator, fields[0]),
            case .answer(let second) = try decide(&authenticator, fields[1], sent: true)
        else {
            Issue.record("no answer")
            return
        }
        #expect(second.contains("nonce=\"m\""))
        let space = ProtectionSpace(origin: Self.origin, realm: "r")
        #expect(try decide(&authenticator, fields[2], sent: true) == .rejected(space))
        #expect(try decide(&authenticator, fields[2]) == .needsCredentials([space]))
        // Others are tried.
        authenticator.set(Self.user, for: space)
        guard case .answer = try decide(&authenticator, fields[2], sent: true) else {
            Issue.record("no answer")
            return
        }
    }

    @Test func `takes another nonce for one that was taken before`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, qop=auth, nonce=n")
        _ = try authenticator.authorization(for: request())
        // The server does not say that it is stale, but has taken the credentials.
        guard
            case .answer(let value) = try decide(
                &authenticator, "Digest realm=r, qop=auth, nonce=m", sent: true)
        else {
            Issue.record("no answer")
            return
        }
        #expect(value.contains("nonce=\"m\"") && value.contains("nc=00000001"))
        #expect(
            try decide(&authenticator, "Digest realm=r, qop=auth, nonce=o", sent: true)
                == .rejected(ProtectionSpace(origin: Self.origin, realm: "r")))
    }

    @Test func `sends Basic along below the path that asked`() throws {
        var authenticator = filled()
        #expect(try authenticator.authorization(for: request()) == nil)
        #expect(try decide(&authenticator, "Basic realm=r") == .answer(Self.basic))
        for (target, value) in [
            ("/a/c", Self.basic), ("/a/d/e?x", Self.basic), ("https://x.test/a/", Self.basic),
            ("/", nil), ("/ab", nil), ("https://x.test", nil), ("https://x.test/b?/a/", nil),
        ] {
            #expect(try authenticator.authorization(for: request(target)) == value, "\(target)")
        }
        let others = [
            ProtectionSpace.Origin(scheme: "http", host: "x.test", port: 443),
            ProtectionSpace.Origin(scheme: "https", host: "x.test", port: 444),
            ProtectionSpace.Origin(scheme: "https", host: "x.test", port: 443, isProxy: true),
            ProtectionSpace.Origin(scheme: "https", host: "y.test", port: 443),
        ]
        for other in others {
            #expect(try authenticator.authorization(for: request(origin: other)) == nil)
        }
        _ = try decide(&authenticator, "Basic realm=r", target: "/f")
        #expect(try authenticator.authorization(for: request("/z")) == Self.basic)
    }

    @Test func `sends Basic along with all requests to a proxy`() throws {
        let proxy = ProtectionSpace.Origin(scheme: "http", host: "p", port: 8080, isProxy: true)
        var authenticator = filled(origin: proxy)
        _ = try decide(&authenticator, "Basic realm=r", target: "http://x.test/a/b", origin: proxy)
        let other = request("http://y.test/", origin: proxy)
        #expect(try authenticator.authorization(for: other) == Self.basic)
    }

    @Test(
        arguments: [
            ("", "/z", true), ("domain=\"/a /b\"", "/b/c", true), ("domain=\"/a /b\"", "/c", false),
            ("domain=\"https://x.test/a\"", "/a", true),
            ("domain=\"https://x.test:443\"", "/z", true),
            ("domain=\"https://x.test.evil/\"", "/", false),
            ("domain=\"http://x.test/\"", "/", false),
        ])
    func `sends Digest along where its domain says`(
        domain: String, target: String, isSent: Bool
    ) throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, nonce=n, qop=auth, \(domain)")
        let value = try authenticator.authorization(for: request(target))
        #expect((value?.contains("nc=00000002") ?? false) == isSent)
    }

    @Test func `takes the next nonce`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, nonce=n, qop=auth")
        authenticator.take(info: ["nextnonce": "m"], from: Self.origin)
        let value = try #require(try authenticator.authorization(for: request()))
        #expect(value.contains("nonce=\"m\"") && value.contains("nc=00000001"))
    }

    @Test func `forgets credentials that are taken away`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Basic realm=r")
        authenticator.set(nil, for: ProtectionSpace(origin: Self.origin, realm: "r"))
        #expect(try authenticator.authorization(for: request()) == nil)
    }

    @Test func `remembers so many origins`() throws {
        var authenticator = Authenticator()
        for port in 0...Authenticator.maximumSpaces {
            let origin = ProtectionSpace.Origin(scheme: "https", host: "x.test", port: port)
            let space = ProtectionSpace(origin: origin, realm: "r")
            authenticator.set(Self.user, for: space)
            let decision = try decide(&authenticator, "Basic realm=r", origin: origin)
            let isTaken = port < Authenticator.maximumSpaces
            #expect(decision == (isTaken ? .answer(Self.basic) : .needsCredentials([space])))
        }
    }
}
