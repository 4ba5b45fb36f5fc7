import JSONSchema
import Testing
import Transformation

@Suite("The bounds of JSON Schema")
struct SchemaBoundsTests {
    /// Each schema applies the next one twice.
    private static let doubling: String = {
        let steps = (0..<15).map { level in
            let next = ##"{"$ref":"#/definitions/\##(level + 1)"}"##
            return #""\#(level)":{"allOf":[\#(next),\#(next)]}"#
        }
        return steps.joined(separator: ",") + #","15":{"type":"number"}"#
    }()

    @Test func `repeated work of schemas is bounded`() throws {
        let definitions = #""definitions":{\#(Self.doubling)}"#
        #expect(try failure(##"{"$ref":"#/definitions/0",\##(definitions)}"##, "1") == nil)
        let array = "[" + Array(repeating: "1", count: 1000).joined(separator: ",") + "]"
        let failure = try #require(
            try failure(##"{"items":{"$ref":"#/definitions/0"},\##(definitions)}"##, array))
        #expect(failure.reason == .responseSchemaViolated)
        #expect(failure.detail == "checking it against the schema takes too much work")
    }

    @Test func `work beyond the bound is a refusal, under not as well`() throws {
        let schemas = Array(repeating: #"{"const":1}"#, count: 3000).joined(separator: ",")
        let schema = #"{"items":{"not":{"anyOf":[\#(schemas)]}}}"#
        let array = "[" + Array(repeating: "2", count: 4000).joined(separator: ",") + "]"
        let failure = try #require(try failure(schema, array))
        #expect(failure.reason == .responseSchemaViolated)
        #expect(failure.detail == "checking it against the schema takes too much work")
    }

    @Test func `an expression on a long text is bounded`() throws {
        let text = String(repeating: "a", count: 1 << 20)
        #expect(try failure(#"{"pattern":"^(a|aa|aaa)+$"}"#, "\"\(text)\"") == nil)
        let large = String(repeating: "[ab]{0,30}", count: 10)
        let schemas = ["c", "d"].map { #"{"pattern":"\#(large)\#($0)"}"# }
        let failure = try #require(
            try failure(#"{"anyOf":[\#(schemas.joined(separator: ","))]}"#, "\"\(text)\""))
        #expect(failure.detail == "checking it against the schema takes too much work")
    }

    @Test func `dates of any length are looked at once`() throws {
        let digits = String(repeating: "1", count: 1 << 20)
        #expect(try failure(#"{"format":"date-time"}"#, "\"\(digits)\"") != nil)
        let fraction = "2026-11-23T00:00:00.\(digits)Z"
        #expect(try failure(#"{"format":"date-time"}"#, "\"\(fraction)\"") == nil)
    }

    @Test func `large arrays are found to be unique in time`() throws {
        let numbers = (0..<200_000).map { "\($0)" }.joined(separator: ",")
        #expect(try failure(#"{"uniqueItems":true}"#, "[\(numbers)]") == nil)
        #expect(try failure(#"{"uniqueItems":true}"#, "[\(numbers),77]") != nil)
    }

    @Test func `values as deep as they may be are held to schemas that refer to themselves`() throws
    {
        let schema = """
            {"allOf":[{"anyOf":[{"allOf":[{"$ref":"#/d"}]}]}],
            "d":{"items":{"$ref":"#"},"type":["array","null"]}}
            """
        let value = { (inner: String) in
            String(repeating: "[", count: 128) + inner + String(repeating: "]", count: 128)
        }
        #expect(try failure(schema, value("null")) == nil)
        let failure = try #require(try failure(schema, value("1")))
        #expect(failure.detail.hasPrefix("the schema requires"))
    }

    @Test func `schemas within values within schemas are bounded in their depth`() throws {
        let chain = (1..<30).map { ##""\##($0)":{"$ref":"#/\##($0 + 1)"}"## }.joined(separator: ",")
        let schema = ##"{"$ref":"#/1",\##(chain),"30":{"items":{"$ref":"#"}}}"##
        let deep = String(repeating: "[", count: 128) + String(repeating: "]", count: 128)
        let failure = try #require(try failure(schema, deep))
        #expect(failure.detail == "checking it against the schema takes too much work")
        #expect(try JSONSchemaTests.failure(schema, "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]") == nil)
    }

    @Test func `one schema serves several threads`() async throws {
        let schema = try JSONSchema(
            Array(#"{"items":{"pattern":"^[a-z]+$","maxLength":40},"uniqueItems":true}"#.utf8))
        let texts = (1...38).map { "\"\(String(repeating: "ab", count: $0 / 2))\($0 % 2)\"" }
        let valid = Array(
            "[\(texts.joined(separator: ","))]".replacing("0\"", with: "x\"")
                .replacing("1\"", with: "yy\"").utf8)
        let results = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<16 {
                group.addTask {
                    let bytes = number % 2 == 0 ? valid : Array(#"["a","B"]"#.utf8)
                    let outcome = Result { () throws(TransformationError) in
                        try bytes.withContent { content throws(TransformationError) in
                            try schema.check(content)
                        }
                    }
                    return ((try? outcome.get()) != nil) == (number % 2 == 0)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == Array(repeating: true, count: 16))
    }
}
