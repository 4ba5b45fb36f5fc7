import Foundation
import Testing

@testable import Documents

@Suite("Property lists, as they are written")
struct PropertyListWritingTests {
    private func failure(
        _ value: DocumentValue, _ form: PropertyListForm, limits: DocumentLimits = .standard
    ) -> DocumentError? {
        #expect(throws: DocumentError.self) { try propertyList(value, form, limits: limits) }
    }

    @Test(arguments: PropertyListForm.allCases)
    func `errors have the path of what cannot be written`(form: PropertyListForm) {
        let values: [(DocumentValue, String)] = [
            (["orders": .array([.number(1), ["a<&>\r b": .null]])], "orders[1].a<&>\r b"),
            (["ß": ["x": .string("y"), "ü": .array([.null])]], "ß.ü[0]"),
            (.array([.array([]), .array([.boolean(true), .null])]), "[1][1]"),
            (["a": ["b": .string("c")], "d": .null], "d"),
            ([String(repeating: "k", count: 300): .null], String(repeating: "k", count: 120)),
            (.null, ""),
        ]
        for (value, path) in values {
            let error = failure(value, form)
            #expect(error?.reason == .unrepresentable("null"))
            #expect(error?.path == path)
        }
        let huge = DocumentNumber("1e999")
        let number = failure(["a": .array([.number(huge ?? 0)])], form)
        #expect(number?.reason == .numberOutOfRange("1e999"))
        #expect(number?.path == "a[0]")
    }

    @Test func `a key that XML has not is in the path of its error`() {
        let error = failure(["a": ["b": .string("c"), "d\u{1}": .string("e")]], .xml)
        #expect(error?.reason == .unrepresentable("the character U+0001"))
        #expect(error?.path == "a.d\u{1}")
        let value = failure(["a&": .string("\u{FFFF}")], .xml)
        #expect(value?.reason == .unrepresentable("the character U+FFFF"))
        #expect(value?.path == "a&")
    }

    @Test(arguments: PropertyListForm.allCases)
    func `the limits of depth and bytes hold to the last one`(form: PropertyListForm) throws {
        var value = DocumentValue.array([])
        for _ in 1..<10 { value = ["k": .array([value, .string("äö<>&")])] }
        var limits = DocumentLimits(depth: 19)
        let whole = try propertyList(value, form, limits: limits)
        limits.output = whole.count
        #expect(try propertyList(value, form, limits: limits) == whole)
        for fewer in [1, 2, 8, whole.count / 2, whole.count] {
            limits.output = whole.count - fewer
            let error = failure(value, form, limits: limits)
            #expect(error?.reason == .outputTooLarge(maximum: limits.output))
        }
        limits = DocumentLimits(depth: 18)
        #expect(failure(value, form, limits: limits)?.reason == .tooDeep(maximum: 18))
    }

    @Test func `numbers are the doubles nearest to them`() throws {
        var texts = [
            "0.1", "-0.0", "0.30000000000000004", "9007199254740991.5", "9007199254740993.0",
            "123456789.12345678", "1.7976931348623157e308", "4.9e-324", "1e22", "1E-5", "-2.5e+3",
            "00.5", "0.000000000000000001", "1234567890123456.7",
            String(repeating: "9", count: 300)
                + ".5",
        ].compactMap { DocumentNumber($0) }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let digits = Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)
            let fraction = String(Int.random(in: 0...9_999_999, using: &random))
            texts.append(DocumentNumber(verified: "\(digits).\(fraction)"))
        }
        let bytes = try propertyList(.array(texts.map { .number($0) }), .binary)
        let list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        let found = try #require(list as? [Double])
        #expect(found.count == texts.count)
        for (number, text) in zip(found, texts) {
            #expect(number.bitPattern == text.double.bitPattern, "\(text.text)")
        }
    }

    @Test(arguments: [
        "0", "-0", "7", "-7", "255", "256", "65536", "4294967296", "99999999999999999",
        "-99999999999999999", "999999999999999999", "-999999999999999999", "1000000000000000000",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808",
        "18446744073709551615",
    ])
    func `integers are what they were, in both forms`(text: String) throws {
        let number = DocumentValue.number(DocumentNumber(verified: text))
        let expected = text == "-0" ? DocumentValue.number(0) : number
        for form in PropertyListForm.allCases {
            let bytes = try propertyList(.array([number, number]), form)
            #expect(try PropertyListReader.value(of: bytes) == .array([expected, expected]))
        }
    }

    @Test(arguments: 0...20)
    func `what is escaped is found at every place of a text`(length: Int) throws {
        for place in 0...length {
            for special in ["<", ">", "&", "\r", "\n", "\t", "\"", "\u{FFFD}", "😀", "\u{7F}"] {
                let text =
                    String(repeating: "a", count: place) + special
                    + String(repeating: "=", count: length - place)
                let value: DocumentValue = [text: .string(text)]
                for form in PropertyListForm.allCases {
                    let bytes = try propertyList(value, form)
                    #expect(try PropertyListReader.value(of: bytes) == value)
                }
                let json = try JSONWriter.bytes(of: value)
                #expect(try JSONDocument.value(of: json) == value)
            }
        }
    }

    @Test func `a text in UTF-16 is whole`() {
        func utf8(_ units: [UInt16]) -> String? {
            var output = OutputBytes(capacity: 0)
            let bytes = units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
            let isWhole = bytes.withUnsafeBytes { output.append(utf16: $0) }
            return isWhole ? output.text(0..<output.count) : nil
        }
        let text = "a\u{7F}\u{80}ß\u{7FF}\u{800}漢\u{FFFF}😀\u{10FFFF}"
        #expect(utf8(Array(text.utf16)) == text)
        #expect(utf8([]) == "")
        for damaged: [UInt16] in [
            [0xD800], [0x61, 0xDBFF], [0xDC00], [0xDFFF, 0xD800], [0xD800, 0xD800],
            [0xD83D, 0x61], [0xD83D, 0xE000],
        ] {
            #expect(utf8(damaged) == nil)
        }
        var output = OutputBytes(capacity: 0)
        let half: [UInt8] = [0x61]
        let isWhole = half.withUnsafeBytes { output.append(utf16: $0) }
        #expect(!isWhole)
    }
}

@Suite("The objects of a binary property list that is written")
struct SingleObjectsTests {
    private func numbers(_ texts: [String], hash: (String) -> UInt64) -> [UInt32] {
        var body = OutputBytes(capacity: 0)
        var singles = SingleObjects(capacity: 0)
        var next: UInt32 = 0
        return texts.map { text in
            let start = body.count
            body.append(UInt8(text.utf8.count))
            body.append(text)
            let number = singles.number(from: start, of: body, hash: hash(text), else: next)
            if number == next { next += 1 } else { body.cut(to: start) }
            return number
        }
    }

    @Test func `equal ones have one number, others their own`() {
        let texts = (0..<5000).map { "\($0 % 1000)" }
        let hash = SeededHash()
        let found = numbers(texts) { text in
            var text = text
            return text.withUTF8 { hash.value(of: UnsafeRawBufferPointer($0)) }
        }
        #expect(found == (0..<5000).map { UInt32($0 % 1000) })
    }

    /// As an attacker who knew the seeds would do.
    @Test func `of one hash, those that are not looked for are never another's`() {
        let texts = (0..<2000).map { "\($0 % 1000)" }
        let found = numbers(texts) { _ in 7 }
        #expect(Array(found[..<1000]) == (0..<1000).map { UInt32($0) })
        for (index, number) in found[1000...].enumerated() {
            #expect(number == index || number >= 1000)
        }
        #expect(Array(found[1000..<1032]) == (0..<32).map { UInt32($0) })
        #expect(Set(found[1064...]).count == 936)
    }

    @Test func `texts of all lengths have hashes of their own`() {
        let hash = SeededHash()
        var found: Set<UInt64> = []
        var texts: Set<[UInt8]> = []
        for length in 0...40 {
            for place in 0..<max(1, length) {
                for byte: UInt8 in [0, 1, 0x41] {
                    var text = [UInt8](repeating: 0x30, count: length)
                    if length > 0 { text[place] = byte }
                    texts.insert(text)
                    found.insert(text.withUnsafeBytes { hash.value(of: $0) })
                }
            }
        }
        #expect(found.count == texts.count)
    }
}
