import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient

/// nginx speaks HTTP/2 and HTTP/1.1, and says which.
@Suite(
    "The version of HTTP with a server that speaks both", .enabled(if: TestProgram.python != nil))
struct HTTPVersionTests {
    /// Makes requests with their options in a session, one after the other.
    ///
    /// - Returns: What the server and the client say of each.
    private func versions(
        _ options: [HTTPVersionChoice?], session version: HTTPVersionChoice,
        speaksHTTP2: Bool = true, secure: Bool = true
    ) async throws -> [[String?]] {
        var versions: [[String?]] = []
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.field("x-protocol") ?? "none")
            return true
        } _: { server, runtime in
            let nginx = try Nginx(
                before: server.url, speaksHTTP2: speaksHTTP2, secure: secure)
            defer { nginx.close() }
            var configuration = SessionConfiguration.patient
            if secure { configuration.securityPolicy = try nginx.policy() }
            configuration.httpVersion = version
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            for choice in options {
                var options = RequestOptions()
                options.httpVersion = choice
                let response = try await session.data(
                    for: try HTTPRequest(.get, nginx.url), options: options)
                let transaction = try #require(response.metrics.transactions.first)
                versions.append([response.text, transaction.protocolName])
            }
        }
        return versions
    }

    private let old = ["HTTP/1.1", "http/1.1"]
    private let new = ["HTTP/2.0", "h2"]

    @Test func `is what the server selects`() async throws {
        #expect(try await versions([nil, .automatic], session: .automatic) == [new, new])
    }

    @Test func `is HTTP/1.1 for a session of nothing else`() async throws {
        let versions = try await versions([nil, .http1Only, .automatic], session: .http1Only)
        #expect(versions == [old, old, old])
    }

    @Test func `is HTTP/1.1 for a single request, whatever the others have`() async throws {
        let versions = try await versions(
            [.http1Only, nil, .http1Only, .automatic], session: .automatic)
        #expect(versions == [old, new, old, new])
    }

    @Test func `is HTTP/2 for a session of nothing else`() async throws {
        let versions = try await versions([nil, .http2Only, .automatic], session: .http2Only)
        #expect(versions == [new, new, new])
    }

    @Test func `is HTTP/2 in clear text from the first byte, if that is asked for`() async throws {
        let versions = try await versions([nil, nil], session: .http2Only, secure: false)
        #expect(versions == [new, new])
    }

    @Test(arguments: [true, false])
    func `is an error if HTTP/2 is asked for and not spoken`(secure: Bool) async {
        let error = await failure {
            _ = try await versions(
                [nil], session: .http2Only, speaksHTTP2: false, secure: secure)
        }
        #expect(error?.reason == (secure ? .secureConnectionFailed : .badResponse))
    }

    @Test(arguments: [
        (HTTPVersionChoice.http2Only, HTTPVersionChoice.automatic), (.http2Only, .http1Only),
        (.http1Only, .http2Only),
    ])
    func `is an error if a request contradicts its session`(
        request: HTTPVersionChoice, session: HTTPVersionChoice
    ) async {
        let error = await failure { _ = try await versions([request], session: session) }
        #expect(error?.reason == .invalidConfiguration)
        #expect("\(error, default: "")".contains("httpVersion .\(request)"))
    }
}
