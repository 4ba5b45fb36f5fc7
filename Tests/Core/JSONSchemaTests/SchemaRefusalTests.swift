import JSONSchema
import Testing

@Suite("A schema")
struct SchemaRefusalTests {
    private static let known = "supported are draft-04, draft-06 and draft-07"

    @Test(arguments: [
        ("{", "it cannot be parsed: the text ends within an object", "line 1"),
        (#"{"a":1,"a":2}"#, "it cannot be parsed: duplicate name \"a\"", "line 1"),
        ("[]", "a schema must be an object or a boolean, not an array", "#"),
        (
            #"{"$schema":"http://json-schema.org/draft-04/schema#","not":true}"#,
            "a schema must be an object, not a Boolean", "#/not"
        ),
        (##"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"##, known, "#/$schema"),
        (##"{"$schema":"http://json-schema.org/draft-03/schema#"}"##, known, "#/$schema"),
        (##"{"$schema":1}"##, "$schema must be a string", "#/$schema"),
        (#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#, "nothing is fetched", "#"),
        (##"{"items":{"$ref":"other.json"}}"##, "nothing is fetched", "#/items"),
        (##"{"$ref":"#/definitions/a"}"##, "which does not exist", "#"),
        (##"{"$ref":"#a"}"##, "which does not exist", "#"),
        (##"{"$ref":"#/%+1","\u0001":{}}"##, "which does not exist", "#"),
        (##"{"$ref":"#/%-0","\u0000":{}}"##, "which does not exist", "#"),
        (##"{"$ref":1}"##, "$ref must be a string", "#/$ref"),
        (##"{"$ref":"#"}"##, "leads back", "#"),
        (##"{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}"##, "leads back", "#/a"),
        (##"{"allOf":[{"not":{"$ref":"#"}}]}"##, "leads back", "#"),
        (##"{"dependencies":{"a":{"$ref":"#"}}}"##, "leads back", "#"),
        (#"{"unevaluatedProperties":false}"#, "the keyword unevaluatedProperties is in none", "#"),
        (##"{"items":{"prefixItems":[]}}"##, "the keyword prefixItems is in none", "#/items"),
        (
            #"{"$schema":"http://json-schema.org/draft-04/schema#","const":1}"#,
            "the keyword const was introduced in draft-06; this schema uses draft-04", "#"
        ),
        (
            #"{"$schema":"http://json-schema.org/draft-06/schema#","if":{}}"#,
            "the keyword if was introduced in draft-07", "#"
        ),
        (##"{"type":"any"}"##, "type must be of null, boolean", "#/type"),
        (##"{"type":[]}"##, "type must be a type or an array of types", "#/type"),
        (##"{"enum":[]}"##, "enum must be a nonempty array", "#/enum"),
        (##"{"minimum":"1"}"##, "minimum must be a number", "#/minimum"),
        (
            ##"{"exclusiveMinimum":true}"##, "exclusiveMinimum must be a number",
            "#/exclusiveMinimum"
        ),
        (##"{"multipleOf":0}"##, "multipleOf must be a number above 0", "#/multipleOf"),
        (##"{"multipleOf":1234567890123456789}"##, "up to 18 digits", "#/multipleOf"),
        (##"{"minLength":-1}"##, "minLength must be a nonnegative integer", "#/minLength"),
        (##"{"maxItems":1.5}"##, "maxItems must be a nonnegative integer", "#/maxItems"),
        (##"{"uniqueItems":1}"##, "uniqueItems must be true or false", "#/uniqueItems"),
        (##"{"required":true}"##, "required must be an array of strings", "#/required"),
        (##"{"required":[1]}"##, "required must be an array of strings", "#/required"),
        (##"{"properties":[]}"##, "properties must be an object", "#/properties"),
        (##"{"anyOf":[]}"##, "anyOf must be a nonempty array of schemas", "#/anyOf"),
        (##"{"anyOf":{}}"##, "anyOf must be a nonempty array of schemas", "#/anyOf"),
        (##"{"properties":{"a":1}}"##, "a schema must be", "#/properties/a"),
        (##"{"dependencies":{"a":1}}"##, "a schema must be", "#/dependencies/a"),
        (##"{"pattern":1}"##, "pattern must be a string", "#/pattern"),
        (##"{"pattern":"(?=a)"}"##, "lookahead takes more than linear time", "#/pattern"),
        (##"{"pattern":"(?<!a)b"}"##, "lookbehind takes more than linear time", "#/pattern"),
        (##"{"pattern":"(a)\\1"}"##, "a backreference takes more than linear time", "#/pattern"),
        (##"{"pattern":"(?i)a"}"##, "ECMA 262 has no group of this kind", "#/pattern"),
        (##"{"pattern":"\\Aa"}"##, ##"\A is not an ECMA 262 escape"##, "#/pattern"),
        (##"{"pattern":"a**"}"##, "RE2 says: bad repetition operator", "#/pattern"),
        (##"{"pattern":"(a{1000}){1000}"}"##, "RE2 says", "#/pattern"),
        (
            #"{"pattern":"a{900}b{900}"}"#, "more than 1000 steps",
            "#/pattern"
        ),
        (##"{"pattern":"[a"}"##, "an unterminated character class", "#/pattern"),
        (##"{"pattern":"\\x4１"}"##, "an escape without its 2 hex digits", "#/pattern"),
        (##"{"patternProperties":{"[]":{}}}"##, "an empty character class", "#/patternProperties"),
    ])
    func `is refused with a reason and a place`(
        text: String, reason: String, place: String
    ) throws {
        let error = try #require(throws: JSONSchemaError.self) {
            try JSONSchema(Array(text.utf8))
        }
        #expect(error.reason.contains(reason), "\(error)")
        #expect(error.location?.hasPrefix(place) == true, "\(error)")
    }

    @Test func `may apply 32 schemas to one value through one another, and no more`() throws {
        let chain = { (count: Int) in
            let steps = (1..<count).map { ##""\##($0)":{"$ref":"#/\##($0 + 1)"}"## }
            return Array("{\(steps.joined(separator: ",")),\"\(count)\":{},\"$ref\":\"#/1\"}".utf8)
        }
        _ = try JSONSchema(chain(31))
        let error = #expect(throws: JSONSchemaError.self) { try JSONSchema(chain(32)) }
        #expect(error?.reason.hasPrefix("more than 32 schemas") == true)
        #expect(throws: JSONSchemaError.self) { try JSONSchema(chain(10_000)) }
    }

    @Test(arguments: [
        #"^\\d{3}-\\w+$"#, #"^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$"#, #"\\u00e9|\\ud83d\\ude00"#,
        #"^(?:a|b)*?$"#, #"\\/\\-\\^\\$"#, #"^\\p{Lu}"#, #"[\\]\\[a-]"#, #"(?<year>\\d+)"#,
        #"\\cA\\x41\\0"#, #"[[:alpha:]]"#,
    ])
    func `has the regular expressions of ECMA 262`(pattern: String) throws {
        _ = try JSONSchema(Array(#"{"pattern":"\#(pattern)"}"#.utf8))
    }

    @Test(arguments: [
        (#"^\\s$"#, #"\u00a0"#, true), (#"^\\s$"#, #"\u2003"#, true),
        (#"^\\S$"#, #"\u2028"#, false),
        (#"^.$"#, #"\r"#, false), (#"^a.c$"#, "abc", true), (#"a$"#, #"a\n"#, false),
        (#"^[[:a]$"#, ":", true), (#"^\\cA$"#, #"\u0001"#, true), (#"^é$"#, "é", true),
        (#"^\\ud83d\\ude00$"#, #"\ud83d\ude00"#, true),
        (#"^(a+)+$"#, "aaaaaaaaaaaaaaaaaaaaaaab", false),
        (#"[\\b]"#, #"\b"#, true), (#"\\bx"#, "a x", true), (#"\\Bx"#, "ax", true),
    ])
    func `matches as ECMA 262 has it`(pattern: String, text: String, isMatch: Bool) throws {
        let failure = try failure(#"{"pattern":"\#(pattern)"}"#, #""\#(text)""#)
        #expect((failure == nil) == isMatch)
    }
}
