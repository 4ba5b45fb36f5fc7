import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

/// Reports what it was given by refusing it.
private struct TellingSchema: JSONSchemaChecking {
    func check(_ json: UnsafeRawBufferPointer) throws(TransformationError) {
        throw TransformationError(
            .responseSchemaViolated, String(decoding: json, as: UTF8.self), at: "at $.a")
    }
}

private struct SatisfiedSchema: JSONSchemaChecking {
    func check(_ json: UnsafeRawBufferPointer) {}
}

private func checks(
    schema: (any JSONSchemaChecking)? = nil, _ change: (inout ResponseRules) -> Void
) throws -> ResponseChecks {
    try #require(ResponseChecks(rules(change), schema: schema, images: FakeImages()))
}

private let webp = Array("RIFF....WEBP".utf8)

@Suite("What is asked of responses")
struct ResponseChecksTests {
    @Test func `nothing is asked by rules that ask nothing`() {
        #expect(ResponseChecks(ResponseRules(), schema: nil, images: nil) == nil)
    }

    @Test(arguments: [
        (199, false), (200, true), (299, true), (300, false), (304, true), (404, false),
    ])
    func `a status is accepted or refused`(status: UInt16, isAccepted: Bool) throws {
        let checks = try checks { $0.statusCodes = [200...299, 304...304] }
        #expect(!checks.examinesContent)
        guard !isAccepted else { return try checks.check(status: status) }
        let failure = #expect(throws: TransformationError.self) {
            try checks.check(status: status)
        }
        #expect(failure?.reason == .responseStatusRefused)
        #expect(failure?.detail == "the status is \(status); expected 200-299, 304")
    }

    @Test(
        arguments: [
            ("application/json", true, true), ("APPLICATION/JSON ;charset=utf-8", true, true),
            ("image/webp", true, true), ("text/html", true, false), (nil, true, false),
            ("imagex/webp", true, false), ("text/html", false, true), (nil, false, true),
        ] as [(String?, Bool, Bool)])
    func `a type is accepted or refused, without content it is no matter`(
        type: String?, hasContent: Bool, isAccepted: Bool
    ) throws {
        let checks = try checks { $0.contentTypes = ["application/json", "image/*"] }
        guard !isAccepted else {
            return try checks.check(contentType: type, hasContent: hasContent)
        }
        let failure = #expect(throws: TransformationError.self) {
            try checks.check(contentType: type, hasContent: hasContent)
        }
        #expect(failure?.reason == .responseTypeRefused)
        #expect(failure?.detail.hasSuffix("; expected application/json, image/*") == true)
    }

    @Test(
        arguments: [
            (.json, "{\"a\":[1,2]}"), (.json, ""), (.json, " "), (.plist, ""),
            (.plist, "<plist><true/></plist>"), (.xml, "<a>x<b c='d'/></a>"), (.image, "x"),
        ] as [(ValidatedFormat, String)])
    func `content that parses passes as it is, whatever its type`(
        format: ValidatedFormat, content: String
    ) throws {
        let checks = try checks { $0.validate = format }
        for type in [nil, "text/html", "application/json"] {
            #expect(try checks.run(content, type) == PlannedContent())
            let plan = try checks.plan(contentType: type, isPartial: false, noTransform: true)
            #expect(plan?.changes == false)
            #expect(plan?.isSlow == (format == .image))
        }
        #expect(checks.changedContentType("application/json") == nil)
        #expect(!checks.mayChange("application/json"))
    }

    @Test(
        arguments: [
            (.json, "<html>", .responseBodyInvalid, "line 1, column 1"),
            (.json, "{\"a\":[1,]}", .responseBodyInvalid, "line 1, column 9, at $.a[1]"),
            (.json, "  ", .responseBodyInvalid, "line 1, column 3"),
            (.xml, "<a>", .responseBodyInvalid, "line 1, column 4"),
            (.xml, "", .responseBodyInvalid, "line 1, column 1"),
            (.plist, "<plist><x/></plist>", .responseBodyInvalid, "line 1, column 8"),
            (.image, "!", .responseImageRefused, nil),
        ] as [(ValidatedFormat, String, TransformationReason, String?)])
    func `content that does not parse is refused with its place`(
        format: ValidatedFormat, content: String, problem: TransformationReason, place: String?
    ) throws {
        let checks = try checks { $0.validate = format }
        let failure = #expect(throws: TransformationError.self) {
            try checks.run(content, "application/json")
        }
        #expect(failure?.reason == problem)
        #expect(failure?.location == place)
    }

    @Test func `JSON is held to a schema, as the origin sent it`() throws {
        let change: (inout ResponseRules) -> Void = {
            $0.validate = .json
            $0.schema = SchemaFile(path: "/s", text: [])
            $0.body = ResponseBodyRules(from: .json, to: .plist)
        }
        let failure = #expect(throws: TransformationError.self) {
            try checks(schema: TellingSchema(), change).run("{ \"a\": 1 }", "text/json")
        }
        #expect(failure?.detail == "{ \"a\": 1 }")
        let invalid = #expect(throws: TransformationError.self) {
            try checks(schema: TellingSchema(), change).run("{ \"a\": 1 ", "text/json")
        }
        #expect(invalid?.reason == .responseBodyInvalid)
        for nothing in ["", " "] {
            let absent = #expect(throws: TransformationError.self) {
                try checks(schema: SatisfiedSchema(), change).run(nothing, nil)
            }
            #expect(absent?.reason == .responseSchemaViolated)
        }
        let made = try checks(schema: SatisfiedSchema(), change).run("{\"a\":1}", "text/json")
        #expect(made?.steps == ["json-to-plist"])
        #expect(throws: TransformationError.self) {
            try checks(schema: nil, change).run("{}", "text/json")
        }
    }

    @Test func `content that is absent satisfies no schema, and is no image`() throws {
        func problem(
            _ type: String?, _ change: (inout ResponseRules) -> Void
        ) throws -> TransformationReason? {
            let checks = try checks(schema: SatisfiedSchema(), change)
            do throws(TransformationError) {
                try checks.refuseEmptyContent(contentType: type)
                return nil
            } catch {
                return error.reason
            }
        }
        for format in ValidatedFormat.allCases {
            #expect(
                try problem(nil) { $0.validate = format }
                    == (format == .image ? .responseImageRefused : nil))
        }
        let schema = SchemaFile(path: "/s", text: [])
        for type in [nil, "text/html", "application/json"] {
            #expect(
                try problem(type) {
                    $0.validate = .json
                    $0.schema = schema
                } == .responseSchemaViolated)
        }
        let images = [
            "image/png", "IMAGE/png; a=b", "image/png; a", "image/png;,text/html",
            "text/html, image/png",
        ]
        for type in images + [nil, "text/html"] {
            let isImage = images.contains { $0 == type }
            #expect(
                try problem(type) { $0.image = ImageRules() }
                    == (isImage ? .responseImageRefused : nil))
        }
        #expect(try problem("application/json") { $0.body = .init(from: .json, to: .plist) } == nil)
    }

    /// RFC 9110 §9.3, §15.3, §15.4.
    @Test func `content is needed where it is the representation that was asked for`() throws {
        let plain = try checks { $0.validate = .image }
        let naming = try checks {
            $0.validate = .image
            $0.statusCodes = [200...206, 300...599]
        }
        for method in Method.allCases {
            let asks = ![.head, .options, .put, .patch, .delete].contains(method)
            for status in 200...599 as ClosedRange<UInt16> {
                let isRepresentation = [200, 203, 206].contains(status)
                #expect(
                    plain.needsContent(answering: method, status: status)
                        == (asks && isRepresentation))
                let isNamed = [201, 202].contains(status)
                #expect(
                    naming.needsContent(answering: method, status: status)
                        == (asks && (isRepresentation || isNamed)))
            }
        }
    }

    @Test func `content that is not needed may be absent, however that is framed`() throws {
        let all: [(inout ResponseRules) -> Void] = [
            {
                $0.validate = .json
                $0.schema = SchemaFile(path: "/s", text: [])
            }, { $0.validate = .image }, { $0.validate = .xml },
            { $0.body = ResponseBodyRules(from: .xml, to: .json) },
        ]
        for change in all {
            let checks = try checks(schema: SatisfiedSchema(), change)
            for needsContent in [true, false] {
                let plan = try #require(
                    try checks.plan(
                        contentType: "text/xml", isPartial: false, noTransform: false,
                        needsContent: needsContent))
                if needsContent {
                    #expect(throws: TransformationError.self) { try plan.run([]) }
                } else {
                    #expect(try plan.run([]) == PlannedContent())
                }
                #expect(throws: TransformationError.self) { try plan.run(Array("!".utf8)) }
            }
        }
    }

    // MARK: Changes

    @Test(
        arguments: [
            ("application/json; utf-8", true), ("application/json; charset", true),
            ("text/plain; utf-8", true), ("text/html, text/plain", true),
            ("application/json;,text/html", false), ("text/html, application/json", false),
            ("application/json; a=\"b", false), ("application/json charset=utf-8", false),
        ])
    func `content that may be read as what is translated has a type`(
        type: String, passes: Bool
    ) throws {
        let translating = try checks { $0.body = ResponseBodyRules(from: .json, to: .plist) }
        try translating.check(contentType: type, hasContent: false)
        guard !passes else { return try translating.check(contentType: type, hasContent: true) }
        let failure = #expect(throws: TransformationError.self) {
            try translating.check(contentType: type, hasContent: true)
        }
        #expect(failure?.reason == .responseTypeRefused)
        // If nothing is translated the type does not matter.
        try checks { $0.validate = .json }.check(contentType: type, hasContent: true)
    }

    @Test(
        arguments: [
            (.json, .plist, "application/json", "{}", plist("<dict/>"), "application/x-plist"),
            (.plist, .json, "application/x-plist", plist("<dict/>"), "{}", "application/json"),
            (
                .xml, .json, "application/atom+xml", "<a b='c'/>", #"{"a":{"@b":"c"}}"#,
                "application/json"
            ),
            (
                .json, .xml, "application/problem+json", #"{"a":{"@b":"c"}}"#,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"c\"/>\n",
                "application/xml; charset=utf-8"
            ),
            (
                .plist, .xml, "application/x-plist", plist("<string>x</string>"),
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<root>x</root>\n",
                "application/xml; charset=utf-8"
            ),
            (
                .xml, .plist, "text/xml", "<a/>",
                "", "application/x-plist"
            ),
        ] as [(BodyFormat, BodyFormat, String, String, String, String)])
    func `content is translated by its type`(
        from: BodyFormat, to: BodyFormat, type: String, content: String, text: String,
        changed: String
    ) throws {
        let checks = try checks { $0.body = ResponseBodyRules(from: from, to: to) }
        #expect(checks.examinesContent)
        #expect(try checks.run("anything", "text/html") == nil)
        #expect(try checks.run("anything", nil) == nil)
        #expect(checks.changedContentType("text/html") == nil)
        #expect(checks.changedContentType(type) == changed)
        guard !text.isEmpty else {
            // An empty element is null, which property lists do not have.
            let failure = #expect(throws: TransformationError.self) {
                try checks.run(content, type)
            }
            #expect(failure?.reason == .responseBodyUntranslatable)
            return
        }
        let made = try checks.run(content, type)
        #expect(made?.text == text)
        #expect(made?.changed?.contentType == changed)
        #expect(made?.steps == ["\(from.rawValue)-to-\(to.rawValue)"])
    }

    @Test func `content without a type is translated where it is validated as that format`() throws
    {
        let checks = try checks {
            $0.validate = .json
            $0.body = ResponseBodyRules(from: .json, to: .plist)
        }
        #expect(try checks.run("true", nil)?.text == plist("<true/>"))
        #expect(try checks.run("true", "text/plain") == PlannedContent())
    }

    @Test(
        arguments: [
            (#"{"a":null,"b":[null,{"c":null}],"d":1}"#, #"{"b":[{}],"d":1}"#), ("[null]", "[]"),
            ("{ \"a\" : 1 }", nil), (" null ", nil), (" ", nil), ("", nil),
        ] as [(String, String?)])
    func `null is taken out at any depth where that is asked for, and nothing else is changed`(
        content: String, text: String?
    ) throws {
        let checks = try checks {
            $0.body = ResponseBodyRules(from: .json, to: .json)
            $0.body?.removesKeysWithNullValues = true
        }
        let type = "application/problem+json; charset=UTF-8"
        let made = try checks.run(content, type)
        #expect(made?.text == text)
        #expect(made?.steps == (text == nil ? [] : ["removes-nulls"]))
        #expect(text == nil || made?.changed?.contentType == type)
        #expect(checks.changedContentType(type) == nil)
    }

    @Test func `null is taken out before a property list is made`() throws {
        let checks = try checks {
            $0.body = ResponseBodyRules(from: .json, to: .plist)
            $0.body?.removesKeysWithNullValues = true
        }
        let made = try checks.run(#"{"a":null}"#, "text/json")
        #expect(made?.text == plist("<dict/>"))
        #expect(made?.steps == ["json-to-plist", "removes-nulls"])
    }

    @Test func `JSON of another charset is UTF-8 where it is rewritten`() throws {
        let checks = try checks {
            $0.body = ResponseBodyRules(from: .json, to: .json)
            $0.body?.removesKeysWithNullValues = true
        }
        let type = "text/json; charset=iso-8859-1"
        let plan = try #require(
            try checks.plan(contentType: type, isPartial: false, noTransform: false))
        let made = try plan.run([0x22, 0xE9, 0x22])
        #expect(made.text == "\"é\"")
        #expect(made.changed?.contentType == "application/json")
        #expect(checks.changedContentType(type) == "application/json")
    }

    @Test func `a property list is written in the form that is asked for`() throws {
        let checks = try checks {
            $0.body = ResponseBodyRules(from: .plist, to: .plist)
            $0.body?.writesBinaryPropertyLists = true
        }
        let type = "application/x-plist"
        let made = try #require(try checks.run(plist("<true/>"), type))
        let bytes = try #require(made.changed?.bytes)
        #expect(bytes.starts(with: Array("bplist00".utf8)))
        #expect(made.changed?.contentType == type)
        #expect(made.steps == ["plist-to-plist"])
        let plan = try checks.plan(contentType: type, isPartial: false, noTransform: false)
        #expect(try plan?.run(bytes) == PlannedContent())
        #expect(checks.changedContentType(type) == nil)
        #expect(checks.mayChange(type) && !checks.mayChange("text/html"))
    }

    @Test(
        arguments: [
            ("<a> <b/><c>x</c></a>", "<a><c>x</c></a>"), ("<a><b>x</b></a>", nil),
        ] as [(String, String?)])
    func `elements without anything in them are taken out of XML as null is`(
        content: String, text: String?
    ) throws {
        let checks = try checks {
            $0.body = ResponseBodyRules(from: .xml, to: .xml)
            $0.body?.removesKeysWithNullValues = true
        }
        let made = try checks.run(content, "application/atom+xml")
        let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        #expect(made?.text == text.map { head + $0 + "\n" })
        #expect(made?.changed.map(\.contentType) == text.map { _ in "application/atom+xml" })
    }

    @Test(arguments: [BodyFormat.xml, .json])
    func `a format that becomes itself is not looked at`(format: BodyFormat) {
        let same = rules { $0.body = ResponseBodyRules(from: format, to: format) }
        #expect(ResponseChecks(same, schema: nil, images: nil) == nil)
    }

    // MARK: Images

    @Test func `images are recognized by their bytes, and changed by the rules`() throws {
        let checks = try checks {
            $0.image = ImageRules()
            $0.image?.convert = [ImageConversion(from: .webp, to: .png)]
        }
        let text = String(decoding: webp, as: UTF8.self)
        let made = try checks.run(text, "image/x-anything")
        #expect(made?.changed == TranslatedContent(bytes: [1], contentType: "image/png"))
        #expect(made?.steps == ["image/webp-to-image/png"])
        #expect(try checks.run(text, "text/html") == nil)
        #expect(try checks.run(text, nil) == nil)
        #expect(checks.changedContentType("image/webp") == "image/png")
        #expect(checks.changedContentType("image/png") == nil)
        #expect(!checks.mayChange("image/png"))
    }

    @Test func `a scaled image is recorded as such`() throws {
        let checks = try checks {
            $0.image = ImageRules()
            $0.image?.scaleTo = ImageSize(width: 1, height: 1)
        }
        #expect(try checks.run("\u{89}PNG", "image/png")?.steps == ["image-to-image/png"])
        let plan = try checks.plan(contentType: "image/png", isPartial: false, noTransform: false)
        #expect(plan?.isSlow == true && plan?.changes == true)
        #expect(try plan?.run([0x89, 0x50, 0x4E, 0x47]).steps == ["image/png-scaled"])
        #expect(checks.mayChange("image/png") && !checks.mayChange("text/html"))
    }

    @Test func `without a decoder images are refused`() throws {
        let image = rules { $0.validate = .image }
        let checks = try #require(ResponseChecks(image, schema: nil, images: nil))
        let failure = #expect(throws: TransformationError.self) { try checks.run("x", nil) }
        #expect(failure?.reason == .overloaded)
    }
}
