import FoundationEssentials
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

private struct Search: Codable, Sendable, Equatable {
    var pageSize = 10
    var since = Date(timeIntervalSince1970: 1)
}

@Suite("A call with styles of its own")
struct ParameterStyleCallTests {
    private static let json = Array(#"{"page_size":1,"since":2}"#.utf8)

    /// A manager whose requests are answered with JSON, and what it sent.
    private func withService(
        _ body: (HTTPSessionManager<JSONResponseSerializer>, MockTransport, Locked<[String]>)
            async throws -> Void
    ) async throws {
        let sent = Locked<[String]>([])
        let mock = MockTransport { request in
            let text = String(decoding: try await request.content.collect(), as: UTF8.self)
            sent.withLock { $0.append(text) }
            return TransportResponse(
                fields: [.contentType: "application/json"], content: Self.json)
        }
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.transport = mock
        let api = try HTTPSessionManager(
            baseURL: "http://a.test/", configuration: configuration, runtime: runtime,
            responses: JSONResponseSerializer())
        try await body(api, mock, sent)
    }

    @Test func `writes parameters as the manager or the call says`() async throws {
        try await withService { api, mock, sent in
            var api = api
            _ = try await api.get("x", parameters: Search())
            api.parameterStyle = ParameterStyle(dates: .secondsSince1970)
            _ = try await api.get("x", parameters: Search())
            var options = RequestOptions()
            options.parameterStyle = ParameterStyle(
                dates: .millisecondsSince1970, keys: .snakeCase)
            _ = try await api.get("x", parameters: Search(), options: options)
            _ = try await api.get(
                "x", parameters: ["search": Search(), "all": true], options: options)
            #expect(
                mock.requests.map(\.path) == [
                    "/x?pageSize=10&since=1970-01-01T00%3A00%3A01Z", "/x?pageSize=10&since=1",
                    "/x?page_size=10&since=1000",
                    "/x?all=1&search%5Bpage_size%5D=10&search%5Bsince%5D=1000",
                ])
            // Copies with other serializers keep it.
            _ = try await api.reading(HTTPResponseSerializer()).post("x", parameters: Search())
            #expect(sent.withLock { $0.last } == "pageSize=10&since=1")
        }
    }

    @Test func `repeats the names of arrays if its serializer does`() async throws {
        try await withService { api, mock, _ in
            var api = api
            var requests = HTTPRequestSerializer()
            requests.arrayStyle = .repeated
            api.requests = requests
            _ = try await api.get("x", parameters: ["tags": ["b", "a"]])
            #expect(mock.requests.last?.path == "/x?tags=b&tags=a")
        }
    }

    @Test func `encodes and decodes JSON with the coders of the call`() async throws {
        try await withService { api, _, sent in
            let error = await failure { _ = try await api.get("x", as: Search.self) }
            #expect(error?.reason == .serialization)
            var options = RequestOptions()
            options.decoder = {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                decoder.dateDecodingStrategy = .secondsSince1970
                return decoder
            }
            options.encoder = {
                let encoder = JSONEncoder()
                encoder.outputFormatting = .sortedKeys
                encoder.keyEncodingStrategy = .convertToSnakeCase
                encoder.dateEncodingStrategy = .secondsSince1970
                return encoder
            }
            let got = try await api.get("x", options: options, as: Search.self)
            #expect(got == Search(pageSize: 1, since: Date(timeIntervalSince1970: 2)))
            _ = try await api.send(
                .post, "x", json: Search(), options: options, as: Search.self)
            #expect(sent.withLock { $0.last } == #"{"page_size":10,"since":1}"#)
        }
    }
}
