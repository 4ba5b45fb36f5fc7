import Documents
import HTTPTypes
import Testing

@testable import PinfoldClient

private struct ParametersError: Error {}

@Suite("Request serializers")
struct RequestSerializerTests {
    private func request(
        _ method: HTTPRequest.Method, path: String? = "/a", fields: HTTPFields = [:]
    ) -> HTTPRequest {
        HTTPRequest(
            method: method, scheme: "https", authority: "example.org", path: path,
            headerFields: fields)
    }

    private func content(_ request: SerializedRequest) -> String? {
        guard case .bytes(let bytes) = request.body else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(
        arguments: [.get, .head, .delete] as [HTTPRequest.Method],
        [
            ("/a", ["k": "v"], "/a?k=v"), ("/a?x=1", ["k": "v"], "/a?x=1&k=v"),
            ("/a?", ["k": "v"], "/a?k=v"), ("/a", [:], "/a"), ("/a?x=1", [:], "/a?x=1"),
            ("/a", nil, "/a"),
        ] as [(String, RequestParameters?, String)])
    func `parameters of GET, HEAD and DELETE are in the query`(
        method: HTTPRequest.Method, row: (path: String, parameters: RequestParameters?, to: String)
    ) throws {
        for serializer in [
            HTTPRequestSerializer(), JSONRequestSerializer(), PropertyListRequestSerializer(),
        ] as [any RequestSerializer] {
            let result = try serializer.serialize(
                request(method, path: row.path), parameters: row.parameters)
            #expect(result.head.path == row.to)
            #expect(result.body == nil)
            #expect(!result.head.headerFields.contains(.contentType))
        }
    }

    @Test(
        arguments: [.post, .put, .patch] as [HTTPRequest.Method],
        [(["k": "v w"], "k=v%20w"), ([:], ""), (nil, "")] as [(RequestParameters?, String)])
    func `parameters of other methods are a form, also when it is empty`(
        method: HTTPRequest.Method, row: (parameters: RequestParameters?, content: String)
    ) throws {
        let result = try HTTPRequestSerializer().serialize(
            request(method), parameters: row.parameters)
        #expect(result.head.path == "/a")
        #expect(content(result) == row.content)
        #expect(
            result.head.headerFields[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test func `a request without a path cannot be given a query`() {
        #expect {
            try HTTPRequestSerializer().serialize(
                request(.get, path: nil), parameters: ["k": "v"])
        } throws: { error in
            if case RequestSerializationError.noPath = error { true } else { false }
        }
    }

    @Test func `which methods have a query can be chosen`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.methodsWithQuery = [.post]
        #expect(
            try serializer.serialize(request(.post), parameters: ["k": 1]).head.path == "/a?k=1")
        #expect(content(try serializer.serialize(request(.get), parameters: ["k": 1])) == "k=1")
    }

    @Test func `a custom encoding makes the query, and may fail`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.queryEncoding = { request, parameters in
            guard parameters != .null else { throw ParametersError() }
            return "\(request.method)"
        }
        #expect(
            try serializer.serialize(request(.get), parameters: ["k": 1]).head.path == "/a?GET")
        #expect(content(try serializer.serialize(request(.put), parameters: ["k": 1])) == "PUT")
        #expect {
            try serializer.serialize(request(.get), parameters: .null)
        } throws: { error in
            guard case RequestSerializationError.query(let reason) = error else { return false }
            return reason is ParametersError
        }
    }

    @Test func `the request's own fields win over the defaults`() throws {
        var defaults = RequestDefaults(languages: ["de"], product: "App/1.0")
        defaults[HTTPField.Name("X-Default")!] = "1"
        let result = try HTTPRequestSerializer(defaults: defaults).serialize(
            request(.get, fields: [.userAgent: "Own/2.0"]), parameters: nil)
        #expect(result.head.headerFields[.userAgent] == "Own/2.0")
        #expect(result.head.headerFields[.acceptLanguage] == "de;q=1")
        #expect(result.head.headerFields[HTTPField.Name("X-Default")!] == "1")
    }

    @Test func `a content type set by the request is kept`() throws {
        let fields: HTTPFields = [.contentType: "application/vnd.api+json"]
        for serializer in [
            HTTPRequestSerializer(), JSONRequestSerializer(), PropertyListRequestSerializer(),
        ] as [any RequestSerializer] {
            let result = try serializer.serialize(
                request(.post, fields: fields), parameters: ["k": 1])
            #expect(result.head.headerFields[.contentType] == "application/vnd.api+json")
        }
    }

    @Test(
        arguments: [
            ([], nil), (["en"], "en;q=1"),
            (
                ["a", "b", "c", "d", "e", "f", "g", "h"],
                "a;q=1, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5"
            ),
        ] as [([String], String?)])
    func `Accept-Language counts down from 1 to 0.5`(languages: [String], value: String?) {
        #expect(RequestDefaults(languages: languages)[.acceptLanguage] == value)
    }

    @Test(
        arguments: [
            ("App/1.0 (Linux)", "App/1.0 (Linux)"), ("Äpp/1.0 日本 (x)", "pp/1.0 (x)"), ("日本", nil),
            ("a\r\nX-Evil: 1", "aX-Evil: 1"),
        ] as [(String, String?)])
    func `User-Agent is printable ASCII`(product: String, value: String?) {
        #expect(RequestDefaults(product: product)[.userAgent] == value)
    }

    @Test func `Authorization is set and cleared`() {
        var defaults = RequestDefaults()
        let isSet = defaults.setAuthorization(user: "user", password: "pass:wörd")
        #expect(isSet)
        #expect(defaults[.authorization] == "Basic dXNlcjpwYXNzOnfDtnJk")
        let isColonTaken = defaults.setAuthorization(user: "us:er", password: "x")
        #expect(!isColonTaken)
        #expect(defaults[.authorization] == "Basic dXNlcjpwYXNzOnfDtnJk")
        defaults.setAuthorization(bearer: "token")
        #expect(defaults[.authorization] == "Bearer token")
        defaults.clearAuthorization()
        #expect(defaults[.authorization] == nil)
    }

    @Test func `only properties that were set are applied`() throws {
        var serializer = HTTPRequestSerializer()
        #expect(
            try serializer.serialize(request(.get), parameters: nil).properties
                == RequestProperties())
        serializer.defaults.properties.timeout = .seconds(5)
        let properties = try serializer.serialize(request(.get), parameters: nil).properties
        #expect(properties.timeout == .seconds(5))
        #expect(properties.cachePolicy == nil)
    }

    @Test(
        arguments: [
            (["b": [1, nil], "a": "ä"], #"{"b":[1,null],"a":"ä"}"#), ([:], "{}"), (nil, nil),
            (["a": "\(1 + 1) x"], #"{"a":"2 x"}"#),
        ] as [(RequestParameters?, String?)])
    func `parameters as JSON`(parameters: RequestParameters?, text: String?) throws {
        let result = try JSONRequestSerializer().serialize(
            request(.post), parameters: parameters)
        #expect(content(result) == text)
        #expect(
            result.head.headerFields[.contentType] == (text == nil ? nil : "application/json"))
    }

    @Test(
        arguments: [
            (["a": [1, .data([1])]], "a[1]", "data"), (["a": ["b": .date(0)]], "a.b", "a date"),
            (["a": .set(["y"])], "a", "a set"), (.data([]), "", "data"),
            (["a": [["b": .init(Double.nan)]]], "a[0].b", "the number nan"),
            (["a": .set([.init(-Double.infinity)])], "a", "a set"),
        ] as [(RequestParameters, String, String)])
    func `a value that JSON cannot represent is an error with its path`(
        parameters: RequestParameters, path: String, kind: String
    ) throws {
        let error = try #require(throws: RequestSerializationError.self) {
            try JSONRequestSerializer().serialize(request(.post), parameters: parameters)
        }
        guard case .parameters(let reason) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(reason.reason == .unrepresentable(kind) && reason.path == path)
    }

    @Test(
        arguments: [.init(Double.nan), ["a": .set([.init(Double.infinity)])]] as [RequestParameters]
    )
    func `a number that is not finite is an error in every format`(
        parameters: RequestParameters
    ) throws {
        let serializers: [any RequestSerializer] = [
            HTTPRequestSerializer(), JSONRequestSerializer(), PropertyListRequestSerializer(),
        ]
        for serializer in serializers {
            #expect(throws: RequestSerializationError.self) {
                try serializer.serialize(request(.post), parameters: ["n": parameters])
            }
        }
    }

    @Test func `parameters beyond the limits are an error`() {
        var serializer = JSONRequestSerializer()
        serializer.limits.depth = 2
        #expect {
            try serializer.serialize(request(.post), parameters: ["a": ["b": ["c": 1]]])
        } throws: { error in
            guard case RequestSerializationError.parameters(let reason) = error
            else { return false }
            return reason.reason == .tooDeep(maximum: 2)
        }
    }

    @Test(arguments: PropertyListForm.allCases)
    func `parameters as a property list`(
        form: PropertyListForm
    ) throws {
        let parameters: RequestParameters = [
            "a": [1, "b", true], "d": .data([1, 2]), "t": .date(0),
        ]
        let result = try PropertyListRequestSerializer(form: form).serialize(
            request(.post), parameters: parameters)
        guard case .bytes(let bytes) = result.body else {
            Issue.record("no body")
            return
        }
        #expect(result.head.headerFields[.contentType] == "application/x-plist")
        #expect(try PropertyListReader.value(of: bytes) == parameters.document)
    }

    @Test func `a property list cannot represent null`() {
        #expect {
            try PropertyListRequestSerializer().serialize(request(.post), parameters: ["a": nil])
        } throws: { error in
            guard case RequestSerializationError.parameters(let reason) = error
            else { return false }
            return reason.reason == .unrepresentable("null")
        }
    }
}
