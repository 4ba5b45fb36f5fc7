import Testing

@testable import Documents

private func value(
    _ text: String, limits: DocumentLimits = .standard
) throws(DocumentError) -> DocumentValue {
    try JSONDocument.value(of: Array(text.utf8), limits: limits)
}

private func failure(_ bytes: [UInt8], limits: DocumentLimits = .standard) -> DocumentError? {
    do throws(DocumentError) {
        _ = try JSONDocument.value(of: bytes, limits: limits)
        return nil
    } catch {
        return error
    }
}

private func failure(_ text: String, limits: DocumentLimits = .standard) -> DocumentError? {
    failure(Array(text.utf8), limits: limits)
}

@Suite("JSON that is read")
struct JSONDocumentTests {
    @Test func `the tables have texts of every kind`() {
        let count = JSONTexts.valid.count + JSONTexts.taken.count + JSONTexts.invalid.count
        #expect(count >= 300)
        #expect(Set(JSONTexts.valid.map { Array($0.utf8) }).count == JSONTexts.valid.count)
        #expect(Set(JSONTexts.invalid.map { Array($0.text.utf8) }).count == JSONTexts.invalid.count)
    }

    @Test(arguments: JSONTexts.valid + JSONTexts.taken)
    func `what is JSON is taken, and checked as it is read`(text: String) throws {
        _ = try value(text)
        try JSONValidator.validate(Array(text.utf8))
    }

    @Test(arguments: JSONTexts.invalid)
    func `what is no JSON is refused at the first wrong byte`(refused: JSONTexts.Refused) throws {
        let error = try #require(failure(refused.text))
        #expect(error.reason.label == refused.reason)
        #expect(error.location?.offset == refused.offset)
        #expect(throws: error) { try JSONValidator.validate(Array(refused.text.utf8)) }
    }

    @Test(arguments: JSONTexts.brokenUTF8.indices)
    func `a string that is not UTF-8 is refused at its first byte that is not`(
        index: Int
    ) throws {
        let (bytes, offset) = JSONTexts.brokenUTF8[index]
        for prefix in ["\"", "{\"", "[\"ab\", \""] {
            let start = Array(prefix.utf8)
            let error = try #require(failure(start + bytes + Array("\"".utf8)))
            #expect(error.reason == .encoding)
            #expect(error.location?.offset == start.count + offset)
        }
        #expect(failure([0x22] + bytes)?.reason.label != nil, "cut off")
    }

    @Test(arguments: JSONTexts.otherEncodings)
    func `what is not UTF-8 elsewhere is no value`(bytes: [UInt8]) {
        #expect(failure(bytes)?.reason.label == "malformed")
    }

    @Test func `values are those of the text`() throws {
        let text = #"""
            {"null": null, "yes": true, "no": false, "n": -12.50e+3, "s": "a\u00e9\n\ud83d\ude00",
             "array": [1, [], {}], "": {"k\"": "v"}}
            """#
        let expected: DocumentValue = .dictionary([
            "null": .null, "yes": .boolean(true), "no": .boolean(false),
            "n": .number(try #require(DocumentNumber("-12.50e+3"))),
            "s": .string("aé\n😀"),
            "array": .array([.number(1), .array([]), .dictionary([:])]),
            "": .dictionary(["k\"": .string("v")]),
        ])
        #expect(try value(text) == expected)
    }

    @Test func `members keep their order, and names are compared byte for byte`() throws {
        let value = try value("{\"b\":1,\"a\":2,\"é\":3,\"e\u{0301}\":4,\"A\":5}")
        guard case .dictionary(let dictionary) = value else { throw JSONShapeError.noDictionary }
        #expect(
            dictionary.members.map { Array($0.key.utf8) }
                == ["b", "a", "é", "e\u{0301}", "A"].map { Array($0.utf8) })
    }

    private enum JSONShapeError: Error { case noDictionary }

    @Test func `errors have line, column and path`() throws {
        let error = try #require(failure("{\n  \"orders\": [1, 2, 3, {\"price\": x}]\n}"))
        #expect(error.location == DocumentLocation(offset: 34, line: 2, column: 33))
        #expect(error.path == "orders[3].price")
        #expect(
            error.description == "json: not a value at line 2, column 33 (orders[3].price)")
    }

    @Test(
        arguments: [
            ("[1, 2", "[2]"), ("[1, x]", "[1]"), ("[", "[0]"), ("{", ""), ("{\"a\" 1}", "a"),
            ("{\"a\": {\"b\": [[", "a.b[0][0]"), ("{\"a\":1,\"a\":2}", "a"), ("x", ""),
            ("{\"a\":1, x", "a"), ("[[],[],{\"k\":]", "[2].k"), (#"{"\u0041":["\x"]}"#, "A[0]"),
        ])
    func `the path is what was being read`(text: String, path: String) {
        #expect(failure(text)?.path == path)
    }

    @Test func `a long path and long names are cut`() throws {
        let name = String(repeating: "n", count: 100)
        let text = String(repeating: "{\"\(name)\":", count: 50)
        let path = try #require(failure(text)?.path)
        #expect(path.hasPrefix(String(repeating: "n", count: 40) + "…."))
        #expect(path.hasSuffix("…"))
        #expect(path.utf8.count < 200)
    }

    @Test func `the reason for a fault is in words`() {
        func words(_ text: String) -> String? { failure(text)?.reason.text }
        #expect(words("") == "there is no value")
        #expect(words("1 2") == "more after the value")
        #expect(words("[1") == "the text ends within an array")
        #expect(words("[1 2]") == "neither , nor ] behind an element")
        #expect(words("{\"a\":1") == "the text ends within an object")
        #expect(words("{\"a\":1 2") == "neither , nor } behind a member")
        #expect(words("{1") == "not a member's name")
        #expect(words("{\"a\" 1") == "no colon behind a member's name")
        #expect(words("[x") == "not a value")
        #expect(words("[") == "the text ends within a value")
        #expect(words("\"a") == "the text ends within a string")
        #expect(words("\"\n\"") == "a control character in a string")
        #expect(words("\"\0\"") == "a control character in a string")
        #expect(words(#""\q""#) == "not an escape")
        #expect(words(#""\u12""#) == "not four hex digits behind \\u")
        #expect(words(#""\ud800""#) == "the escape of a surrogate without its other half")
        #expect(words(#""\udc00""#) == "the escape of a surrogate without its other half")
        #expect(words("1.") == "no digit behind a decimal point")
        #expect(words("1e") == "no digit in an exponent")
    }
}

@Suite("Limits of JSON that is read")
struct JSONLimitTests {
    @Test(arguments: [("[", "]"), ("{\"a\":", "}")])
    func `the depth is held exactly`(opening: String, closing: String) throws {
        func nested(_ depth: Int) -> String {
            String(repeating: opening, count: depth) + (opening == "[" ? "" : "1")
                + String(repeating: closing, count: depth)
        }
        let limits = DocumentLimits(depth: 5)
        _ = try value(nested(5), limits: limits)
        let error = try #require(failure(nested(6), limits: limits))
        #expect(error.reason == .tooDeep(maximum: 5))
        #expect(error.location?.offset == opening.count * 5)
    }

    @Test(arguments: [10_000, 1_000_000])
    func `a text nested thousands deep is refused, or checked where that is allowed`(
        depth: Int
    ) throws {
        let text = Array(repeating: UInt8(ascii: "["), count: depth)
        #expect(failure(text)?.reason == .tooDeep(maximum: 128))
        let limits = DocumentLimits(depth: depth)
        #expect(failure(text, limits: limits)?.location?.offset == DocumentBuilder.maximumDepth)
        let whole = text + Array(repeating: UInt8(ascii: "]"), count: depth)
        try JSONValidator.validate(whole, limits: limits)
    }

    @Test func `the number of values is held exactly, names not counted`() throws {
        let limits = DocumentLimits(values: 4)
        _ = try value("[1,2,3]", limits: limits)
        _ = try value("{\"a\":1,\"b\":{\"c\":2}}", limits: limits)
        let error = try #require(failure("[1,2,[],4]", limits: limits))
        #expect(error.reason == .tooManyValues(maximum: 4))
        #expect(failure("{\"a\":1,\"b\":{\"c\":[]},\"d\":{}}", limits: limits)?.path == "d")
    }

    @Test func `the bytes of the text are held exactly`() throws {
        _ = try value("[1]", limits: DocumentLimits(bytes: 3))
        #expect(failure("[1] ", limits: DocumentLimits(bytes: 3))?.reason == .tooLarge(maximum: 3))
    }

    @Test(arguments: ["12345", "-1234", "1.234", "1e234", "1E-34"])
    func `the characters of a number are held exactly`(number: String) throws {
        _ = try value("[\(number)]", limits: DocumentLimits(digits: 5))
        let error = try #require(failure("[\(number)0]", limits: DocumentLimits(digits: 5)))
        #expect(error.reason == .numberOutOfRange(number + "0"))
        #expect(error.location?.offset == 1)
        #expect(error.path == "[0]")
    }

    @Test func `no digit of a huge number is lost`() throws {
        let digits = String(repeating: "1234567890", count: 102)
        for text in [digits, "-" + digits, "0." + digits, "1e-99999999999999999999"] {
            #expect(try value(text) == .number(try #require(DocumentNumber(text))))
        }
        let million = String(repeating: "9", count: 1_000_000)
        #expect(failure(million)?.reason.label == "number-out-of-range")
    }

    @Test func `without memory there is a typed error, however much there was`() throws {
        let text = Array(
            ("[" + String(repeating: "{\"a\\n\":[\"b\\t\"]},", count: 200) + "1]").utf8)
        var refused = 0
        for memory in stride(from: 0, to: 60_000, by: 97) {
            let error: DocumentError? = text.withUnsafeBytes { bytes in
                do throws(DocumentError) {
                    _ = try JSONTape.reading(
                        bytes, limits: .standard, builds: true, memory: memory)
                    return nil
                } catch {
                    return error
                }
            }
            if let error {
                #expect(error.reason == .memory)
                refused += 1
            }
        }
        #expect(refused > 10 && refused < 600, "both were seen: \(refused)")
    }
}

@Suite("Names of JSON objects")
struct JSONNameTests {
    /// Around the number from which on names are sorted and not compared one by one.
    @Test(arguments: [2, 15, 16, 17, 18, 40, 1000])
    func `a name that is there twice is found among many`(count: Int) throws {
        for (first, second) in [(0, count - 1), (count / 2, count - 1), (0, 1)] {
            var names = (0..<count).map { "name-\($0)" }
            names[second] = names[first]
            guard first != second else { continue }
            let members = names.map { "\"\($0)\":0" }
            let text = "[7,{" + members.joined(separator: ",") + "}]"
            let error = try #require(failure(text))
            #expect(error.reason == .duplicateKey("name-\(first)"))
            #expect(error.path == "[1].name-\(first)")
            let before = members[..<second].joined(separator: ",").utf8.count
            #expect(error.location?.offset == 4 + before + 1)
        }
    }

    @Test func `of several names that are there twice the first is named`() throws {
        let names = (0..<50).map { "n\($0)" } + ["n40", "n3", "n40", "n1"]
        let text = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(failure(text)?.reason == .duplicateKey("n40"))
    }

    /// The digest of a name is of its length and its first and last eight bytes.
    @Test func `names that differ in their middle only are different, also with escapes`() throws {
        let names = (0..<100).map { "12345678-\(1000 + $0)-12345678" }
        let text = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        _ = try value(text)
        let again = text.dropLast() + #","12345678\u002d1050-12345678":0}"#
        #expect(failure(String(again))?.reason == .duplicateKey("12345678-1050-12345678"))
    }

    @Test func `names of other objects do not count`() throws {
        let object = "{" + (0..<30).map { "\"n\($0)\":0" }.joined(separator: ",") + "}"
        _ = try value("[\(object),\(object)]")
        _ = try value("{\"a\":\(object),\"n1\":\(object)}")
        let few = "{\"a\":1}"
        _ = try value("{\"b\":\(few),\"a\":\(few),\"c\":{\"a\":{\"a\":[\(few)]}}}")
    }

    @Test func `an object of a hundred thousand names is read`() throws {
        let members = (0..<100_000).map { "\"name-\($0)\":\($0)" }
        let text = "{" + members.joined(separator: ",") + "}"
        guard case .dictionary(let dictionary) = try value(text) else { return }
        #expect(dictionary.members.count == 100_000)
        let again = text.dropLast() + ",\"name-50000\":1}"
        #expect(failure(String(again))?.reason == .duplicateKey("name-50000"))
    }
}
