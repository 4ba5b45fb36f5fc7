import Testing

@testable import Documents

private func query(_ json: String) throws -> String {
    try QueryString.encode(try JSONDocument.value(of: Array(json.utf8)))
}

@Suite("Query strings")
struct QueryStringTests {
    /// What AFNetworking's own tests expect.
    @Test func `parameters are written as AFNetworking's tests expect`() throws {
        #expect(try query(#"{"key":"value"}"#) == "key=value")
        #expect(try query(#"{"key":"value","key1":"value&"}"#) == "key=value&key1=value%26")
        #expect(
            try query(#"{"key":{"key1":"value"},"key2":"value&"}"#)
                == "key%5Bkey1%5D=value&key2=value%26")
        #expect(
            try query(#"{"key":" :#[]@!$&'()*+,;=/?"}"#)
                == "key=%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?")
        #expect(
            try query(#"{"key":"%20%21%22%23%24%25%26%27%28%29%2A%2B%2C%2F"}"#)
                == "key=%2520%2521%2522%2523%2524%2525%2526%2527%2528%2529%252A%252B%252C%252F")
        #expect(
            QueryString.escape(":#[]@!$&'()*+,;=?/")
                == "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D?/")
    }

    /// AFNetworking escapes in pieces of 50 UTF-16 code units, which once split characters.
    @Test(arguments: 0..<8)
    func `composed characters are escaped whole, wherever they stand`(before: Int) throws {
        let one = "%F0%9F%91%B4%F0%9F%8F%BF%F0%9F%91%B7%F0%9F%8F%BB%F0%9F%91%AE%F0%9F%8F%BD"
        let text = String(repeating: "!", count: before) + String(repeating: "👴🏿👷🏻👮🏽", count: 9)
        let expected = String(repeating: "%21", count: before) + String(repeating: one, count: 9)
        #expect(try QueryString.encode(.dictionary(["test": .string(text)])) == "test=" + expected)
    }

    @Test(
        arguments: [
            ("{}", ""), (#"{"b":1,"a":2,"C":3}"#, "C=3&a=2&b=1"),
            (#"{"a10":1,"a9":2}"#, "a10=1&a9=2"),
            (#"{"a":null}"#, "a"), (#"{"a":""}"#, "a="), (#"{"a":[]}"#, ""), (#"{"a":{}}"#, ""),
            (#"{"a":[],"b":1}"#, "b=1"), (#"{"a":true,"b":false}"#, "a=1&b=0"),
            (#"{"a":1.50,"b":-1e400}"#, "a=1.50&b=-1e400"), (#"{"":"a"}"#, "=a"),
            (#"{"":null,"a":1}"#, "&a=1"),
            (#"{"a":[3,1,2]}"#, "a%5B%5D=3&a%5B%5D=1&a%5B%5D=2"), (#"{"a":[null]}"#, "a%5B%5D"),
            (#"{"a":{"c":1,"b":2}}"#, "a%5Bb%5D=2&a%5Bc%5D=1"),
            (#"{"a":{"b":{"d":1,"c":[2]}}}"#, "a%5Bb%5D%5Bc%5D%5B%5D=2&a%5Bb%5D%5Bd%5D=1"),
            (
                #"{"a":[{"y":1,"x":2},{"x":3}]}"#,
                "a%5B%5D%5Bx%5D=2&a%5B%5D%5By%5D=1&a%5B%5D%5Bx%5D=3"
            ),
            (#"{"a":[[1,2],[3]]}"#, "a%5B%5D%5B%5D=1&a%5B%5D%5B%5D=2&a%5B%5D%5B%5D=3"),
            (#"{"a b":"c d"}"#, "a%20b=c%20d"), (#"{"é":"日"}"#, "%C3%A9=%E6%97%A5"),
            (#"{"a":"-._~/?"}"#, "a=-._~/?"), (#"{"a":"\u0000\n\u007f"}"#, "a=%00%0A%7F"),
            (#"{"a":"\"<>\\^`{|}"}"#, "a=%22%3C%3E%5C%5E%60%7B%7C%7D"),
            (#"{"a[b]":"1"}"#, "a%5Bb%5D=1"),
            ("{\"\u{FF41}\":1,\"😀\":2}", "%F0%9F%98%80=2&%EF%BD%81=1"),
        ])
    func `pairs are in the order of their keys, arrays in their own`(
        json: String, text: String
    ) throws {
        #expect(try query(json) == text)
        var writer = FormWriter()
        try JSONDocument.value(of: Array(json.utf8)).replay(into: &writer)
        #expect(try writer.finish() == Array(text.utf8))
    }

    @Test func `data and dates are text as in JSON`() throws {
        let value = DocumentValue.dictionary(["data": .data([251, 255]), "date": .date(0.5)])
        let expected = "data=%2B/8%3D&date=1970-01-01T00%3A00%3A00.5Z"
        #expect(try QueryString.encode(value) == expected)
        var writer = FormWriter()
        try value.replay(into: &writer)
        #expect(try writer.finish() == Array(expected.utf8))
    }

    @Test func `a set repeats its name, its members in order`() throws {
        let value = try JSONDocument.value(
            of: Array(#"{"a":["c",null,10,9,true,"b"],"k":{"s":[2,1],"t":[2,1]}}"#.utf8))
        #expect(
            try QueryString.encode(value, sets: ["a", "k[s]"])
                == "a=1&a=10&a=9&a&a=b&a=c&k%5Bs%5D=1&k%5Bs%5D=2&k%5Bt%5D%5B%5D=2&k%5Bt%5D%5B%5D=1")
        #expect(throws: DocumentError(.form, .unrepresentable("an array in a set"), path: "a")) {
            try QueryString.encode(.dictionary(["a": .array([.array([])])]), sets: ["a"])
        }
    }

    @Test(
        arguments: [
            .null, .boolean(true), .number(1), .string("a"), .data([]), .date(0), .array([]),
        ] as [DocumentValue])
    func `only a dictionary has names`(value: DocumentValue) {
        let reason = DocumentError.Reason.unrepresentable(
            "\(value.kind) that is not in a dictionary")
        #expect(throws: DocumentError(.form, reason)) { try QueryString.encode(value) }
    }

    @Test func `a date beyond the years of four digits cannot be written`() {
        let reason = DocumentError.Reason.unrepresentable(
            "a date outside the years 0000 to 9999")
        #expect(throws: DocumentError(.form, reason, path: "a[b]")) {
            try QueryString.encode(.dictionary(["a": .dictionary(["b": .date(.nan)])]))
        }
    }

    @Test func `depth, values and output are held exactly`() throws {
        func reason(_ json: String, _ limits: DocumentLimits) throws -> DocumentError.Reason? {
            let value = try JSONDocument.value(of: Array(json.utf8))
            do throws(DocumentError) {
                _ = try QueryString.encode(value, limits: limits)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(try reason(#"{"a":[1]}"#, DocumentLimits(depth: 2)) == nil)
        #expect(try reason(#"{"a":[[1]]}"#, DocumentLimits(depth: 2)) == .tooDeep(maximum: 2))
        #expect(try reason(#"{"a":[1]}"#, DocumentLimits(values: 2)) == nil)
        #expect(
            try reason(#"{"a":[1,2]}"#, DocumentLimits(values: 2)) == .tooManyValues(maximum: 2))
        #expect(try reason(#"{"a":"b c"}"#, DocumentLimits(output: 7)) == nil)
        #expect(
            try reason(#"{"a":"b c"}"#, DocumentLimits(output: 6)) == .outputTooLarge(maximum: 6))
    }

    @Test func `a writer holds the limits while it takes events`() throws {
        var deep = FormWriter(limits: DocumentLimits(depth: 2))
        try deep.beginDictionary()
        try deep.beginArray()
        #expect(throws: DocumentError(.form, .tooDeep(maximum: 2))) { try deep.beginArray() }
        var many = FormWriter(limits: DocumentLimits(values: 2))
        try many.beginDictionary()
        try many.null()
        #expect(throws: DocumentError(.form, .tooManyValues(maximum: 2))) { try many.null() }
        var partly = FormWriter()
        try partly.beginDictionary()
        #expect(throws: DocumentError(.form, .malformed("the value is incomplete"))) {
            try partly.finish()
        }
    }
}
