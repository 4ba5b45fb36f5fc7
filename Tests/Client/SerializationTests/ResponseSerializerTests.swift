import Documents
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("Response serializers")
struct ResponseSerializerTests {
    private func response(_ status: Int, _ type: String?) -> HTTPResponse {
        HTTPResponse(
            status: .init(code: status), headerFields: type.map { [.contentType: $0] } ?? [:])
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: Array(100...599))
    func `a status from 200 to 299 is accepted`(status: Int) {
        let result = HTTPResponseSerializer().serialize(
            response(status, "text/plain"), content: [1])
        #expect((result.error == nil) == (200...299).contains(status))
        #expect(result.value == [1])
        if let error = result.error { #expect(error.reason == .status(status)) }
    }

    @Test(
        arguments: [
            ("application/json", "{}", true), ("Application/JSON; charset=utf-8", "{}", true),
            ("text/json", "{}", true), ("text/javascript ;x=1", "{}", true),
            ("application/json; utf-8", "{}", true), ("application/json charset=utf-8", "{}", true),
            ("application/json; charset: utf-8", "{}", true),
            ("application/json; charset=\"utf-8", "{}", true),
            ("application/json; utf-8, text/html", "{}", false),
            ("text/html", "{}", false),
            (nil, "{}", false), ("", "{}", false),
        ] as [(String?, String, Bool)])
    func `content of JSON types is read, and of others an error without a value`(
        type: String?, content: String, isRead: Bool
    ) {
        let result = JSONResponseSerializer().serialize(
            response(200, type), content: bytes(content))
        #expect(result.value == (isRead ? .dictionary([:]) : nil))
        #expect((result.error == nil) == isRead)
    }

    @Test func `the wrong type without content is no value and no error`() {
        let result = JSONResponseSerializer().serialize(response(200, "text/html"), content: [])
        #expect(result.value == nil)
        #expect(result.error == nil)
    }

    @Test(arguments: ["", " "])
    func `no content or a single space is no value and no error`(content: String) {
        for type in ["application/json", nil] where type != nil || content.isEmpty {
            let result = JSONResponseSerializer().serialize(
                response(204, type), content: bytes(content))
            #expect(result.value == nil)
            #expect(result.error == nil)
        }
    }

    @Test func `a status that is not accepted is an error beside the value`() {
        let result = JSONResponseSerializer().serialize(
            response(404, "application/json"), content: bytes(#"{"error":"none"}"#))
        #expect(result.value?["error"] == .string("none"))
        #expect(result.error?.reason == .status(404))
        #expect(throws: ResponseSerializationError.self) { try result.get() }
    }

    @Test(
        arguments: [
            ("application/problem+json", true), ("application/vnd.api+json; charset=utf-8", true),
            ("Model/GLTF+JSON", true), ("application/problem+xml", false),
            ("application/json+zip", false), ("application/jsonp", false),
        ])
    func `types with the suffix of JSON are JSON (RFC 6839)`(type: String, isJSON: Bool) throws {
        let content = bytes("{\"a\":1}")
        let value = JSONResponseSerializer().serialize(response(200, type), content: content).value
        #expect((value?["a"] == .number(1)) == isJSON)
        let decoded = DecodableResponseSerializer([String: Int].self)
            .serialize(response(200, type), content: content)
        #expect((decoded.value == ["a": 1]) == isJSON)
        // Not if the caller names the types.
        var strict = JSONResponseSerializer()
        strict.acceptance.contentTypes = ["application/json"]
        #expect(strict.serialize(response(200, type), content: content).value == nil)
    }

    @Test(arguments: ["application/atom+xml", "image/svg+xml"])
    func `types with the suffix of XML are XML (RFC 6839)`(type: String) throws {
        let tree = try XMLDocumentResponseSerializer()
            .serialize(response(200, type), content: bytes("<a/>")).get()
        #expect(tree?.root.name == "a")
    }

    @Test func `errors carry the response and its content, and underlying errors`() {
        let html = bytes("<html>")
        let page = response(500, "text/html")
        let error = JSONResponseSerializer().serialize(page, content: html).error
        let types = ["application/json", "text/json", "text/javascript", "+json"]
        #expect(
            error?.chain.map(\.reason) == [
                .status(500), .contentType("text/html", accepted: types),
            ])
        #expect(error?.response == page)
        #expect(error?.content == html)
        #expect(error?.underlying?.response == page)
        let broken = response(500, "application/json")
        let chain = JSONResponseSerializer().serialize(broken, content: html).error?.chain ?? []
        #expect(chain.count == 2)
        if case .content(let reason)? = chain.first?.reason {
            #expect(reason.format == .json)
        } else {
            Issue.record("the first error is not that of the content: \(chain)")
        }
        #expect(chain.last?.reason == .status(500))
        #expect(
            error?.description
                == "the status is 500; the content type is text/html, expected application/json, "
                + "text/json, text/javascript, +json")
    }

    @Test func `without a response nothing is checked`() {
        let result = JSONResponseSerializer().serialize(nil, content: bytes("[1]"))
        #expect(result.value == .array([.number(1)]))
        #expect(result.error == nil)
    }

    @Test(arguments: [
        (#"{"a":null,"b":{"c":null,"d":[null,{"e":null}]}}"#, #"{"b":{"d":[{}]}}"#),
        ("[null,1]", "[1]"), ("null", "null"), (#"{"a":[[null]]}"#, #"{"a":[[]]}"#),
    ])
    func `null is removed at any depth on request`(
        content: String, expected: String
    ) throws {
        let answer = response(200, "application/json")
        let kept = JSONResponseSerializer().serialize(answer, content: bytes(content))
        #expect(kept.value == (try JSONDocument.value(of: bytes(content))))
        let removed = JSONResponseSerializer(removesNulls: true)
            .serialize(answer, content: bytes(content))
        #expect(removed.value == (try JSONDocument.value(of: bytes(expected))))
    }

    @Test func `property lists are read, XML and binary`() throws {
        let value: DocumentValue = .dictionary(["a": .array([.number(1), .data([2])])])
        var xml = XMLPropertyListWriter()
        try value.replay(into: &xml)
        var binary = BinaryPropertyListWriter()
        try value.replay(into: &binary)
        for content in [try xml.finish(), try binary.finish()] {
            let result = PropertyListResponseSerializer().serialize(
                response(200, "application/x-plist"), content: content)
            #expect(result.value == value)
        }
        let wrong = PropertyListResponseSerializer().serialize(
            response(200, "application/json"), content: bytes("{}"))
        #expect(wrong.value == nil)
        #expect(wrong.error != nil)
    }

    @Test(arguments: ["application/xml", "text/xml"])
    func `XML is read as a document`(type: String) {
        let good = XMLDocumentResponseSerializer().serialize(
            response(200, type), content: bytes("<a><b/></a>"))
        #expect(good.value != nil)
        let bad = XMLDocumentResponseSerializer().serialize(
            response(200, type), content: bytes("<a><b></a>"))
        #expect(bad.value == nil)
        if case .content(let error)? = bad.error?.reason {
            #expect(error.format == .xml)
        } else {
            Issue.record("no error of the content")
        }
    }

    @Test(
        arguments: [
            ("application/xml; charset=iso-8859-1", [0xE9]),
            ("text/xml;Charset=\"UTF-8\"", [0xC3, 0xA9]),
            ("text/xml", [0xC3, 0xA9]),
        ] as [(String, [UInt8])])
    func `XML has the encoding named by the response`(type: String, letter: [UInt8]) throws {
        let content = bytes("<a>") + letter + bytes("</a>")
        let document = XMLDocumentResponseSerializer().serialize(
            response(200, type), content: content)
        #expect(document.value?.root.text == "é")
        let pending = XMLParserResponseSerializer().serialize(
            response(200, type), content: content)
        #expect(
            pending.value?.encoding?.lowercased()
                == type.split(separator: "=").dropFirst().first
                .map { $0.filter { $0 != "\"" }.lowercased() })
    }

    @Test func `a byte order mark takes precedence over the response's encoding`() {
        let content: [UInt8] = [0xEF, 0xBB, 0xBF] + bytes("<a>é</a>")
        let document = XMLDocumentResponseSerializer().serialize(
            response(200, "text/xml; charset=iso-8859-1"), content: content)
        #expect(document.value?.root.text == "é")
    }

    @Test func `XML for a parser is validated, but not parsed yet`() {
        let pending = XMLParserResponseSerializer().serialize(
            response(200, "text/xml"), content: bytes("<a><b></a>"))
        #expect(pending.value?.content == bytes("<a><b></a>"))
        #expect(pending.error == nil)
        let refused = XMLParserResponseSerializer().serialize(
            response(200, "text/html"), content: bytes("<a/>"))
        #expect(refused.value == nil)
        #expect(refused.error != nil)
    }

    @Test func `a compound serializer returns the first successful result`() throws {
        let compound = CompoundResponseSerializer([
            JSONResponseSerializer(), PropertyListResponseSerializer(),
        ])
        let json = compound.serialize(response(200, "text/json"), content: bytes("[1]"))
        #expect(json.value as? DocumentValue == .array([.number(1)]))
        #expect(json.error == nil)
        let plain = compound.serialize(response(200, "text/plain"), content: bytes("[1]"))
        #expect(plain.value as? [UInt8] == bytes("[1]"))
        #expect(plain.error == nil)
        let failed = compound.serialize(response(500, "text/json"), content: bytes("[1]"))
        #expect(failed.value as? DocumentValue == .array([.number(1)]))
        #expect(failed.error?.reason == .status(500))
    }
}
