import PinfoldConfiguration
import Testing

@testable import Gateway

private func hosts(_ response: String) -> String {
    "hosts: [{ match: [a.test], tunnel: refuse, response: \(response) }]"
}

private let key = "1: hosts[0].response"

@Suite("Contradictions between rules for responses")
struct ResponseContradictionTests {
    @Test(arguments: [
        Wrong(
            hosts("{ validate: json, body: { from: plist, to: json } }"),
            "\(key).validate: is json, but body translates from plist; "
                + "expected validate: plist, the format that the server sends"),
        Wrong(
            hosts("{ validate: image, body: { from: xml, to: json } }"),
            "\(key).validate: is image, but body translates from xml; "
                + "expected validate: xml, the format that the server sends"),
        Wrong(
            hosts("{ body: { from: plist, to: json, propertyList: binary } }"),
            "\(key).body.propertyList: applies to property lists only, but to is json; "
                + "expected to: plist"),
        Wrong(
            hosts("{ image: {}, body: { from: xml, to: json } }"),
            "\(key).image: applies to images, but body applies to other content; expected only "
                + "one of the two"),
        Wrong(
            hosts("{ image: {}, validate: xml }"),
            "\(key).image: applies to images, but validate is xml; expected validate: image"),
        Wrong(
            hosts(
                "{ image: { accept: [image/jpeg], convert: { image/webp: image/png, "
                    + "image/gif: image/jpeg } } }"),
            "\(key).image.convert.\"image/webp\": converts to image/png, which accept does not "
                + "list; expected one of the types in accept"),
        Wrong(
            hosts("{ image: { accept: [image/webp], scale: { width: 1, height: 1 } } }"),
            "\(key).image.scale: produces PNG or JPEG, but accept lists neither; "
                + "expected image/png or image/jpeg in accept"),
        Wrong(
            hosts("{ contentTypes: [text/html], validate: json }"),
            "\(key).contentTypes: refuses all content that validate applies to: no type in the "
                + "list is one of json; expected at least one type of json"),
    ])
    func `a contradiction is an error`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(arguments: [
        ("text/html", "validate: json"), ("application/xml", "validate: json"),
        ("image/png", "validate: json"), ("application/json", "validate: xml"),
        ("application/json", "validate: plist"), ("application/json", "validate: image"),
        ("audio/*", "validate: xml"), ("image/*", "validate: plist"),
        ("text/plain", "body: { from: json, to: plist }"),
        ("application/xml", "body: { from: json, to: plist }"),
        ("application/octet-stream", "body: { from: plist, to: json }"),
        ("application/json", "body: { from: xml, to: json }"),
        ("application/*", "image: {}"), ("application/octet-stream", "image: {}"),
    ])
    func `types that exclude the required format are an error`(type: String, rules: String) {
        let found = errors(of: hosts("{ contentTypes: [\(type)], \(rules) }"))
        #expect(found.count == 1)
        #expect(found.first?.contains(".contentTypes: refuses all content that ") == true)
    }

    @Test(arguments: [
        ("application/json", "validate: json"), ("text/*", "validate: json"),
        ("application/vnd.a+json", "validate: json"), ("text/plain", "validate: json"),
        ("application/octet-stream", "validate: plist"), ("application/xml", "validate: plist"),
        ("image/svg+xml", "validate: xml"), ("image/*", "validate: image"),
        ("application/*", "body: { from: plist, to: json }"),
        ("application/x-plist", "body: { from: plist, to: json }"),
        ("application/atom+xml", "body: { from: xml, to: json }"), ("image/webp", "image: {}"),
        ("text/html, application/json", "validate: json"),
    ])
    func `types that may have the format are not an error`(types: String, rules: String) {
        #expect(errors(of: hosts("{ contentTypes: [\(types)], \(rules) }")) == [])
    }

    @Test(arguments: [
        ("{ maximum: 1MiB, larger: pass }", ["maximum", "larger"], "validate, body or image"),
        ("{ validate: json, noTransform: refuse }", ["noTransform"], "body or image"),
    ])
    func `a key without effect causes a warning`(
        response: String, keys: [String], without: String
    ) throws {
        let expected = keys.map { "gateway.yaml:\(key).\($0): has no effect without \(without)" }
        #expect(try warnings(of: hosts(response)) == expected)
    }

    @Test func `the documented example is not a contradiction`() throws {
        try withTemporaryFolder { folder in
            try write("{\"type\": \"object\"}", to: "reply.schema.json", in: folder)
            let text = """
                hosts:
                  - match: [a.test]
                    tunnel: refuse
                    response:
                      statusCodes: ["200-299", "304"]
                      contentTypes: [application/json]
                      validate: json
                      schema: reply.schema.json
                      body: { from: json, to: plist, removesKeysWithNullValues: false, \
                maximum: 8MiB, larger: refuse }
                  - match: [b.test]
                    tunnel: refuse
                    response:
                      image: { accept: [image/png, image/jpeg], convert: \
                { image/webp: image/png }, maximumPixels: 16777216 }
                """
            #expect(try warnings(of: text, folder: folder + "/") == [])
            let snapshot = try load(text, folder: folder)
            #expect(
                snapshot.hosts.entries[0].response.schema
                    == SchemaFile(
                        path: folder + "/reply.schema.json",
                        text: Array("{\"type\": \"object\"}".utf8)))
            #expect(try load(snapshot.effectiveYAML(), folder: "/elsewhere") == snapshot)
        }
    }

    @Test(arguments: [
        "{", "", "[]", "3", "\"a\"", "null", "{\"type\": \"text\"}",
        "{\"$ref\": \"https://a.test/b\"}", "{\"pattern\": \"(a)\\\\1\"}",
        "{\"properties\": {\"a\\nb\": 3}}",
    ])
    func `a file that is not a schema is refused`(content: String) throws {
        try withTemporaryFolder { folder in
            try write(content, to: "schema.json", in: folder)
            let found = errors(
                of: hosts("{ validate: json, schema: schema.json }"), folder: folder)
            #expect(found.count == 1)
            #expect(
                found.first?.hasPrefix(
                    "gateway.yaml:\(key).schema: \"\(folder)/schema.json\" is not a JSON Schema: ")
                    == true)
            #expect(
                found.first?.hasSuffix("; expected a JSON Schema of draft-04, draft-06 or draft-07")
                    == true)
            #expect(found.first?.contains("\n") == false)
        }
    }

    @Test func `a schema requires validated JSON`() throws {
        try withTemporaryFolder { folder in
            try write("true", to: "schema.json", in: folder)
            for (rules, found) in [("", "not set"), ("validate: xml, ", "xml")] {
                #expect(
                    errors(of: hosts("{ \(rules)schema: schema.json }"), folder: folder) == [
                        "gateway.yaml:\(key).schema: applies to JSON only, but validate is "
                            + "\(found); expected validate: json"
                    ])
            }
            #expect(
                errors(of: hosts("{ validate: json, schema: other.json }"), folder: folder) == [
                    "gateway.yaml:\(key).schema: \"\(folder)/other.json\" cannot be read: No such "
                        + "file or directory; expected a readable file"
                ])
        }
    }
}
