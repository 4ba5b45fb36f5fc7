import PinfoldConfiguration
import Testing

@testable import Gateway

/// An entry with rules for responses, which no tunnel bypasses.
private func hosts(_ response: String) -> String {
    "hosts: [{ match: [a.test], tunnel: refuse, response: \(response) }]"
}

private func rules(_ response: String) throws -> ResponseRules {
    try load(hosts(response)).hosts.entries[0].response
}

private let key = "1: hosts[0].response"
private let formats = ["json", "plist", "xml"]

@Suite("The key response of an entry")
struct ResponseRulesTests {
    @Test func `checks and changes nothing by default`() throws {
        #expect(try rules("{}") == ResponseRules())
        #expect(try rules("{ body: , image: }") == ResponseRules())
    }

    @Test func `statuses and types are parsed`() throws {
        let read = try rules(
            """
            { statusCodes: ["200-299", 304, "404", 500-599],
              contentTypes: [Application/JSON, text/*, application/problem+json] }
            """)
        #expect(read.statusCodes == [200...299, 304...304, 404...404, 500...599])
        #expect(
            read.contentTypes == ["application/json", "text/*", "application/problem+json"])
    }

    @Test func `bodies are parsed`() throws {
        let inside = try rules(
            """
            { validate: json, body: { from: json, to: plist, removesKeysWithNullValues: true,
                propertyList: binary, maximum: 1MiB, larger: pass, noTransform: refuse } }
            """)
        var body = ResponseBodyRules(from: .json, to: .plist)
        body.removesKeysWithNullValues = true
        body.writesBinaryPropertyLists = true
        #expect(inside.body == body && inside.validate == .json)
        #expect(inside.maximumBytes == 1 << 20)
        #expect(inside.larger == .pass)
        #expect(inside.noTransform == .refuse)
        let beside = try rules(
            """
            { validate: json, body: { from: json, to: plist, removesKeysWithNullValues: true,
                propertyList: binary }, maximum: 1MiB, larger: pass, noTransform: refuse }
            """)
        #expect(beside == inside)
    }

    @Test func `images are parsed`() throws {
        let read = try rules(
            """
            { validate: image, image: { accept: [image/png, image/jpeg],
                convert: { image/webp: image/png, image/avif: image/jpeg }, maximumPixels: 1000,
                scale: { width: 640, height: 480 } } }
            """)
        var image = ImageRules()
        image.accept = [.png, .jpeg]
        image.convert = [
            ImageConversion(from: .webp, to: .png), ImageConversion(from: .avif, to: .jpeg),
        ]
        image.maximumPixels = 1000
        image.scaleTo = ImageSize(width: 640, height: 480)
        #expect(read.image == image)
        #expect(try rules("{ image: {} }").image == ImageRules())
    }

    @Test func `the cache stores what clients are sent or what servers sent`() throws {
        for (text, form) in [
            ("{}", CachedForm.translated), ("{ form: translated }", .translated),
            ("{ form: origin }", .origin),
        ] {
            let entry = try load("hosts: [{ match: [a], cache: \(text) }]").hosts.entries[0]
            #expect(entry.response.cacheForm == form)
        }
        #expect(errors(of: "hosts: [{ match: [a], cache: { form: both } }]").count == 1)
    }

    @Test(arguments: [
        ("", "", "unless response changes content (body, or image with convert or scale)"),
        ("response: { validate: json }", "", "unless response changes content"),
        ("response: { image: {} }", "", "unless response changes content"),
        ("response: { body: { from: json, to: plist } }", "", ""),
        ("response: { image: { scale: { width: 1, height: 1 } } }", "", ""),
        (
            "response: { body: { from: json, to: plist } }", "cache: { enabled: false }",
            "without a cache"
        ),
        (
            "response: { body: { from: json, to: plist } }", "cache: { memory: 0, disk: 0 }",
            "without a cache"
        ),
    ])
    func `a form without effect causes a warning`(
        response: String, cache: String, warning: String
    ) throws {
        let rules = response.isEmpty ? "" : ", \(response)"
        let text = "hosts: [{ match: [a], cache: { form: origin }\(rules) }]\n\(cache)"
        let found = try warnings(of: text).filter { $0.contains("cache.form") }
        #expect(found.count == (warning.isEmpty ? 0 : 1))
        guard !warning.isEmpty else { return }
        #expect(found.first?.contains("hosts[0].cache.form: has no effect \(warning)") ?? false)
    }

    @Test func `a form with store false causes a warning`() throws {
        let found = try warnings(
            of: "hosts: [{ match: [a], cache: { form: origin, store: false }, "
                + "response: { body: { from: json, to: plist } } }]")
        #expect(found.contains { $0.contains("cache.form: has no effect with store: false") })
    }

    @Test(arguments: [
        "{ statusCodes: [200-299, 304], contentTypes: [a/b, image/*] }",
        "{ validate: plist, maximum: 2MiB, larger: pass }",
        "{ maximum: 1KiB, larger: pass, noTransform: refuse }",
        "{ body: { from: plist, to: plist, propertyList: xml } }",
        "{ body: { from: plist, to: plist, removesKeysWithNullValues: true } }",
        "{ body: { from: json, to: plist, propertyList: binary, noTransform: refuse } }",
        "{ body: { from: json, to: json, removesKeysWithNullValues: true, maximum: 9MiB } }",
        "{ image: {} }",
        "{ image: { accept: [image/gif], maximumPixels: 67108864 } }",
        "{ image: { convert: { image/gif: image/png }, scale: { width: 1, height: 16384 } } }",
    ])
    func `the printed configuration loads to the same values`(response: String) throws {
        let snapshot = try load(hosts(response))
        let printed = snapshot.effectiveYAML()
        #expect(printed.contains("\n    response:\n      "))
        #expect(try load(printed, folder: "/elsewhere") == snapshot)
    }

    @Test(arguments: formats, formats)
    func `content is translated between three formats`(from: String, to: String) throws {
        let text = hosts("{ body: { from: \(from), to: \(to) } }")
        guard from == to else {
            let body = try load(text).hosts.entries[0].response.body
            #expect(body?.from.rawValue == from && body?.to.rawValue == to)
            return
        }
        let keys =
            from == "plist" ? "two different formats, propertyList" : "two different formats,"
        let end =
            "\(key).body: from and to are both \(from); expected \(keys) or "
            + "removesKeysWithNullValues: true"
        #expect(errors(of: text) == ["gateway.yaml:" + end])
        let nulls = hosts(
            "{ body: { from: \(from), to: \(to), removesKeysWithNullValues: true } }")
        #expect(errors(of: nulls) == [])
    }

    @Test(arguments: [
        Wrong(
            hosts("{ statusCodes: [] }"),
            "\(key).statusCodes: has 0 entries; expected 1 to 100 status codes"),
        Wrong(
            hosts("{ statusCodes: 200 }"),
            "\(key).statusCodes: is a single value; expected a list of status codes"),
        Wrong(
            hosts("{ statusCodes: [200, \"200-200\"] }"),
            "\(key).statusCodes[1]: is listed twice; expected each once"),
        Wrong(
            hosts("{ contentTypes: [] }"),
            "\(key).contentTypes: has 0 entries; expected 1 to 100 media types"),
        Wrong(
            hosts("{ contentTypes: [a/b, A/B] }"),
            "\(key).contentTypes[1]: is listed twice; expected each once"),
        Wrong(
            hosts("{ validate: html }"),
            "\(key).validate: \"html\" is not valid; expected one of json, xml, plist, image"),
        Wrong(
            hosts("{ body: { from: form, to: multipart } }"),
            "\(key).body.from: \"form\" is not valid; expected one of json, plist, xml",
            "\(key).body.to: \"multipart\" is not valid; expected one of json, plist, xml"),
        Wrong(
            hosts("{ body: {} }"),
            "\(key).body.from: is missing; expected one of json, plist, xml",
            "\(key).body.to: is missing; expected one of json, plist, xml"),
        Wrong(
            hosts("{ body: { from: json, to: xml, maximum: 2MiB }, maximum: 2MiB }"),
            "\(key).body.maximum: means the same as response.maximum of this entry; expected "
                + "only one of the two"),
        Wrong(
            hosts("{ body: { from: json, to: xml, larger: pass }, larger: refuse }"),
            "\(key).body.larger: means the same as response.larger of this entry; expected "
                + "only one of the two"),
        Wrong(
            hosts("{ body: { from: json, to: xml, noTransform: pass }, noTransform: pass }"),
            "\(key).body.noTransform: means the same as response.noTransform of this entry; "
                + "expected "
                + "only one of the two"),
        Wrong(
            hosts("{ validate: json, maximum: 1000 }"),
            "\(key).maximum: 1000 is out of range; expected a size from 1KiB to 256MiB, in bytes "
                + "or with KB, MB, GB, TB, KiB, MiB, GiB or TiB"),
        Wrong(
            hosts("{ image: { accept: [] } }"),
            "\(key).image.accept: accepts nothing; expected image types"),
        Wrong(
            hosts("{ image: { accept: [image/bmp, image/png, image/png] } }"),
            "\(key).image.accept[0]: \"image/bmp\" is not valid; expected one of \(images)",
            "\(key).image.accept[2]: is listed twice; expected each once"),
        Wrong(
            hosts("{ image: { convert: { image/bmp: image/png, image/gif: image/webp } } }"),
            "\(key).image.convert.\"image/bmp\": \"image/bmp\" is not valid; "
                + "expected one of \(images)",
            "\(key).image.convert.\"image/gif\": \"image/webp\" is not valid; "
                + "expected one of image/png, image/jpeg"),
        Wrong(
            hosts("{ image: { convert: { image/png: image/png } } }"),
            "\(key).image.convert.\"image/png\": is converted to itself; expected another type"),
        Wrong(
            hosts("{ image: { maximumPixels: 0, scale: { width: 16385 } } }"),
            "\(key).image.maximumPixels: 0 is out of range; "
                + "expected a whole number from 1 to 67108864",
            "\(key).image.scale.width: 16385 is out of range; "
                + "expected a whole number from 1 to 16384",
            "\(key).image.scale.height: is missing; expected a number of pixels"),
    ])
    func `a wrong value is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(arguments: [
        "199", "600", "100-299", "200-600", "299-200", "2xx", "200-", "-200", "200-250-299",
        "0200", "+20", "200 - 299",
    ])
    func `anything but a final status is refused`(text: String) {
        #expect(
            errors(of: hosts("{ statusCodes: ['\(text)'] }")) == [
                "gateway.yaml:\(key).statusCodes[0]: \"\(text)\" is not valid; expected a status "
                    + "from 200 to 599, or a range such as \"200-299\""
            ])
    }

    @Test(arguments: [
        "json", "/json", "a/", "a/b/c", "*/*", "*/json", "a/*b", "a/b*", "text/html; charset=a",
        "text/ html", "text/ä", "",
    ])
    func `anything but a media type is refused`(text: String) {
        #expect(
            errors(of: hosts("{ contentTypes: ['\(text)'] }")) == [
                "gateway.yaml:\(key).contentTypes[0]: \"\(text)\" is not valid; expected a media "
                    + "type without parameters, such as application/json or text/*"
            ])
    }
}

private let images = "image/png, image/jpeg, image/gif, image/webp, image/avif"
