import HTTPTypes
import PinfoldEngine
import Testing

@testable import PinfoldClient

/// Always chooses the longest delay.
private struct Greatest: RandomNumberGenerator {
    // ThreadSanitizer tracks `inout` arguments by their address, which an empty value does not
    // have.
    private let value = UInt64.max

    mutating func next() -> UInt64 { value }
}

@Suite("The step after an attempt")
struct NextStepTests {
    /// A step in a word or two.
    private func step(
        _ outcome: Result<HTTPResponse, ClientError>, _ method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:], isRepeatable: Bool = true,
        counts: AttemptCounts = AttemptCounts(), remainingTime: Duration = .seconds(600),
        redirects: RedirectRule = .follow(), retries: RetryPolicy = RetryPolicy(),
        resends: Bool = false, expects: Bool = false
    ) throws -> String {
        let rules = AttemptRules(
            redirects: redirects, retries: retries, remainingTime: remainingTime, elapsed: .zero,
            now: 0, resendsUnansweredRequests: resends,
            expectsContinue: expects)
        var generator = Greatest()
        let step = rules.step(
            after: outcome, of: try HTTPRequest(method, "http://a.test/", fields: fields),
            hasRepeatableContent: isRepeatable, counts, using: &generator)
        return switch step {
        case .finish: "finish"
        case .redirect(let target): "redirect \(target.request.url)"
        case .authenticate(let challenger): "authenticate \(challenger)"
        case .retry(let wait): "retry \(wait.wholeMilliseconds)"
        case .resend: "resend"
        case .resendUnasked: "resend unasked"
        case .fail(let error): "fail \(error.reason)"
        }
    }

    private func response(
        _ status: Int, _ fields: HTTPFields = [:]
    ) -> Result<HTTPResponse, ClientError> {
        .success(HTTPResponse(status: .init(code: status), headerFields: fields))
    }

    @Test(
        arguments: [
            (200, [:], "finish"), (404, [:], "finish"),
            (302, [.location: "/x"], "redirect http://a.test/x"),
            (302, [.location: "/x", .location: "/x"], "redirect http://a.test/x"),
            (302, [.location: "/x", .location: "/y"], "fail badResponse"),
            (200, [.location: "/x", .location: "/y"], "finish"),
            (302, [:], "finish"), (302, [.location: "ftp://b.test/"], "redirect ftp://b.test/"),
            (401, [.wwwAuthenticate: "Basic"], "authenticate server"),
            (407, [.proxyAuthenticate: "Basic"], "authenticate proxy(forTunnel: false)"),
            (401, [:], "finish"), (407, [.wwwAuthenticate: "Basic"], "finish"),
            (503, [:], "retry 500"), (503, [.retryAfter: "2"], "retry 2500"),
            (503, [.retryAfter: "2", .retryAfter: "2"], "retry 2500"),
            (503, [.retryAfter: "2", .retryAfter: "3"], "retry 500"),
            (503, [.retryAfter: "3600"], "finish"), (421, [:], "retry 0"),
        ] as [(Int, HTTPFields, String)])
    func `follows from the response`(status: Int, fields: HTTPFields, expected: String) throws {
        #expect(try step(response(status, fields)) == expected)
    }

    @Test(
        arguments: [
            (.cannotConnect, .post, "retry 500"), (.nameNotResolved, .post, "retry 500"),
            (.connectionLost, .get, "retry 500"),
            (.connectionLost, .post, "fail connectionLost"),
            (.timedOut, .get, "retry 500"), (.timedOut, .post, "fail timedOut"),
            (.secureConnectionFailed, .get, "fail secureConnectionFailed"),
            (.badResponse, .get, "fail badResponse"), (.cancelled, .get, "fail cancelled"),
            (.contentFailed, .put, "fail contentFailed"), (.notCached, .get, "fail notCached"),
        ] as [(ClientError.Reason, HTTPRequest.Method, String)])
    func `follows from the failure`(
        reason: ClientError.Reason, method: HTTPRequest.Method, expected: String
    ) throws {
        #expect(try step(.failure(ClientError(reason, "")), method) == expected)
    }

    @Test func `knows that nothing was sent without a connection`() throws {
        for fault in [ExchangeError.connectTimeout, .tlsTimeout] {
            #expect(try step(.failure(ClientError(fault)), .post) == "retry 500")
        }
        #expect(
            try step(.failure(ClientError(.server(.upstreamBodyTimeout))), .post) == "fail timedOut"
        )
    }

    @Test func `repeats a method that is not idempotent if the caller allows it`() throws {
        let lost = ClientError(.connectionLost, "")
        let fields: HTTPFields = [try #require(HTTPField.Name("Idempotency-Key")): "\"1\""]
        #expect(try step(.failure(lost), .post, fields: fields) == "retry 500")
    }

    @Test func `observes the limits of each kind separately`() throws {
        let redirect = response(302, [.location: "/x"])
        let challenge = response(401, [.wwwAuthenticate: "Basic"])
        let most = AttemptCounts(redirects: 20, retries: 2, challenges: 6)
        #expect(try step(redirect, counts: most) == "fail tooManyRedirects")
        #expect(try step(challenge, counts: most) == "finish")
        #expect(try step(response(503), counts: most) == "finish")
        #expect(
            try step(.failure(ClientError(.cannotConnect, "")), counts: most)
                == "fail cannotConnect")
        #expect(
            try step(redirect, counts: .init(redirects: 19, retries: 2, challenges: 6))
                == "redirect http://a.test/x")
        #expect(
            try step(challenge, counts: .init(redirects: 20, retries: 2, challenges: 5))
                == "authenticate server")
        #expect(
            try step(response(503), counts: .init(redirects: 20, retries: 1, challenges: 6))
                == "retry 1000")
    }

    @Test func `follows from a proxy's answer that opens no tunnel`() throws {
        func refused(_ status: Int, _ fields: HTTPFields) -> Result<HTTPResponse, ClientError> {
            .failure(
                ClientError(
                    .proxyAuthenticationRequired, "",
                    proxyResponse: HTTPResponse(status: .init(code: status), headerFields: fields)))
        }
        let challenge = refused(407, [.proxyAuthenticate: "Basic"])
        #expect(try step(challenge, .post) == "authenticate proxy(forTunnel: true)")
        let failed = "fail proxyAuthenticationRequired"
        #expect(try step(challenge, isRepeatable: false) == failed)
        #expect(try step(challenge, counts: .init(challenges: 6)) == failed)
        #expect(try step(refused(407, [:])) == failed)
        #expect(try step(refused(403, [.proxyAuthenticate: "Basic"])) == failed)
    }

    @Test func `is the last one without policy, rule or time`() throws {
        #expect(try step(response(503), retries: .never) == "finish")
        #expect(
            try step(.failure(ClientError(.cannotConnect, "")), retries: .never)
                == "fail cannotConnect")
        #expect(try step(response(302, [.location: "/x"]), redirects: .none) == "finish")
        #expect(try step(response(503), remainingTime: .milliseconds(500)) == "finish")
        #expect(try step(response(503), remainingTime: .milliseconds(501)) == "retry 500")
    }

    @Test func `does not send content again that can be read only once`() throws {
        #expect(try step(response(503), .put, isRepeatable: false) == "finish")
        #expect(
            try step(.failure(ClientError(.cannotConnect, "")), .put, isRepeatable: false)
                == "fail cannotConnect")
        let challenge = response(401, [.wwwAuthenticate: "Basic"])
        #expect(try step(challenge, .put, isRepeatable: false) == "finish")
        // Whether the content is sent again is decided when the hook has chosen the next request.
        #expect(
            try step(response(307, [.location: "/x"]), .put, isRepeatable: false)
                == "redirect http://a.test/x")
    }

    @Test func `after a refused expectation is to do without it, once`() throws {
        #expect(try step(response(417), .put, expects: true) == "resend unasked")
        #expect(try step(response(417), .put) == "finish")
        let once = AttemptCounts(refusedExpectations: 1)
        #expect(try step(response(417), .put, counts: once, expects: true) == "finish")
        #expect(try step(response(417), .put, isRepeatable: false, expects: true) == "finish")
    }
}
