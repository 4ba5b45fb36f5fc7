import Documents
import HTTPTypes
import Serialization
import Testing

private struct User: Codable, Sendable, Equatable {
    var name: String
    var age: Int?
    var tags: [String] = []
}

private let json = HTTPResponse(
    status: .ok, headerFields: [.contentType: "application/json; charset=utf-8"])

@Suite("JSON as types of the caller's own")
struct CodableTests {
    private func decode(
        _ text: String, _ response: HTTPResponse? = json
    ) -> SerializedResponse<[User]> {
        DecodableResponseSerializer([User].self).serialize(response, content: Array(text.utf8))
    }

    @Test func `content is decoded into the type`() throws {
        let users = try decode(#"[{"name":"Ada","age":36,"tags":["x"]}]"#).get()
        #expect(users == [User(name: "Ada", age: 36, tags: ["x"])])
    }

    @Test(arguments: ["", " "])
    func `no content is nothing, and no error`(text: String) throws {
        #expect(try decode(text).get() == nil)
    }

    @Test(
        arguments: [
            (#"[{"age":1,"tags":[]}]"#, "[0]", "there is no \"name\""),
            (#"[{"name":1,"tags":[]}]"#, "[0].name", "expected String"),
            (#"[{"name":"a","tags":["b",null]}]"#, "[0].tags[1]", "expected String, found null"),
            (#"{}"#, "", "expected Array<Any>"),
        ] as [(String, String, String)])
    func `a value of another shape is an error that says where and what was expected`(
        text: String, path: String, problem: String
    ) throws {
        let error = try #require(decode(text).error)
        guard case .value(let mismatch) = error.reason else {
            Issue.record("\(error)")
            return
        }
        #expect(mismatch.expected == "Array<User>")
        #expect(mismatch.path == path)
        #expect(mismatch.problem == problem)
    }

    @Test(arguments: [#"[{"name":"a","name":"b","tags":[]}]"#, "[1", "[\"\u{1}\"]", "[NaN]"])
    func `what is no JSON by the strict rules is not decoded`(text: String) throws {
        let error = try #require(decode(text).error)
        guard case .content = error.reason else {
            Issue.record("\(error)")
            return
        }
    }

    @Test func `a status that is not accepted is an error beside the value`() throws {
        let response = HTTPResponse(
            status: .badRequest, headerFields: [.contentType: "application/json"])
        let result = decode(#"[{"name":"a","tags":[]}]"#, response)
        #expect(result.value == [User(name: "a")])
        #expect(result.error?.reason == .status(400))
    }

    @Test func `content of another type is not decoded`() {
        let response = HTTPResponse(
            status: .ok, headerFields: [.contentType: "text/html"])
        #expect(decode("[]", response).value == nil)
    }

    @Test func `a value is sent as JSON with its names sorted`() throws {
        let request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        let sent = try EncodableRequestSerializer().serialize(
            request, json: User(name: "a/b", age: 1))
        guard case .bytes(let bytes)? = sent.body else {
            Issue.record("no content")
            return
        }
        #expect(
            String(decoding: bytes, as: UTF8.self) == #"{"age":1,"name":"a/b","tags":[]}"#)
        #expect(sent.head.headerFields[.contentType] == "application/json")
    }

    @Test func `a type that the request says itself stays`() throws {
        var request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        request.headerFields[.contentType] = "application/vnd.user+json"
        let sent = try EncodableRequestSerializer().serialize(request, json: [1])
        #expect(sent.head.headerFields[.contentType] == "application/vnd.user+json")
    }

    @Test func `a value that JSON cannot say is an error`() {
        let request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        #expect(throws: RequestSerializationError.self) {
            try EncodableRequestSerializer().serialize(request, json: [Double.infinity])
        }
    }
}
