import Documents
import FoundationEssentials
import HTTPTypes
import Testing

@testable import PinfoldClient

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
    func `no content is no value and no error`(text: String) throws {
        #expect(try decode(text).get() == nil)
    }

    @Test(
        arguments: [
            (#"[{"age":1,"tags":[]}]"#, "[0]", "there is no \"name\""),
            (#"[{"name":1,"tags":[]}]"#, "[0].name", "expected String"),
            (#"[{"name":"a","tags":["b",null]}]"#, "[0].tags[1]", "expected String, found null"),
            (#"{}"#, "", "expected Array<Any>"),
        ] as [(String, String, String)])
    func `a value of another type is an error with its path and the expected type`(
        text: String, path: String, reason: String
    ) throws {
        let error = try #require(decode(text).error)
        guard case .value(let mismatch) = error.reason else {
            Issue.record("\(error)")
            return
        }
        #expect(mismatch.expected == "Array<User>")
        #expect(mismatch.path == path)
        #expect(mismatch.reason == reason)
    }

    @Test(arguments: [#"[{"name":"a","name":"b","tags":[]}]"#, "[1", "[\"\u{1}\"]", "[NaN]"])
    func `what is not strictly valid JSON is not decoded`(text: String) throws {
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

    @Test func `a content type set by the request is kept`() throws {
        var request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        request.headerFields[.contentType] = "application/vnd.user+json"
        let sent = try EncodableRequestSerializer().serialize(request, json: [1])
        #expect(sent.head.headerFields[.contentType] == "application/vnd.user+json")
    }

    @Test func `a value that JSON cannot represent is an error with its path`() throws {
        let request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        let error = try #require(throws: RequestSerializationError.self) {
            try EncodableRequestSerializer().serialize(request, json: ["a": [1, Double.infinity]])
        }
        #expect(error.description.hasSuffix("(a[1])"))
    }

    @Test func `a value is encoded as parameters`() throws {
        let user = User(name: "Ada", age: 36, tags: ["b", "a"])
        let parameters = try RequestParameters(encoding: user)
        #expect(parameters == ["age": 36, "name": "Ada", "tags": ["b", "a"]])
        #expect(try parameters.query() == "age=36&name=Ada&tags%5B%5D=b&tags%5B%5D=a")
        #expect(try RequestParameters(encoding: ["b": 2, "a": 1]) == ["a": 1, "b": 2])
        #expect(
            try RequestParameters(encoding: Date(timeIntervalSince1970: 0))
                == "1970-01-01T00:00:00Z")
        #expect(try RequestParameters(encoding: User?.none) == .null)
        let tenth = try #require(DocumentNumber("0.1"))
        #expect(try RequestParameters(encoding: 0.1) == .number(tenth))
    }

    @Test func `parameters within a value stay what they are`() throws {
        let numbers = ["1e-400", "-0.0", "-0", String(repeating: "7", count: 50), "1.50"]
        let inner: [String: RequestParameters] = [
            "s": .set(["b", "a"]), "data": .data([1]), "date": .date(0), "none": nil,
            "numbers": .array(numbers.compactMap { DocumentNumber($0).map { .number($0) } }),
        ]
        let parameters = try RequestParameters(encoding: inner)
        for (key, value) in inner { #expect(parameters[key] == value, "\(key)") }
        #expect(try RequestParameters(encoding: [["x": inner]]) == .array([["x": parameters]]))
        #expect(try RequestParameters(["s": [RequestParameters.set([1])]]) == ["s": [.set([1])]])
        #expect(
            try RequestParameters(encoding: ["s": RequestParameters.set(["b", "a"])]).query()
                == "s=a&s=b")
        #expect(throws: RequestSerializationError.self) {
            try JSONRequestSerializer().serialize(
                HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/"),
                parameters: RequestParameters(encoding: ["data": RequestParameters.data([1])]))
        }
        let document =
            ([
                "a": [1, "x", nil, true]
            ] as RequestParameters).document
        #expect(try RequestParameters(encoding: document) == RequestParameters(document))
        let null: [String: RequestParameters] = ["a": .null]
        #expect(try RequestParameters(encoding: null) == ["a": nil])
        #expect(try RequestParameters(["d": document]) == ["d": RequestParameters(document)])
    }

    @Test func `parameters in a text that a value writes itself are JSON there`() throws {
        struct Note: Encodable, Sendable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                let text = try JSONEncoder().encode(["a": RequestParameters.set([1])])
                try container.encode(String(decoding: text, as: UTF8.self))
            }
        }
        #expect(try RequestParameters(encoding: Note()) == #"{"a":[1]}"#)
    }

    @Test(arguments: ["0e9223372036854775807", "0e-9223372036854775808", "00.00e99"])
    func `zero is zero, whatever it is multiplied by`(text: String) {
        #expect(PlainNumber(text) == PlainNumber("0"))
    }

    @Test func `a number has the same digits however it is written`() {
        #expect(PlainNumber("10e9") == PlainNumber("1e10"))
        #expect(PlainNumber("01.50e-1") == PlainNumber("0.15"))
        #expect(PlainNumber("10e9223372036854775807") == nil)
        #expect(PlainNumber("0.1e-9223372036854775808") == nil)
        #expect(PlainNumber("1e9223372036854775808") == nil)
    }

    @Test(
        arguments: [
            "1e-400", "0.1234567890123456789012345678901234567890123", "1e999",
            "10e9223372036854775807", "1e9223372036854775807", "1e99999999999999999999",
        ])
    func `a number that the encoder would truncate is an error`(text: String) throws {
        let number = RequestParameters.number(try #require(DocumentNumber(text)))
        let request = HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/")
        let error = try #require(throws: RequestSerializationError.self) {
            try EncodableRequestSerializer().serialize(request, json: ["n": number])
        }
        #expect("\(error)".hasSuffix("(n)"))
    }

    @Test func `members of any type are parameters, sorted by name`() throws {
        let (name, page, tags) = ("Ada", 3, ["x"])
        let inner: RequestParameters = ["set": .set(["b", "a"]), "data": .data([1])]
        let parameters = try RequestParameters([
            "name": name, "page": page, "exact": true, "tags": tags, "none": String?.none,
            "inner": inner, "user": User(name: "B"),
        ])
        #expect(
            parameters == [
                "exact": true, "inner": inner, "name": "Ada", "none": nil, "page": 3, "tags": ["x"],
                "user": ["name": "B", "tags": []],
            ])
        let error = try #require(throws: RequestSerializationError.self) {
            try RequestParameters(["a": ["b": [1, Double.nan]]])
        }
        #expect(error.description.hasSuffix("(a.b[1])"))
    }

    @Test func `parameters are encoded as their values`() throws {
        let parameters: RequestParameters = [
            "a": [1, -2.5, nil, true, "x"], "s": .set([1]),
            "n": .number(DocumentNumber(UInt64.max)),
        ]
        let sent = try EncodableRequestSerializer().serialize(
            HTTPRequest(method: .put, scheme: "http", authority: "a", path: "/"), json: parameters)
        guard case .bytes(let bytes)? = sent.body else {
            Issue.record("no content")
            return
        }
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == #"{"a":[1,-2.5,null,true,"x"],"n":18446744073709551615,"s":[1]}"#)
    }
}
