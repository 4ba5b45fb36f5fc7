import PinfoldConfiguration
import Testing

@testable import Gateway

/// An entry with rules for requests, which no tunnel bypasses.
private func hosts(_ request: String) -> String {
    "hosts: [{ match: [a.test], tunnel: refuse, request: \(request) }]"
}

private func rules(_ request: String) throws -> RequestRules {
    try load(hosts(request)).hosts.entries[0].request
}

private let names = "the name of a header field"
private let key = "1: hosts[0].request"

@Suite("The key request of an entry")
struct RequestRulesTests {
    @Test func `changes nothing by default`() throws {
        let entry = try load("hosts: [{ match: [a] }]").hosts.entries[0]
        #expect(entry.request == RequestRules())
        #expect(try rules("{}") == RequestRules())
        #expect(
            try rules("{ headers: , query: , path: , body: , authorization: }") == RequestRules())
    }

    @Test func `every key is read`() throws {
        let read = try rules(
            """
            {
                cachePolicy: reloadIgnoringCache,
                headers: { remove: [X-Debug, x-trace], rename: { X-Old: X-New },
                  set: { X-Gateway: pin fold, X-Empty: '' }, add: { X-Add: [1, b], X-One: c },
                  defaults: { User-Agent: Legacy/1.0, Accept-Language: "de, en;q=0.9" } },
                path: { prefixes: { /old: /new, /: /v2 } },
                query: { remove: [a b], rename: { 'ä': b }, set: { c: "1&2" }, add: { d: [x, y] },
                  defaults: { e: '' } },
                parameters: byMethod,
                body: { from: multipart, to: json, maximum: 1KiB, noTransform: refuse,
                  arrays: indices } }
            """)
        #expect(read.cachePolicy == .reloadIgnoringCache)
        #expect(read.headers.remove == ["X-Debug", "x-trace"])
        #expect(read.headers.rename == [NamedValue("X-Old", "X-New")])
        #expect(
            read.headers.set == [NamedValue("X-Gateway", "pin fold"), NamedValue("X-Empty", "")])
        #expect(
            read.headers.add == [
                NamedValue("X-Add", "1"), NamedValue("X-Add", "b"), NamedValue("X-One", "c"),
            ])
        #expect(
            read.headers.defaults == [
                NamedValue("User-Agent", "Legacy/1.0"),
                NamedValue("Accept-Language", "de, en;q=0.9"),
            ])
        #expect(
            read.pathPrefixes == [PrefixReplacement("/old", "/new"), PrefixReplacement("/", "/v2")]
        )
        #expect(read.query.remove == ["a b"])
        #expect(read.query.rename == [NamedValue("ä", "b")])
        #expect(read.query.set == [NamedValue("c", "1&2")])
        #expect(read.query.add == [NamedValue("d", "x"), NamedValue("d", "y")])
        #expect(read.query.defaults == [NamedValue("e", "")])
        #expect(read.parameters == .byMethod)
        var body = RequestBodyRules(from: .multipart, to: .json)
        body.maximumBytes = 1024
        body.noTransform = .refuse
        body.arrays = .indices
        #expect(read.body == body)
    }

    @Test(arguments: BodyFormat.allCases, BodyFormat.allCases)
    func `content is translated from every format into every other but multipart`(
        from: BodyFormat, to: BodyFormat
    ) throws {
        let text = hosts("{ body: { from: \(from.rawValue), to: \(to.rawValue) } }")
        if to == .multipart {
            #expect(
                errors(of: text) == [
                    "gateway.yaml:\(key).body.to: \"multipart\" is not valid; expected one of "
                        + "json, form, plist, xml"
                ])
        } else if from == to {
            #expect(
                errors(of: text) == [
                    "gateway.yaml:\(key).body: from and to are both \(from.rawValue); "
                        + "expected two different formats"
                ])
        } else {
            let rules = try load(text).hosts.entries[0].request
            #expect(rules.body == RequestBodyRules(from: from, to: to))
        }
    }

    @Test(arguments: [
        "{ cachePolicy: returnCacheElseLoad }",
        "{ headers: { remove: [X-A], rename: { X-B: X-C }, set: { X-D: '\"\\ä' }, add: "
            + "{ X-E: [a, b], X-F: '' }, defaults: { X-G: ': #' } } }",
        "{ path: { prefixes: { /a: /b, '/c%20': / } } }",
        "{ query: { remove: ['a: b'], rename: { \"'\": '{' }, set: { 'null': '~' }, "
            + "add: { a: [b, c] }, defaults: { true: false } } }",
        "{ parameters: byMethod, body: { from: xml, to: plist, maximum: 256MiB } }",
        "{ timeout: 3s, headers: { set: { X-A: b } } }",
    ])
    func `the printed configuration loads to the same values`(request: String) throws {
        let snapshot = try load(hosts(request))
        let printed = snapshot.effectiveYAML()
        #expect(try load(printed, folder: "/elsewhere") == snapshot)
        #expect(printed.contains("\n    request:\n      cachePolicy: "))
    }

    @Test func `an entry without rules prints none`() throws {
        let printed = try load("hosts: [{ match: [a] }]").effectiveYAML()
        #expect(!printed.contains("request:") && !printed.contains("response:"))
    }

    @Test(arguments: [
        Wrong(
            hosts("[]"),
            "\(key): is a list; expected a mapping with timeout, cachePolicy, "
                + "headers, forwardUser, authorization, path, query, parameters, body"),
        Wrong(
            hosts("{ cachePolicy: always }"),
            "\(key).cachePolicy: \"always\" is not valid; expected one of useProtocol, "
                + "reloadIgnoringCache, returnCacheElseLoad, returnCacheDontLoad"),
        Wrong(
            hosts("{ headers: { replace: {} } }"),
            "\(key).headers.replace: unknown key; "
                + "expected one of remove, rename, set, add, defaults"),
        Wrong(
            hosts("{ headers: { remove: X-A } }"),
            "\(key).headers.remove: is a single value; expected a list of header fields"),
        Wrong(
            hosts("{ headers: { remove: ['X A', ''] } }"),
            "\(key).headers.remove[0]: \"X A\" is not valid; expected \(names)",
            "\(key).headers.remove[1]: \"\" is not valid; expected \(names)"),
        Wrong(
            hosts("{ headers: { set: [X-A] } }"),
            "\(key).headers.set: is a list; expected a mapping of names to values"),
        Wrong(
            hosts("{ headers: { set: { 'X:': a } } }"),
            "\(key).headers.set.\"X:\": \"X:\" is not valid; expected \(names)"),
        Wrong(
            hosts("{ headers: { rename: { X-A: 'X B', X-C: x-c } } }"),
            "\(key).headers.rename.X-A: \"X B\" is not valid; expected \(names)",
            "\(key).headers.rename.X-C: is renamed to itself; expected another name"),
        Wrong(
            hosts("{ headers: { add: { X-A: [] } } }"),
            "\(key).headers.add.X-A: adds nothing; expected a value, or a list of values"),
        Wrong(
            hosts("{ headers: { set: { X-A: , X-B: [a] } } }"),
            "\(key).headers.set.X-A: has no value; expected \(value)",
            "\(key).headers.set.X-B: is a list; expected \(value)"),
        Wrong(
            hosts("{ query: { set: { '': a } } }"),
            "\(key).query.set.\"\": \"\" is not valid; expected \(parameter)"),
        Wrong(
            hosts("{ query: { rename: { a: a } } }"),
            "\(key).query.rename.a: is renamed to itself; expected another name"),
        Wrong(
            hosts("{ query: { set: { a: \"b\\nc\" } } }"),
            "\(key).query.set.a: is not a valid value; expected at most 4096 bytes without control "
                + "characters, not percent-encoded"),
        Wrong(
            hosts("{ path: { prefixes: { /a: /a, old: /b, /c: /d/ } } }"),
            "\(key).path.prefixes.\"/a\": is replaced by itself; expected another path",
            "\(key).path.prefixes.old: \"old\" is not valid; expected \(path)",
            "\(key).path.prefixes.\"/c\": \"/d/\" is not valid; expected \(path)"),
        Wrong(
            hosts("{ parameters: move }"),
            "\(key).parameters: \"move\" is not valid; expected one of keep, byMethod"),
        Wrong(
            hosts("{ body: { to: json } }"),
            "\(key).body.from: is missing; expected one of json, form, plist, xml, multipart"),
        Wrong(
            hosts("{ body: { from: form } }"),
            "\(key).body.to: is missing; expected one of json, form, plist, xml"),
        Wrong(
            hosts("{ body: { from: form, to: json, maximum: 1023, noTransform: change } }"),
            "\(key).body.maximum: 1023 is out of range; expected \(size)",
            "\(key).body.noTransform: \"change\" is not valid; expected one of pass, refuse"),
        Wrong(
            hosts("{ body: { from: form, to: json, arrays: rows } }"),
            "\(key).body.arrays: \"rows\" is not valid; expected one of brackets, indices"),
        Wrong(
            hosts("{ body: { from: json, to: plist, arrays: indices } }"),
            "\(key).body.arrays: has no effect without a form, whose names have the indices; "
                + "expected a form as from or to, or parameters: byMethod"),
        Wrong(
            hosts("{ body: { from: form, to: json, maximum: 257MiB } }"),
            "\(key).body.maximum: 257MiB is out of range; expected \(size)"),
    ])
    func `a wrong value is reported`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(arguments: [
        "\"a\\rb\"", "\"a\\nb\"", "\"a\\0b\"", "\"a\\x7Fb\"", "\"\\x01\"", "' a'", "'a '",
        "\"\\ta\"", "\"a\\t\"", "'\(String(repeating: "a", count: 4097))'",
    ])
    func `an invalid field value is refused and not shown`(text: String) {
        #expect(
            errors(of: hosts("{ headers: { set: { X-A: \(text) } } }")) == [
                "gateway.yaml:\(key).headers.set.X-A: is not a valid value; expected \(value)"
            ])
    }

    @Test(arguments: [
        "/a//b", "//a", "/a/./b", "/a/..", "/a?b", "/a#b", "/a b", "/ä", "/%4", "/%zz", "", "a",
        "/\(String(repeating: "a", count: 255))",
    ])
    func `anything but a path prefix is refused`(text: String) {
        for prefixes in ["'\(text)': /b", "/b: '\(text)'"] {
            let found = errors(of: hosts("{ path: { prefixes: { \(prefixes) } } }"))
            #expect(found.count == 1)
            #expect(found.first?.hasSuffix(" is not valid; expected \(path)") == true)
        }
    }

    @Test func `a prefix whose paths an earlier one covers causes a warning`() throws {
        let text = hosts("{ path: { prefixes: { /a: /x, /ab: /y, /a/b: /z, /: /w, /c: /v } } }")
        #expect(
            try warnings(of: text) == [
                "gateway.yaml:\(key).path.prefixes.\"/a/b\": never applies: \"/a\" before it "
                    + "matches "
                    + "all of these paths; put this one first",
                "gateway.yaml:\(key).path.prefixes.\"/c\": never applies: \"/\" before it matches "
                    + "all of these paths; put this one first",
            ])
    }

    @Test func `steps have bounds`() {
        let many = (0...100).map { "n\($0)" }
        #expect(
            errors(of: hosts("{ headers: { remove: [\(many.joined(separator: ", "))] } }")) == [
                "gateway.yaml:\(key).headers.remove: has 101 entries; expected at most 100"
            ])
        #expect(
            errors(of: hosts("{ query: { add: { a: [\(many.joined(separator: ", "))] } } }")) == [
                "gateway.yaml:\(key).query.add.a: has 101 values; expected at most 100"
            ])
        let pairs = many.map { "\($0): a" }.joined(separator: ", ")
        #expect(
            errors(of: hosts("{ headers: { set: { \(pairs) } } }")) == [
                "gateway.yaml:\(key).headers.set: has 101 entries; expected at most 100"
            ])
        let long = String(repeating: "a", count: 129)
        #expect(errors(of: hosts("{ headers: { remove: [\(long)] } }")).count == 1)
        #expect(errors(of: hosts("{ query: { remove: [\(long)] } }")).count == 1)
    }
}

private let value =
    "at most 4096 bytes without control characters and without leading or trailing white space"
private let parameter =
    "the name of a parameter, not percent-encoded: 1 to 128 bytes without control characters"
private let path =
    "a path prefix such as /old/one: whole segments, none of them empty, `.` or `..`, "
    + "percent-encoded, without a trailing slash"
private let size =
    "a size from 1KiB to 256MiB, in bytes or with KB, MB, GB, TB, KiB, MiB, GiB or TiB"
