import PinfoldConfiguration
import Testing

@testable import Transformation

/// The result of translating content.
func translated(
    _ content: String, _ from: BodyFormat, _ to: BodyFormat, type: String? = nil,
    maximum: Int = 1 << 20, arrays: FormArrays = .brackets
) throws(TransformationError) -> (type: String, text: String) {
    var rules = RequestRules()
    rules.body = RequestBodyRules(from: from, to: to)
    rules.body?.maximumBytes = maximum
    rules.body?.arrays = arrays
    guard let translation = RequestTranslation(rules) else { return ("", "no translation") }
    let made = try translation.translate(Array(content.utf8), contentType: type)
    return (made.contentType, String(decoding: made.bytes, as: UTF8.self))
}

/// A property list with this content.
func plist(_ content: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
    "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    \(content)
    </plist>

    """
}

private let xmlHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/// A part's lines, and what follows them, with the line endings of multipart content.
private func multipart(_ parts: [(header: String, content: String)]) -> String {
    parts.map { "--b\r\n\($0.header)\r\n\r\n\($0.content)\r\n" }.joined() + "--b--\r\n"
}

private func field(_ name: String) -> String {
    "Content-Disposition: form-data; name=\"\(name)\""
}

private let parts = multipart([(field("a"), "1 2"), (field("t[]"), "x"), (field("t[]"), "y")])
private let dictionary = """
    <dict>
    \t<key>a</key>
    \t<string>1 2</string>
    \t<key>t</key>
    \t<array>
    \t\t<string>x</string>
    \t\t<string>y</string>
    \t</array>
    </dict>
    """
private let json = #"{"a":"1 2","t":["x","y"]}"#
private let elements = "<root><a>1 2</a><t>x</t><t>y</t></root>"

/// One value in each format, as it is written and as it is read.
private let sources: [(BodyFormat, String, String?)] = [
    (.json, json, nil), (.form, "a=1+2&t[]=x&t[]=y", nil), (.plist, plist(dictionary), nil),
    (.multipart, parts, "multipart/form-data; boundary=b"),
]
private let targets: [(BodyFormat, String, String)] = [
    (.json, json, "application/json"),
    (.form, "a=1%202&t%5B%5D=x&t%5B%5D=y", "application/x-www-form-urlencoded"),
    (.plist, plist(dictionary), "application/x-plist"),
    (.xml, xmlHead + elements + "\n", "application/xml; charset=utf-8"),
]

@Suite("The content of requests")
struct RequestTranslationTests {
    @Test(arguments: sources, targets)
    func `is translated from every format into every other`(
        source: (format: BodyFormat, text: String, type: String?),
        target: (format: BodyFormat, text: String, type: String)
    ) throws {
        guard source.format != target.format else { return }
        let made = try translated(source.text, source.format, target.format, type: source.type)
        #expect(made.text == target.text)
        #expect(made.type == target.type)
    }

    @Test(
        arguments: [
            (.json, #"{"r":{"a":"1 2","@n":"é"}}"#), (.form, "r%5B%40n%5D=%C3%A9&r%5Ba%5D=1%202"),
            (
                .plist,
                plist(
                    """
                    <dict>
                    \t<key>r</key>
                    \t<dict>
                    \t\t<key>@n</key>
                    \t\t<string>é</string>
                    \t\t<key>a</key>
                    \t\t<string>1 2</string>
                    \t</dict>
                    </dict>
                    """)
            ),
        ] as [(BodyFormat, String)])
    func `is translated from XML into every other`(format: BodyFormat, text: String) throws {
        let xml = "<?xml version='1.0'?><r n='é'> <a>1 2</a></r>"
        let made = try translated(xml, .xml, format, type: "text/xml").text
        #expect(made.utf8.sorted() == text.utf8.sorted(), "\(made)")
    }

    @Test(
        arguments: [
            (.json, "application/json", true), (.json, "Application/JSON; charset=utf-8", true),
            (.json, "text/json", true), (.json, "text/javascript", true),
            (.json, "application/problem+json", true), (.json, "text/plain", false),
            (.json, "image/x+json", false), (.json, "", false), (.json, nil, false),
            (.xml, "application/xml", true), (.xml, "text/xml ; charset=x", true),
            (.xml, "application/soap+xml", true), (.xml, "application/x-plist", false),
            (.plist, "application/x-plist", true), (.plist, "text/xml", false),
            (.form, "application/x-www-form-urlencoded", true),
            (.form, "multipart/form-data", false),
            (.multipart, "multipart/form-data; boundary=x", true),
            (.multipart, "multipart/mixed; boundary=x", false),
        ] as [(BodyFormat, String?, Bool)])
    func `is recognized by its type`(format: BodyFormat, type: String?, applies: Bool) throws {
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: format, to: format == .json ? .form : .json)
        let translation = try #require(RequestTranslation(rules))
        #expect(try translation.applies(toContentType: type) == applies)
    }

    @Test(
        arguments: [
            ("application/json; utf-8", true), ("application/json; charset", true),
            ("application/json; charset=utf-8; boundary=a b", true), ("text/plain; utf-8", false),
            ("application/json;,text/html", nil), ("text/html, application/json", nil),
            ("application/json; a=\"b", nil), ("application/json charset=utf-8", nil),
            (";,application/json", nil), ("application/json; charset=a b", nil),
            ("text/html, text/plain", false), ("text/html; a=\"b", false),
        ] as [(String, Bool?)])
    func `is refused without a type if it could be read as the format`(
        type: String, applies: Bool?
    ) throws {
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: .json, to: .form)
        let translation = try #require(RequestTranslation(rules))
        if let applies {
            #expect(try translation.applies(toContentType: type) == applies)
        } else {
            let failure = #expect(throws: TransformationError.self) {
                try translation.applies(toContentType: type)
            }
            #expect(failure?.reason == .requestBodyInvalid)
            #expect(failure?.detail.contains("could be read as json") == true)
        }
    }

    @Test func `without rules for content and parameters there is nothing to do`() {
        #expect(RequestTranslation(RequestRules()) == nil)
    }

    @Test(
        arguments: [
            (.form, .json, "", "{}"), (.json, .form, "", ""), (.json, .form, " ", ""),
            (.json, .plist, "", ""), (.plist, .json, "", ""), (.json, .xml, " ", ""),
        ] as [(BodyFormat, BodyFormat, String, String)])
    func `that is empty stays empty, and a form without pairs is a dictionary`(
        from: BodyFormat, to: BodyFormat, content: String, result: String
    ) throws {
        #expect(try translated(content, from, to).text == result)
    }

    @Test(
        arguments: [
            ("utf-8", Array(#"{"a":"é"}"#.utf8), #"{"a":"é"}"#),
            ("US-ASCII", Array(#"{"a":"e"}"#.utf8), #"{"a":"e"}"#),
            ("\"ISO-8859-1\"", Array(#"{"a":""#.utf8) + [0xE9] + Array(#""}"#.utf8), #"{"a":"é"}"#),
        ])
    func `JSON's charset is undone`(charset: String, bytes: [UInt8], text: String) throws {
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: .json, to: .form)
        let translation = try #require(RequestTranslation(rules))
        let type = "application/json; charset=\(charset)"
        let made = try translation.translate(bytes, contentType: type)
        let expected = try translated(text, .json, .form).text
        #expect(String(decoding: made.bytes, as: UTF8.self) == expected)
    }

    @Test(
        arguments: [
            (
                .form, .json, "a=%E9&%c0=%FF%41+%7f", "application/x-www-form-urlencoded",
                #"{"a":"é","À":"ÿA "# + "\u{7F}\"}"
            ),
            (
                .xml, .json, "<?xml version='1.0' encoding='utf-8'?><a>é</a>", "text/xml",
                #"{"a":"Ã©"}"#
            ),
            (
                .plist, .json,
                "<?xml version='1.0' encoding='utf-8'?><plist><string>é</string></plist>",
                "application/x-plist", #""Ã©""#
            ),
        ] as [(BodyFormat, BodyFormat, String, String, String)])
    func `a charset of the head counts more than the document's`(
        from: BodyFormat, to: BodyFormat, content: String, type: String, text: String
    ) throws {
        let made = try translated(content, from, to, type: type + ";charset=iso-8859-1")
        #expect(made.text == text)
    }

    @Test(
        arguments: [
            (.json, "koi8-r"), (.form, "koi8-r"), (.plist, "koi8-r"), (.xml, "koi8-r"),
            (.json, "utf-16"), (.form, "utf-16"), (.json, "utf-16le"), (.form, "utf-16be"),
        ] as [(BodyFormat, String)])
    func `another charset is refused`(format: BodyFormat, charset: String) {
        let failure = #expect(throws: TransformationError.self) {
            try translated(
                "x", format, format == .json ? .form : .json, type: "a/b; charset=\(charset)")
        }
        #expect(failure?.reason == .requestBodyInvalid)
        #expect(failure?.detail == "its encoding is not supported")
    }

    /// A byte order mark, or the charset, determines the byte order.
    @Test(
        arguments: [
            ("utf-16", true, true), ("utf-16", true, false), (nil, true, true), (nil, true, false),
            ("utf-16be", false, true), ("UTF-16LE", false, false), ("utf-16le", true, false),
        ] as [(String?, Bool, Bool)])
    func `XML and property lists may be UTF-16`(
        charset: String?, hasMark: Bool, isBigEndian: Bool
    ) throws {
        let type = charset.map { "text/xml; charset=\($0)" }
        for (format, text, json) in [
            (.xml, "<a>é漢</a>", "{\"a\":\"é漢\"}"),
            (.plist, "<plist><string>é漢</string></plist>", "\"é漢\""),
        ] as [(BodyFormat, String, String)] {
            var rules = RequestRules()
            rules.body = RequestBodyRules(from: format, to: .json)
            let units = (hasMark ? [0xFEFF] : []) + Array(text.utf16)
            let bytes = units.flatMap { unit in
                let pair = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
                return isBigEndian ? pair : pair.reversed()
            }
            let made = try RequestTranslation(rules)?.translate(bytes, contentType: type)
            #expect(made.map { String(decoding: $0.bytes, as: UTF8.self) } == json)
        }
    }

    // MARK: Parameters

    private func byMethod(_ body: RequestBodyRules?) throws -> RequestTranslation {
        var rules = RequestRules()
        rules.body = body
        rules.parameters = .byMethod
        return try #require(RequestTranslation(rules))
    }

    @Test func `content becomes a query, by AFNetworking's rules for GET, HEAD and DELETE`() throws
    {
        let form = try byMethod(nil)
        #expect(
            try form.query(from: Array("b=2&a=1&e[]=%C3%A9".utf8), contentType: nil)
                == "a=1&b=2&e%5B%5D=%C3%A9")
        let json = try byMethod(RequestBodyRules(from: .json, to: .plist))
        #expect(
            try json.query(
                from: Array(#"{"b":[1,true],"a":{"c":null}}"#.utf8),
                contentType: "application/json") == "a%5Bc%5D&b%5B%5D=1&b%5B%5D=1")
        #expect(try json.query(from: [], contentType: "application/json") == "")
    }

    @Test func `a query becomes content of other methods`() throws {
        let query = "a=1&b[]=x&b[]=y%20z"
        let form = try byMethod(nil).content(fromQuery: query)
        #expect(form.contentType == "application/x-www-form-urlencoded")
        #expect(String(decoding: form.bytes, as: UTF8.self) == "a=1&b%5B%5D=x&b%5B%5D=y%20z")
        let json = try byMethod(RequestBodyRules(from: .form, to: .json)).content(fromQuery: query)
        #expect(json.contentType == "application/json")
        #expect(String(decoding: json.bytes, as: UTF8.self) == #"{"a":"1","b":["x","y z"]}"#)
    }

    @Test func `where only parameters are moved, other content stays`() throws {
        let translation = try byMethod(nil)
        #expect(try translation.applies(toContentType: "application/x-www-form-urlencoded"))
        #expect(try !translation.applies(toContentType: "application/json"))
        let made = try translation.translate(Array("b=%zz".utf8), contentType: "x/y")
        #expect(made == TranslatedContent(bytes: Array("b=%zz".utf8), contentType: "x/y"))
    }

    // MARK: Refusals

    @Test(
        arguments: [
            ("{\"a\":\n[1,}", .json, .form, .requestBodyInvalid, "line 2, column 4, at $.a[1]"),
            ("{\"a\":1,\"a\":2}", .json, .form, .requestBodyInvalid, "line 1, column 8, at $.a"),
            ("[1]", .json, .form, .requestBodyUntranslatable, nil),
            (#"{"a":[1,null]}"#, .json, .plist, .requestBodyUntranslatable, "at $.a[1]"),
            (#"{"a":1e999}"#, .json, .plist, .requestBodyUntranslatable, "at $.a"),
            (#"{"a":{"b c":1}}"#, .json, .xml, .requestBodyUntranslatable, "at $.a.b c"),
            (#"{"a":{"b":[[]]}}"#, .json, .xml, .requestBodyUntranslatable, "at $.a.b[0]"),
            ("[\"\\u0000\"]", .json, .plist, .requestBodyUntranslatable, "at $[0]"),
            ("a=%zz", .form, .json, .requestBodyInvalid, "line 1, column 3"),
            ("a=1&a[b]=2", .form, .json, .requestBodyInvalid, "line 1, column 5, at a[b]"),
            ("a=1&b", .form, .plist, .requestBodyUntranslatable, "at $.b"),
            ("<a>\n<b></a>", .xml, .json, .requestBodyInvalid, "line 2, column 6"),
            ("", .xml, .json, .requestBodyInvalid, "line 1, column 1"),
            (
                "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", .xml, .json, .requestBodyInvalid,
                "line 1, column 13"
            ),
            (
                "<plist><real>x</real></plist>", .plist, .json, .requestBodyInvalid,
                "line 1, column 15"
            ),
            ("bplist00", .plist, .json, .requestBodyInvalid, "byte 8"),
        ] as [(String, BodyFormat, BodyFormat, TransformationReason, String?)])
    func `is refused with its place`(
        content: String, from: BodyFormat, to: BodyFormat, problem: TransformationReason,
        place: String?
    ) {
        let failure = #expect(throws: TransformationError.self) {
            try translated(content, from, to)
        }
        #expect(failure?.reason == problem)
        #expect(failure?.location == place)
        let hasLine = place?.hasPrefix("line") ?? false
        #expect(failure?.excerpt == (hasLine ? Array(content.utf8) : []))
        #expect(failure?.detail.isEmpty == false)
    }

    @Test(
        arguments: [
            (field("a") + "; filename=\"x.png\"", "x", "a file cannot be translated"),
            (field("a") + "; filename=\"\"", "x", "a file cannot be translated"),
            (
                field("a") + "; filename=\"x.png\"", "",
                "a reference to a file that is not sent cannot be translated"
            ),
            (
                field("a") + "\r\nContent-Type: message/external-body; access-type=local-file", "",
                "a reference to a file that is not sent cannot be translated"
            ),
            (
                field("a") + "\r\nContent-Type: multipart/mixed; boundary=c", "--c--",
                "several files in a part cannot be translated"
            ),
        ])
    func `files are refused with the name of their part`(
        header: String, content: String, detail: String
    ) {
        let body = multipart([(field("n"), "1"), (header, content)])
        let failure = #expect(throws: TransformationError.self) {
            try translated(body, .multipart, .json, type: "multipart/form-data; boundary=b")
        }
        #expect(failure?.reason == .requestFileRefused)
        #expect(failure?.detail == detail)
        #expect(failure?.location?.hasSuffix(", at a") == true)
    }

    @Test func `where a browser's form chose no file, its part is left out`() throws {
        let type = "multipart/form-data; boundary=b"
        let none = field("f") + "; filename=\"\"\r\nContent-Type: application/octet-stream"
        let body = multipart([(field("n"), "1"), (none, "")])
        #expect(try translated(body, .multipart, .json, type: type).text == #"{"n":"1"}"#)
    }

    @Test(arguments: ["multipart/form-data", "multipart/form-data; boundary=\"\""])
    func `multipart content without a boundary is refused`(type: String) {
        let failure = #expect(throws: TransformationError.self) {
            try translated(parts, .multipart, .json, type: type)
        }
        #expect(failure?.reason == .requestBodyInvalid)
    }

    @Test(
        arguments: [
            ("[\"" + String(repeating: "x", count: 100) + "\"]", .xml, .requestBodyTooLarge),
            (#"{"a":"\#(String(repeating: "x", count: 60))"}"#, .plist, .requestBodyTooLarge),
        ] as [(String, BodyFormat, TransformationReason)])
    func `what is larger than it may be is refused, before and after`(
        content: String, to: BodyFormat, problem: TransformationReason
    ) throws {
        let failure = #expect(throws: TransformationError.self) {
            try translated(content, .json, to, maximum: 100)
        }
        #expect(failure?.reason == problem)
        #expect(failure?.excerpt == [])
    }

    @Test func `what is too deep is refused`() {
        let failure = #expect(throws: TransformationError.self) {
            try translated(String(repeating: "[", count: 10_000), .json, .plist)
        }
        #expect(failure?.reason == .requestBodyInvalid)
        #expect(failure?.detail == "it is too large: nested deeper than 128")
    }
}
