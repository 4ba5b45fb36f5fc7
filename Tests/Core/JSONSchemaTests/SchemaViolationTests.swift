import JSONSchema
import Testing
import Transformation

/// The error of a text that does not satisfy a schema.
func failure(_ schema: String, _ json: String) throws -> TransformationError? {
    let schema = try JSONSchema(Array(schema.utf8))
    do throws(TransformationError) {
        try Array(json.utf8).withContent { content throws(TransformationError) in
            try schema.check(content)
        }
        return nil
    } catch { return error }
}

@Suite("What a schema did not find")
struct SchemaViolationTests {
    private static let nested = """
        {"properties":{"items":{"type":"array","items":{"properties":{"name":{"type":"string"}}}}}}
        """

    @Test(arguments: [
        (
            nested, #"{"items":[{"name":"a"},{},{"name":[1,"b"]}]}"#,
            "type string, at #/properties/items/items/properties/name", "$.items[2].name",
            #"[1,"b"]"#
        ),
        (#"{"type":["null","integer"]}"#, "1.5", "type null or integer, at #", "$", "1.5"),
        (#"{"enum":["a","b"]}"#, #""c""#, "one of 2 values (enum), at #", "$", #""c""#),
        (#"{"const":{"a":[1]}}"#, #"{"a":[2]}"#, "one value (const), at #", "$", #"{"a":[2]}"#),
        (#"{"minimum":3}"#, "2.9", "3 or more (minimum), at #", "$", "2.9"),
        (#"{"exclusiveMaximum":3}"#, "3", "less than 3, at #", "$", "3"),
        (#"{"multipleOf":0.1}"#, "0.25", "a multiple of 0.1, at #", "$", "0.25"),
        (#"{"minLength":3}"#, #""äö""#, "3 characters or more (minLength), at #", "$", #""äö""#),
        (
            #"{"pattern":"^a+$"}"#, #""ab""#, "a string that matches its pattern, at #", "$",
            #""ab""#
        ),
        (#"{"format":"date"}"#, #""2026-02-30""#, "format date, at #", "$", #""2026-02-30""#),
        (
            #"{"items":[{}],"additionalItems":false}"#, "[1,2]",
            "no value at all, at #/additionalItems",
            "$[1]", "2"
        ),
        (#"{"maxItems":1}"#, "[1,[]]", "1 elements or fewer (maxItems), at #", "$", "[1,[]]"),
        (
            #"{"contains":{"const":1}}"#, "[2,{}]",
            "an element that satisfies a schema (contains), at #", "$", "[2,{}]"
        ),
        (
            #"{"uniqueItems":true}"#, #"[{"a":1,"b":2},{"b":2,"a":1.0}]"#,
            "elements that are all different (uniqueItems), at #", "$",
            #"[{"a":1,"b":2},{"b":2,"a":1.0}]"#
        ),
        (
            #"{"required":["b"]}"#, #"{"a":null}"#, #"the member "b" (required), at #"#, "$",
            #"{"a":null}"#
        ),
        (
            #"{"dependencies":{"a":["b"]}}"#, #"{"a":1}"#, #"the member "b" (required), at #"#, "$",
            #"{"a":1}"#
        ),
        (
            #"{"dependencies":{"a":{"maxProperties":1}}}"#, #"{"a":1,"b":2}"#,
            "1 members or fewer (maxProperties), at #/dependencies/a", "$", #"{"a":1,"b":2}"#
        ),
        (
            #"{"propertyNames":{"maxLength":2}}"#, #"{"abc":1}"#,
            "names that satisfy a schema (propertyNames), at #", "$", #"{"abc":1}"#
        ),
        (
            #"{"patternProperties":{"^x":{"type":"null"}}}"#, #"{"xy":1}"#,
            "type null, at #/patternProperties/^x", "$.xy", "1"
        ),
        (
            #"{"additionalProperties":false,"properties":{"a":true}}"#, #"{"a":1,"b\n":2}"#,
            "no value at all, at #/additionalProperties", "$.b\u{FFFD}", "2"
        ),
        (
            #"{"anyOf":[{"type":"null"},{"minimum":2}]}"#, "1",
            "one or more of 2 schemas (anyOf), at #",
            "$", "1"
        ),
        (
            #"{"oneOf":[{"type":"number"},{"minimum":2}]}"#, "3",
            "exactly one of 2 schemas (oneOf), at #", "$", "3"
        ),
        (#"{"not":{}}"#, "true", "a value that does not satisfy a schema (not), at #", "$", "true"),
        (
            #"{"if":{"minimum":2},"then":{"multipleOf":2},"else":false}"#, "3",
            "a multiple of 2, at #/then", "$", "3"
        ),
        (
            ##"{"allOf":[true,{"$ref":"#/defs/a~1b"}],"defs":{"a/b":{"type":"null"}}}"##,
            "[[]]", "type null, at #/defs/a~1b", "$", "[[]]"
        ),
    ])
    func `is reported with what was required, the path and the value`(
        schema: String, json: String, asked: String, path: String, excerpt: String
    ) throws {
        let failure = try #require(try failure(schema, json))
        #expect(failure.reason == .responseSchemaViolated)
        #expect(failure.detail == "the schema requires \(asked)")
        #expect(failure.location == "at \(path)")
        #expect(String(decoding: failure.excerpt, as: UTF8.self) == excerpt)
    }

    @Test func `shows at most 200 bytes of the content, in whole characters`() throws {
        let name = String(repeating: "ñ", count: 300)
        let value = String(repeating: "日", count: 300)
        for json in [
            #"{"\#(name)":["\#(value)"]}"#, #"{"\#(name)":{"\#(name)":"\#(value)"}}"#,
            #"{"a":"\#(value)"}"#, #"{"a":"\#(String(repeating: #"\""#, count: 300))"}"#,
            #"{"a":[\#(Array(repeating: "[1]", count: 300).joined(separator: ","))]}"#,
        ] {
            let failure = try #require(try failure(#"{"additionalProperties":false}"#, json))
            let place = try #require(failure.location)
            #expect(failure.excerpt.count + place.utf8.count - 3 <= 200)
            #expect(failure.excerpt.count > 100)
            #expect(String(validating: failure.excerpt, as: UTF8.self) != nil)
        }
    }

    @Test func `content that is no JSON is invalid`() throws {
        #expect(try failure("true", "[1")?.reason == .responseBodyInvalid)
        let deep = String(repeating: "[", count: 129) + String(repeating: "]", count: 129)
        #expect(try failure("true", deep)?.reason == .responseBodyInvalid)
    }

    @Test(arguments: [
        // Characters after the first NUL matter, in values and in names.
        (#"{"maxLength":2}"#, #""\u0000ab""#, false),
        (#"{"maxLength":3}"#, #""\u0000ab""#, true),
        (#"{"properties":{"a\u0000b":{"type":"null"}}}"#, #"{"a\u0000c":1,"a":1}"#, true),
        (#"{"properties":{"a\u0000b":{"type":"null"}}}"#, #"{"a\u0000b":1}"#, false),
        (#"{"pattern":"b$"}"#, #""a\u0000b""#, true),
        // Canonically equivalent texts are different.
        (#"{"const":"é"}"#, #""e\u0301""#, false),
        (#"{"enum":["é"]}"#, #""\u00e9""#, true),
        // Numbers are compared exactly.
        ("{\"maximum\":9007199254740993}", "9007199254740994", false),
        ("{\"maximum\":9007199254740993}", "9007199254740993", true),
        ("{\"maximum\":9007199254740993}", "9007199254740993.1", false),
        ("{\"maximum\":1e400}", "1e399", true),
        ("{\"maximum\":1e400}", "1.1e400", false),
        ("{\"minimum\":-1e-400}", "-1e-401", true),
        ("{\"minimum\":-0.0}", "0", true),
        ("{\"const\":100}", "1e2", true),
        ("{\"const\":0.1}", "0.10000000000000001", false),
        ("{\"multipleOf\":0.01}", "19.99", true),
        ("{\"multipleOf\":1e-8}", "12391239123", true),
        ("{\"multipleOf\":3}", "1e1000000000000", false),
        ("{\"multipleOf\":4}", "1e1000000000000", true),
        ("{\"multipleOf\":7}", "123456789012345678901234567891", false),
        ("{\"multipleOf\":7}", "0", true),
        ("{\"uniqueItems\":true}", "[1,1.0]", false),
        ("{\"uniqueItems\":true}", "[[],{},0,false,null,\"\"]", true),
        ("{\"type\":\"integer\"}", "1.0", true),
        (
            "{\"$schema\":\"http://json-schema.org/draft-04/schema\",\"type\":\"integer\"}", "1.0",
            false
        ),
        // A reference to a location by its identifier, and one relative to another.
        (
            """
            {"$id":"http://x/a/b","properties":{"p":{"$ref":"c"},"q":{"$ref":"c#d"}},
            "definitions":{"c":{"$id":"c","type":"null","allOf":[true],
            "definitions":{"d":{"$id":"#d","const":1}}}}}
            """, #"{"p":null,"q":1}"#, true
        ),
        (
            """
            {"$id":"http://x/a/b","properties":{"p":{"$ref":"../a/./c"}},
            "definitions":{"c":{"$id":"c","type":"null"}}}
            """, #"{"p":1}"#, false
        ),
        // Anything beside $ref is ignored.
        (
            ##"{"properties":{"a":{"$ref":"#/defs/b","type":"null"}},"defs":{"b":{}}}"##,
            #"{"a":1}"#, true
        ),
        // A name that needs both kinds of escaping.
        (
            ##"{"properties":{"p":{"$ref":"#/defs/a~1b%25~0c"}},"defs":{"a/b%~c":{"const":1}}}"##,
            #"{"p":2}"#, false
        ),
        // A schema that refers to itself, within values.
        (
            ##"{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}"##,
            #"{"next":{"next":{"other":1}}}"#, false
        ),
    ])
    func `is absent exactly for valid content`(
        schema: String, json: String, isValid: Bool
    ) throws {
        #expect((try failure(schema, json) == nil) == isValid)
    }
}
