import PinfoldClient
import TestSupport
import Testing

@Suite("The authenticator")
struct AuthenticatorTests {
    private static let origin = Authenticator.Origin(scheme: "https", host: "X.test", port: 443)
    private static let user = UserCredentials(user: "u", password: "p")
    private static let basic = "Basic dTpw"

    private func request(
        _ target: String = "/a/b", origin: Authenticator.Origin = Self.origin
    ) -> Authenticator.Request {
        Authenticator.Request(origin: origin, method: "GET", target: target)
    }

    private func filled(
        allowing schemes: Set<Authenticator.Scheme> = [.basic, .digest],
        origin: Authenticator.Origin = Self.origin
    ) -> Authenticator {
        var authenticator = Authenticator(allowedSchemes: schemes)
        authenticator.set(Self.user, for: Authenticator.Space(origin: origin, realm: "r"))
        return authenticator
    }

    private func decide(
        _ authenticator: inout Authenticator, _ field: String,
        sent: Authenticator.Answer? = nil, excluding excluded: Set<Authenticator.Offer> = [],
        target: String = "/a/b", origin: Authenticator.Origin = Self.origin
    ) throws -> Authenticator.Decision {
        var generator = SeededRandom(seed: 1)
        return try authenticator.decide(
            HTTPChallenge.parse(field), for: request(target, origin: origin), sent: sent,
            excluding: excluded, using: &generator)
    }

    /// The answer with which a decision repeats the request.
    private func answer(_ decision: Authenticator.Decision) throws -> Authenticator.Answer {
        guard case .answer(let answer) = decision else {
            throw UnexpectedDecisionError(decision: decision)
        }
        return answer
    }

    private struct UnexpectedDecisionError: Error { var decision: Authenticator.Decision }

    private static func offer(
        _ scheme: Authenticator.Scheme, _ realm: String = "r"
    ) -> Authenticator.Offer {
        .init(space: Authenticator.Space(origin: origin, realm: realm), scheme: scheme)
    }

    @Test func `treats a missing realm as the empty one`() throws {
        var authenticator = Authenticator()
        authenticator.set(Self.user, for: Authenticator.Space(origin: Self.origin, realm: ""))
        for field in ["Basic", "Digest qop=auth, Basic charset=\"UTF-8\""] {
            #expect(try answer(decide(&authenticator, field)).value == Self.basic)
        }
        let digest = try answer(decide(&authenticator, "Digest nonce=n, Basic")).value
        #expect(digest.hasPrefix("Digest username=\"u\", realm=\"\", nonce=\"n\", "))
        #expect(try decide(&authenticator, "Digest realm=r") == .notSupported(["digest"]))
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
    func `uses the strongest scheme for which it has credentials`(
        field: String, part: String
    ) throws {
        var authenticator = filled()
        #expect(try answer(decide(&authenticator, field)).value.contains(part))
    }

    @Test func `shows what it lacks`() throws {
        var authenticator = Authenticator()
        #expect(
            try decide(&authenticator, "Basic realm=b, Digest realm=d, nonce=n")
                == .needsCredentials([Self.offer(.digest, "d"), Self.offer(.basic, "b")]))
        #expect(
            try decide(
                &authenticator, "Basic realm=b, Digest realm=d, nonce=n",
                excluding: [Self.offer(.digest, "d")])
                == .needsCredentials([Self.offer(.basic, "b")]))
        #expect(
            try decide(&authenticator, "Negotiate, Bearer realm=b")
                == .notSupported(["negotiate", "bearer"]))
        #expect(try decide(&authenticator, "") == .notSupported([]))
        authenticator.allowedSchemes = [.digest]
        #expect(try decide(&authenticator, "Basic realm=r") == .notSupported(["basic"]))
    }

    @Test func `distinguishes wrong credentials from a stale nonce`() throws {
        var authenticator = filled()
        let fields = ["nonce=n", "nonce=m, stale=TRUE", "nonce=o"].map {
            "Digest realm=r, qop=auth, \($0)"
        }
        let first = try answer(decide(&authenticator, fields[0]))
        let second = try answer(decide(&authenticator, fields[1], sent: first))
        #expect(second.value.contains("nonce=\"m\""))
        #expect(
            try decide(&authenticator, fields[2], sent: second)
                == .rejected(Self.offer(.digest), Self.user))
        #expect(
            try decide(&authenticator, fields[2], sent: second)
                == .needsCredentials([Self.offer(.digest)]))
        #expect(try authenticator.authorization(for: request()) == nil)
    }

    @Test func `tries credentials that were set while others were on their way`() throws {
        var authenticator = filled()
        let sent = try answer(decide(&authenticator, "Basic realm=r"))
        let other = UserCredentials(user: "u", password: "q")
        authenticator.set(other, for: Self.offer(.basic).space)
        let second = try answer(decide(&authenticator, "Basic realm=r", sent: sent))
        #expect(second.value == "Basic dTpx")
        // What belongs to another realm does not affect this one either.
        #expect(
            try decide(&authenticator, "Basic realm=r", sent: second)
                == .rejected(Self.offer(.basic), other))
    }

    @Test func `does not repeat preemptive credentials that were rejected`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Basic realm=r")
        let sent = try #require(try authenticator.authorization(for: request()))
        #expect(
            try decide(&authenticator, "Basic realm=r", sent: sent)
                == .rejected(Self.offer(.basic), Self.user))
    }

    @Test func `gives up on a server that calls every nonce stale`() throws {
        var authenticator = filled()
        var sent = try answer(decide(&authenticator, "Digest realm=r, qop=auth, nonce=n"))
        for number in 1...Authenticator.maximumRenewals {
            sent = try answer(
                decide(
                    &authenticator, "Digest realm=r, qop=auth, nonce=n\(number), stale=true",
                    sent: sent))
        }
        #expect(
            try decide(
                &authenticator, "Digest realm=r, qop=auth, nonce=last, stale=true", sent: sent)
                == .staysStale(Self.offer(.digest)))
        // The credentials may be right: the next request tries them.
        _ = try answer(decide(&authenticator, "Digest realm=r, qop=auth, nonce=x"))
        // A stale nonce that is offered again is not a new one.
        sent = try answer(decide(&authenticator, "Digest realm=r, qop=auth, nonce=x"))
        #expect(
            try decide(
                &authenticator, "Digest realm=r, qop=auth, nonce=x, stale=true", sent: sent)
                == .rejected(Self.offer(.digest), Self.user))
    }

    @Test func `goes from Basic to Digest, never back`() throws {
        var authenticator = filled()
        let basic = try answer(decide(&authenticator, "Basic realm=r"))
        let digest = try answer(
            decide(&authenticator, "Digest realm=r, qop=auth, nonce=n", sent: basic))
        #expect(
            try decide(&authenticator, "Basic realm=r", sent: digest)
                == .rejected(Self.offer(.basic), Self.user))
    }

    @Test func `begins with a nonce's first request if its answer is not sent unchanged`() throws {
        var authenticator = filled()
        let challenges = try HTTPChallenge.parse("Digest realm=r, qop=auth, nonce=n")
        var generator = SeededRandom(seed: 1)
        for sends in [false, true] {
            _ = try authenticator.decide(
                challenges, for: request(), sent: nil, sends: sends, using: &generator)
            let next = try #require(try authenticator.authorization(for: request()))
            #expect(next.value.contains(sends ? "nc=00000002" : "nc=00000001"))
        }
    }

    @Test func `treats a different nonce as a renewal`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, qop=auth, nonce=n")
        let sent = try authenticator.authorization(for: request())
        // The server does not say that it is stale, but had accepted the credentials.
        let second = try answer(
            decide(&authenticator, "Digest realm=r, qop=auth, nonce=m", sent: sent))
        #expect(second.value.contains("nonce=\"m\"") && second.value.contains("nc=00000001"))
        #expect(
            try decide(&authenticator, "Digest realm=r, qop=auth, nonce=o", sent: second)
                == .rejected(Self.offer(.digest), Self.user))
    }

    @Test func `sends Basic preemptively below the challenged path`() throws {
        var authenticator = filled()
        #expect(try authenticator.authorization(for: request()) == nil)
        #expect(try answer(decide(&authenticator, "Basic realm=r")).value == Self.basic)
        for (target, value) in [
            ("/a/c", Self.basic), ("/a/d/e?x", Self.basic), ("https://x.test/a/", Self.basic),
            ("/", nil), ("/ab", nil), ("https://x.test", nil), ("https://x.test/b?/a/", nil),
        ] {
            let sent = try authenticator.authorization(for: request(target))
            #expect(sent?.value == value, "\(target)")
        }
        let others = [
            Authenticator.Origin(scheme: "http", host: "x.test", port: 443),
            Authenticator.Origin(scheme: "https", host: "x.test", port: 444),
            Authenticator.Origin(scheme: "https", host: "x.test", port: 443, isProxy: true),
            Authenticator.Origin(scheme: "https", host: "y.test", port: 443),
        ]
        for other in others {
            #expect(try authenticator.authorization(for: request(origin: other)) == nil)
        }
        _ = try decide(&authenticator, "Basic realm=r", target: "/f")
        #expect(try authenticator.authorization(for: request("/z"))?.value == Self.basic)
    }

    @Test func `sends Basic preemptively with all requests to a proxy`() throws {
        let proxy = Authenticator.Origin(scheme: "http", host: "p", port: 8080, isProxy: true)
        var authenticator = filled(origin: proxy)
        _ = try decide(&authenticator, "Basic realm=r", target: "http://x.test/a/b", origin: proxy)
        let other = request("http://y.test/", origin: proxy)
        #expect(try authenticator.authorization(for: other)?.value == Self.basic)
    }

    @Test(
        arguments: [
            ("", "/z", true), ("domain=\"/a /b\"", "/b/c", true), ("domain=\"/a /b\"", "/c", false),
            ("domain=\"https://x.test/a\"", "/a", true),
            ("domain=\"https://x.test:443\"", "/z", true),
            ("domain=\"https://x.test.evil/\"", "/", false),
            ("domain=\"http://x.test/\"", "/", false),
        ])
    func `sends Digest preemptively within its domain`(
        domain: String, target: String, isSent: Bool
    ) throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, nonce=n, qop=auth, \(domain)")
        let value = try authenticator.authorization(for: request(target))?.value
        #expect((value?.contains("nc=00000002") ?? false) == isSent)
    }

    @Test func `uses the next nonce`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Digest realm=r, nonce=n, qop=auth")
        authenticator.take(info: ["nextnonce": "m"], from: Self.origin)
        let value = try #require(try authenticator.authorization(for: request())).value
        #expect(value.contains("nonce=\"m\"") && value.contains("nc=00000001"))
    }

    @Test func `forgets credentials that are removed`() throws {
        var authenticator = filled()
        _ = try decide(&authenticator, "Basic realm=r")
        authenticator.set(nil, for: Authenticator.Space(origin: Self.origin, realm: "r"))
        #expect(try authenticator.authorization(for: request()) == nil)
    }

    @Test func `limits the number of remembered origins`() throws {
        var authenticator = Authenticator()
        for port in 0...Authenticator.maximumSpaces {
            let origin = Authenticator.Origin(scheme: "https", host: "x.test", port: port)
            let space = Authenticator.Space(origin: origin, realm: "r")
            authenticator.set(Self.user, for: space)
            let decision = try decide(&authenticator, "Basic realm=r", origin: origin)
            if port < Authenticator.maximumSpaces {
                #expect(try answer(decision).value == Self.basic)
            } else {
                #expect(decision == .needsCredentials([.init(space: space, scheme: .basic)]))
            }
        }
    }
}
