import Documents
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("A request's parameters")
struct RequestParametersTests {
    @Test func `are built member by member from variables`() {
        let (name, page, since): (String, UInt8, Double?) = ("Ada", 3, nil)
        var parameters = RequestParameters.null
        parameters["none"] = nil
        #expect(parameters == .null && parameters["name"] == nil)
        parameters["name"] = RequestParameters(name)
        parameters["page"] = RequestParameters(page)
        parameters["on"] = RequestParameters(true)
        parameters["ratio"] = RequestParameters(1.5)
        parameters["since"] = since.map { RequestParameters($0) }
        parameters["null"] = .some(.null)
        #expect(
            parameters == ["name": "Ada", "page": 3, "on": true, "ratio": 1.5, "null": nil])
        parameters["name"] = "Bob"
        parameters["page"] = nil
        #expect(parameters == ["name": "Bob", "on": true, "ratio": 1.5, "null": nil])
        #expect(RequestParameters("text")["name"] == nil)
        // Of members with the same key, the last one counts, and only one is left.
        var twice: RequestParameters = ["a": 1, "b": 2, "a": 3]
        #expect(twice["a"] == 3)
        twice["a"] = 4
        #expect(twice == ["a": 4, "b": 2])
        // Null is a value; nil removes the member.
        twice["a"] = .some(.null)
        #expect(twice == ["a": nil, "b": 2])
        #expect(twice["a"] == .some(.null))
    }

    @Test(
        arguments: [
            // Sorted keys, members, elements.
            (["b": 2, "a": 1], "a=1&b=2"),
            (["a": ["y": 1, "x": 2]], "a%5Bx%5D=2&a%5By%5D=1"),
            (["a": ["c", "b"]], "a%5B%5D=c&a%5B%5D=b"),
            (["a": .set(["c", "b"])], "a=b&a=c"),
            (["a": ["b": ["c": [1, 2]]]], "a%5Bb%5D%5Bc%5D%5B%5D=1&a%5Bb%5D%5Bc%5D%5B%5D=2"),
            (["key1": "somevalue", "key2": nil], "key1=somevalue&key2"),
            (["on": true, "off": false], "off=0&on=1"),
            (["a": []], ""),
            (["a": [:]], ""),
            ([:], ""),
            // Escapes.
            (["q": "a b+c&d=e%20"], "q=a%20b%2Bc%26d%3De%2520"),
            (["q": "/?-._~"], "q=/?-._~"),
            (["q": "!#$'()*,:;@[]"], "q=%21%23%24%27%28%29%2A%2C%3A%3B%40%5B%5D"),
            (["q": "ä"], "q=%C3%A4"),
            (["ä": "👴🏿👷🏻"], "%C3%A4=%F0%9F%91%B4%F0%9F%8F%BF%F0%9F%91%B7%F0%9F%8F%BB"),
            (["n": 1.5, "m": -3], "m=-3&n=1.5"),
        ] as [(RequestParameters, String)])
    func `the query of parameters`(parameters: RequestParameters, query: String) throws {
        #expect(try parameters.query() == query)
    }

    @Test(arguments: [["a", "b"], "a", .null, .set([])] as [RequestParameters])
    func `parameters that are no dictionary have no names, and no query`(
        parameters: RequestParameters
    ) {
        #expect(throws: DocumentError.self) { try parameters.query() }
        #expect(throws: DocumentError.self) { try parameters.pairs() }
    }

    @Test func `a composed character of many bytes is never split`() throws {
        let text = String(repeating: "👨‍👩‍👧‍👦", count: 100)
        let query = try (["q": .string(text)] as RequestParameters).query()
        let bytes = query.dropFirst(2).split(separator: "%").map { UInt8($0, radix: 16)! }
        #expect(String(decoding: bytes, as: UTF8.self) == text)
    }

    @Test func `elements may have their index in their names`() throws {
        let parameters: RequestParameters = [
            "f": [["a": 1, "s": .set(["y", "x"])], ["a": 2]], "g": ["x", "y"],
        ]
        let query = "f[0][a]=1&f[0][s]=x&f[0][s]=y&f[1][a]=2&g[0]=x&g[1]=y"
        let escaped = query.replacing("[", with: "%5B").replacing("]", with: "%5D")
        #expect(try parameters.query(arrays: .indices) == escaped)
        #expect(
            try parameters.pairs(arrays: .indices).map { "\($0.name)=\($0.text ?? "")" }
                .joined(separator: "&") == query)
        var serializer = HTTPRequestSerializer()
        serializer.arrayStyle = .indices
        let head = HTTPRequest(method: .get, scheme: "http", authority: "a.test", path: "/")
        let request = try serializer.serialize(head, parameters: parameters)
        #expect(request.head.path == "/?" + escaped)
    }

    @Test(
        arguments: [
            (["g": ["y", "x"], "h": 1], "g=y&g=x&h=1"), (["g": []], ""),
            (["g": [["a": 1], ["a": 2]]], "g[a]=1&g[a]=2"), (["g": [[1, 2], [3]]], "g=1&g=2&g=3"),
            (["g": ["h": ["y", "x"]]], "g[h]=y&g[h]=x"),
            (["g": [.set([2, 1]), .set([3])]], "g=2&g=1&g=3"), (["g": .set([2, 1])], "g=1&g=2"),
            (["g": [["s": .set([2, 1])]]], "g[s]=1&g[s]=2"),
        ] as [(RequestParameters, String)])
    func `elements may repeat the name of their array`(
        parameters: RequestParameters, query: String
    ) throws {
        let escaped = query.replacing("[", with: "%5B").replacing("]", with: "%5D")
        #expect(try parameters.query(arrays: .repeated) == escaped)
    }

    @Test func `sets are identified by their names, at any depth`() throws {
        let parameters: RequestParameters = [
            "a": [["n": .set(["y", "x"])]], "b": ["c": .set([2, 1])],
        ]
        let query = try parameters.query()
        #expect(query == "a%5B%5D%5Bn%5D=x&a%5B%5D%5Bn%5D=y&b%5Bc%5D=1&b%5Bc%5D=2")
    }
}
