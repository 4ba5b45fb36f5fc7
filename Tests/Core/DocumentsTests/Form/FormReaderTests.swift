import Testing

@testable import Documents

private func failure(_ bytes: [UInt8], limits: DocumentLimits = .standard) -> DocumentError? {
    do throws(DocumentError) {
        _ = try FormReader.value(of: bytes, limits: limits)
        return nil
    } catch {
        return error
    }
}

@Suite("Forms that are read")
struct FormReaderTests {
    /// A form, and the equivalent JSON.
    @Test(
        arguments: [
            ("", "{}"), ("a=1", #"{"a":"1"}"#), ("a=1&b=2", #"{"a":"1","b":"2"}"#),
            ("b=1&a=2", #"{"b":"1","a":"2"}"#), ("a", #"{"a":null}"#), ("a=", #"{"a":""}"#),
            ("a&b=1", #"{"a":null,"b":"1"}"#), ("a==1", #"{"a":"=1"}"#), ("a=b=c", #"{"a":"b=c"}"#),
            ("=", #"{"":""}"#), ("=a", #"{"":"a"}"#), ("&", "{}"), ("&&a=1&&", #"{"a":"1"}"#),
            ("a=1;b=2", #"{"a":"1;b=2"}"#), ("a=true&b=null", #"{"a":"true","b":"null"}"#),
            // Escapes.
            ("a+b=c+d", #"{"a b":"c d"}"#), ("a=%20%2B%2b", #"{"a":" ++"}"#),
            ("a=%C3%A9", #"{"a":"é"}"#), ("a=é", #"{"a":"é"}"#), ("%61=1", #"{"a":"1"}"#),
            ("a=%F0%9F%98%80", #"{"a":"😀"}"#), ("a=%0D%0A%22", #"{"a":"\r\n\""}"#),
            ("a=%26%3D", #"{"a":"&="}"#), ("a%3D=1", #"{"a=":"1"}"#), ("a=%2525", #"{"a":"%25"}"#),
            // Dictionaries.
            ("a[b]=1", #"{"a":{"b":"1"}}"#), ("a%5Bb%5D=1", #"{"a":{"b":"1"}}"#),
            ("a[b]=1&a[c]=2", #"{"a":{"b":"1","c":"2"}}"#),
            ("a[b][c]=1", #"{"a":{"b":{"c":"1"}}}"#),
            ("a[b][c]=1&a[b][d]=2&a[e]", #"{"a":{"b":{"c":"1","d":"2"},"e":null}}"#),
            ("a[0]=1&a[1]=2", #"{"a":{"0":"1","1":"2"}}"#),
            ("a[b]&c=1", #"{"a":{"b":null},"c":"1"}"#),
            ("a[ b ]=1", #"{"a":{" b ":"1"}}"#),
            ("x=1&a[b]=2&x2=3", #"{"x":"1","a":{"b":"2"},"x2":"3"}"#),
            // Arrays.
            ("a[]=1", #"{"a":["1"]}"#), ("a[]=1&a[]=2", #"{"a":["1","2"]}"#),
            ("a[]", #"{"a":[null]}"#),
            ("a=1&a=2", #"{"a":["1","2"]}"#), ("a=1&b=3&a=2", #"{"a":["1","2"],"b":"3"}"#),
            ("a&a=1", #"{"a":[null,"1"]}"#), ("a=1&a=2&a=3", #"{"a":["1","2","3"]}"#),
            ("a=1&a[]=2", #"{"a":["1","2"]}"#), ("a[]=1&a=2", #"{"a":["1","2"]}"#),
            ("a[b]=1&a[b]=2", #"{"a":{"b":["1","2"]}}"#),
            ("a[b][]=1&a[b][]=2", #"{"a":{"b":["1","2"]}}"#),
            // Arrays of dictionaries and of arrays.
            ("a[][b]=1", #"{"a":[{"b":"1"}]}"#),
            ("a[][b]=1&a[][c]=2", #"{"a":[{"b":"1","c":"2"}]}"#),
            ("a[][b]=1&a[][b]=2", #"{"a":[{"b":"1"},{"b":"2"}]}"#),
            (
                "a[][b]=1&a[][c]=2&a[][b]=3&a[][c]=4",
                #"{"a":[{"b":"1","c":"2"},{"b":"3","c":"4"}]}"#
            ),
            ("a[][b][]=1&a[][b][]=2", #"{"a":[{"b":["1","2"]}]}"#),
            (
                "a[][b][c]=1&a[][b][d]=2&a[][b][c]=3",
                #"{"a":[{"b":{"c":"1","d":"2"}},{"b":{"c":"3"}}]}"#
            ),
            ("a[][b]=1&a[][b][c]=2", #"{"a":[{"b":"1"},{"b":{"c":"2"}}]}"#),
            ("a[][]=1&a[][]=2", #"{"a":[["1","2"]]}"#),
            ("a[]=1&a[][b]=2", #"{"a":["1",{"b":"2"}]}"#),
            ("a[][b]=1&a[]=2&a[][b]=3", #"{"a":[{"b":"1"},"2",{"b":"3"}]}"#),
            ("a[][b]=1&a[][]=2", #"{"a":[{"b":"1"},["2"]]}"#),
            // Brackets that are characters.
            ("a[b=1", #"{"a[b":"1"}"#), ("a]=1", #"{"a]":"1"}"#), ("[a]=1", #"{"[a]":"1"}"#),
            ("[]=1", #"{"[]":"1"}"#), ("a[b]c=1", #"{"a[b]c":"1"}"#),
            ("a[[b]]=1", #"{"a[[b]]":"1"}"#),
            ("a[b]]=1", #"{"a[b]]":"1"}"#), ("a[b][=1", #"{"a[b][":"1"}"#),
            ("a]b[c]=1", #"{"a]b[c]":"1"}"#),
            ("a[b]c[d]=1", #"{"a[b]c[d]":"1"}"#), ("a=[b]", #"{"a":"[b]"}"#),
        ])
    func `a form is structured by its names`(form: String, json: String) throws {
        let expected = try JSONDocument.value(of: Array(json.utf8))
        #expect(try FormReader.value(of: Array(form.utf8)) == expected)
    }

    @Test(
        arguments: [
            ("a=%", 2), ("a=%4", 2), ("a=%4&b=41", 2), ("a=%zz", 2), ("a=%4g", 2), ("a=b%", 3),
            ("%=1", 0), ("a=1&b=%+1", 6), ("a=%%41", 2), ("a=%u0041", 2), ("%4=11", 0),
        ])
    func `a malformed escape is refused where it begins`(form: String, offset: Int) throws {
        let error = try #require(failure(Array(form.utf8)))
        #expect(error.reason == .malformed("a percent sign without two hex digits"))
        #expect(error.location?.offset == offset)
    }

    @Test(arguments: [("a=%00", 2), ("a=b\0", 3), ("%00=1", 0), ("a=1&\0", 4)])
    func `a NUL is refused`(form: String, offset: Int) throws {
        let error = try #require(failure(Array(form.utf8)))
        #expect(error.reason == .malformed("a NUL"))
        #expect(error.location?.offset == offset)
    }

    @Test(arguments: JSONTexts.brokenUTF8.indices)
    func `what is not UTF-8 is refused, written as it is or with escapes`(index: Int) {
        let (bytes, _) = JSONTexts.brokenUTF8[index]
        #expect(failure(Array("a=1&b=".utf8) + bytes)?.reason == .encoding)
        #expect(failure(Array("a=1&".utf8) + bytes)?.reason == .encoding)
        let escaped = bytes.map { "%" + (($0 < 16 ? "0" : "") + String($0, radix: 16)) }.joined()
        let error = failure(Array("a=1&b=\(escaped)".utf8))
        #expect(error?.reason == .encoding)
        #expect(error?.location == DocumentLocation(offset: 6, line: 1, column: 7))
    }

    @Test(
        arguments: [
            ("a=1&a[b]=2", 4), ("a[b]=1&a=2", 7), ("a[b]=1&a[]=2", 7), ("a[]=1&a[b]=2", 6),
            ("a=1&a=2&a[b]=3", 8), ("a[b][c]=1&a[b]=2", 10), ("a[b]=1&a[b][c]=2", 7), ("a&a[b]", 2),
        ])
    func `a name is a dictionary or something else, not both`(form: String, offset: Int) throws {
        let error = try #require(failure(Array(form.utf8)))
        #expect(error.reason == .malformed("a name is both a dictionary and something else"))
        #expect(error.location?.offset == offset)
        #expect(error.path.hasPrefix("a"))
    }

    @Test func `bytes, values and depth are held exactly`() throws {
        func reason(_ form: String, _ limits: DocumentLimits) -> DocumentError.Reason? {
            failure(Array(form.utf8), limits: limits)?.reason
        }
        #expect(reason("a=1", DocumentLimits(bytes: 3)) == nil)
        #expect(reason("a=12", DocumentLimits(bytes: 3)) == .tooLarge(maximum: 3))
        #expect(reason("a&b&c", DocumentLimits(values: 4)) == nil)
        #expect(reason("a&b&c&d", DocumentLimits(values: 4)) == .tooManyValues(maximum: 4))
        #expect(reason("a[]=1&a[]=2", DocumentLimits(values: 4)) == nil)
        #expect(reason("a[]=1&a[]=2&b", DocumentLimits(values: 4)) == .tooManyValues(maximum: 4))
        #expect(reason("a=1&a=2", DocumentLimits(values: 4)) == nil)
        #expect(reason("a=1&a=2&a=3", DocumentLimits(values: 4)) == .tooManyValues(maximum: 4))
        #expect(reason("a[b][c]=1", DocumentLimits(depth: 3)) == nil)
        #expect(reason("a[b][c][d]=1", DocumentLimits(depth: 3)) == .tooDeep(maximum: 3))
        #expect(reason("a[b]=1&a[b]=2", DocumentLimits(depth: 3)) == nil)
        #expect(reason("a[b]=1&a[b]=2", DocumentLimits(depth: 2)) == .tooDeep(maximum: 2))
        let deep = "a" + String(repeating: "[b]", count: 100_000)
        #expect(reason(deep, .standard) == .tooDeep(maximum: 128))
        #expect(reason(deep, DocumentLimits(depth: 50)) == .tooDeep(maximum: 50))
    }

    @Test func `many names are read, also of one array`() throws {
        let form = (0..<50_000).map { "n\($0)=\($0)" }.joined(separator: "&")
        let value = try FormReader.value(of: Array(form.utf8))
        #expect(value["n49999"] == .string("49999"))
        let array = String(repeating: "a[]=1&", count: 50_000)
        guard case .array(let values)? = try FormReader.value(of: Array(array.utf8))["a"] else {
            Issue.record("no array")
            return
        }
        #expect(values.count == 50_000)
    }
}

@Suite("Forms of chance")
struct FormRandomTests {
    private static let seed = UInt64.random(in: 0..<1_000_000)

    @Test func `a flat form is read as it was written`() throws {
        for seed in Self.seed..<Self.seed + 300 {
            var dice = JSONDice(seed: seed)
            var dictionary = DocumentDictionary()
            for index in 0..<5 {
                let text = dice.text().filter { $0 != "\0" && !$0.unicodeScalars.contains("\0") }
                dictionary["k\(index)"] = index == 3 ? .null : .string(text)
            }
            let text = try QueryString.encode(.dictionary(dictionary))
            let isASCII = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            #expect(isASCII, "seed \(seed)")
            let value = try FormReader.value(of: Array(text.utf8))
            #expect(value == .dictionary(dictionary), "seed \(seed)")
        }
    }

    @Test func `changed bytes are a value or a typed error`() throws {
        var taken = 0
        for seed in Self.seed..<Self.seed + 2000 {
            var dice = JSONDice(seed: seed)
            let form = Array("a[b][]=1&a[b][]=%C3%A9&c[][d]=1&c[][e]=2&f&g=1&g=2".utf8)
            do throws(DocumentError) {
                let value = try FormReader.value(of: dice.mutated(form))
                _ = try QueryString.encode(value)
                taken += 1
            } catch {
                #expect(error.format == .form, "seed \(seed)")
            }
        }
        #expect(taken > 100 && taken < 2000, "seed \(Self.seed)")
    }
}
