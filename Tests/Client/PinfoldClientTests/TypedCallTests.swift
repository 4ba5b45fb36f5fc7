import FoundationEssentials
import HTTPTypes
import Testing

@testable import PinfoldClient

private struct Item: Codable, Sendable, Equatable {
    var firstName: String
}

private struct FormError: Error {}

@Suite("A call with the caller's own types")
struct TypedCallTests {
    /// A service, and a manager that reads JSON.
    private func withService(
        _ answer: @escaping TestServer.Answer,
        _ body: (HTTPSessionManager<JSONResponseSerializer>, TestServer) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            let api = try HTTPSessionManager(
                baseURL: server.url, configuration: .patient, runtime: runtime,
                responses: JSONResponseSerializer())
            try await body(api, server)
        }
    }

    private static func answer(
        _ status: String, _ type: String?, _ content: String
    ) -> TestServer.Answer {
        { connection, _ in
            connection.respond(status, type.map { ["Content-Type: \($0)"] } ?? [], content)
            return true
        }
    }

    @Test func `accepts what the manager's serializer accepts`() async throws {
        let answer = Self.answer("418 No", "text/x-own", #"{"firstName":"Ada"}"#)
        try await withService(answer) { api, _ in
            let error = await #expect(throws: ClientError.self) {
                try await api.get("x", as: Item.self)
            }
            #expect(error?.reason == .serialization)
            var lenient = api
            lenient.responses.acceptance.statusCodes = [200...299, 418...418]
            lenient.responses.acceptance.contentTypes = ["text/x-own"]
            let got = try await lenient.get("x", as: Item.self)
            #expect(got == Item(firstName: "Ada"))
            let sent = try await lenient.send(.put, "x", json: [1], as: Item.self)
            #expect(sent.firstName == "Ada")
            lenient.responses.limits.bytes = 3
            await #expect(throws: ClientError.self) { try await lenient.get("x", as: Item.self) }
            // The types of another format are not those of JSON, but its statuses apply.
            var plain = api.reading(HTTPResponseSerializer())
            plain.responses.acceptance.statusCodes = nil
            await #expect(throws: ClientError.self) { try await plain.get("x", as: Item.self) }
        }
    }

    @Test func `uses the manager's coders`() async throws {
        let answer = Self.answer("200 OK", "application/hal+json", #"{"first_name":"Ada"}"#)
        try await withService(answer) { api, server in
            await #expect(throws: ClientError.self) { try await api.get("x", as: Item.self) }
            var snake = api
            snake.decoder = {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                return decoder
            }
            snake.encoder = {
                let encoder = JSONEncoder()
                encoder.keyEncodingStrategy = .convertToSnakeCase
                return encoder
            }
            let item = Item(firstName: "Ada")
            let sent = try await snake.send(.post, "x", json: item, as: Item.self)
            #expect(sent == item)
            #expect(server.requests.last?.text == #"{"first_name":"Ada"}"#)
        }
    }

    @Test(arguments: ["204 No Content", "200 OK"])
    func `returns nil for no content if the type is optional`(status: String) async throws {
        let answer: TestServer.Answer = { connection, _ in
            guard status.hasPrefix("204") else {
                connection.respond(status, ["Content-Type: application/json"])
                return true
            }
            connection.send("HTTP/1.1 204 No Content\r\n\r\n")
            return true
        }
        try await withService(answer) { api, _ in
            let got = try await api.get("x", as: Item?.self)
            #expect(got == nil)
            let sent = try await api.send(.put, "x", json: [1], as: [Item]?.self)
            #expect(sent == nil)
            await #expect(throws: ClientError.self) { try await api.get("x", as: Item.self) }
        }
    }

    @Test func `accepts parameters in variables of any type`() async throws {
        let answer = Self.answer("200 OK", "application/json", "{}")
        try await withService(answer) { api, server in
            let (name, page, tags) = ("A b", 2, ["x", "y"])
            let fields = ["b": "2", "a": "1"]
            let none: [String: String]? = nil
            _ = try await api.get("1", parameters: ["name": name])
            _ = try await api.get("2", parameters: ["page": page, "name": name, "tags": tags])
            _ = try await api.get("3", parameters: ["name": "\(name)!", "page": 1, "on": true])
            _ = try await api.get("4", parameters: fields)
            _ = try await api.get("5", parameters: Item(firstName: "Ada"))
            _ = try await api.get("6", parameters: none)
            _ = try await api.get("7", parameters: ["a": 1, "b": "x", "c": [1, "y"], "d": nil])
            #expect(
                server.requests.map(\.path) == [
                    "/1?name=A%20b", "/2?name=A%20b&page=2&tags%5B%5D=x&tags%5B%5D=y",
                    "/3?name=A%20b%21&on=1&page=1", "/4?a=1&b=2", "/5?firstName=Ada", "/6",
                    "/7?a=1&b=x&c%5B%5D=1&c%5B%5D=y&d",
                ])
            var json = api
            json.requests = JSONRequestSerializer()
            _ = try await json.post("8", parameters: ["name": name, "page": page])
            #expect(server.requests.last?.text == #"{"name":"A b","page":2}"#)
            let error = await #expect(throws: ClientError.self) {
                try await api.get("9", parameters: ["n": [Double.nan], "name": name])
            }
            #expect(error?.reason == .serialization && error?.url == server.url + "/9")
            #expect(error?.explanation.hasSuffix("(n[0])") == true)
            #expect(server.requests.count == 8)
        }
    }

    @Test func `accepts nested parameters, and those built at run time`() async throws {
        let answer = Self.answer("200 OK", "application/json", #"{"firstName":"Ada"}"#)
        try await withService(answer) { api, server in
            var json = api
            json.requests = JSONRequestSerializer()
            let (name, page) = ("A b", 2)
            _ = try await json.post(
                "1", parameters: ["user": RequestParameters(["n": name, "p": page]), "d": name])
            var members: [String: any Encodable & Sendable] = ["name": name]
            members["page"] = page
            _ = try await json.post("2", parameters: members)
            let document = (["a": [1, nil]] as RequestParameters).document
            _ = try await json.post("3", parameters: document)
            var texts = [
                #"{"d":"A b","user":{"n":"A b","p":2}}"#, #"{"name":"A b","page":2}"#,
                #"{"a":[1,null]}"#,
            ]
            #expect(server.requests.map(\.text) == texts)
            let item = Item(firstName: "Ada")
            #expect(try await json.post("4", parameters: members, as: Item.self) == item)
            #expect(try await json.put("5", parameters: item, as: Item.self) == item)
            #expect(try await json.patch("6", parameters: ["a": 1], as: Item.self) == item)
            #expect(try await json.delete("7", parameters: ["p": page], as: Item.self) == item)
            texts += [#"{"name":"A b","page":2}"#, #"{"firstName":"Ada"}"#, #"{"a":1}"#, ""]
            #expect(server.requests.map(\.text) == texts)
            #expect(
                server.requests.suffix(4).map(\.startLine) == [
                    "POST /4 HTTP/1.1", "PUT /5 HTTP/1.1", "PATCH /6 HTTP/1.1",
                    "DELETE /7?p=2 HTTP/1.1",
                ])
        }
    }

    @Test func `accepts a form's parts from a closure that throws any error`() async throws {
        let answer = Self.answer("200 OK", "application/json", "{}")
        try await withService(answer) { api, server in
            let missing = await #expect(throws: ClientError.self) {
                try await api.post(multipart: "x") { form in
                    try form.append(file: "/nothing/here", name: "f")
                }
            }
            guard case .part(.file)? = missing?.underlying as? RequestSerializationError else {
                Issue.record("\(String(describing: missing))")
                return
            }
            let failed = await #expect(throws: ClientError.self) {
                try await api.post(multipart: "x") { _ in throw FormError() }
            }
            guard case .build(let error)? = failed?.underlying as? RequestSerializationError else {
                Issue.record("\(String(describing: failed))")
                return
            }
            #expect(error is FormError && server.requests.isEmpty)
        }
    }
}
