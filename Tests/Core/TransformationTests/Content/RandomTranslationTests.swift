import Documents
import PinfoldConfiguration
import Testing

@testable import Transformation

/// Pseudorandom numbers from a seed (SplitMix64).
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return bits ^ bits >> 31
    }

    mutating func text(_ characters: [Character], _ counts: ClosedRange<Int>) -> String {
        let count = Int.random(in: counts, using: &self)
        return String((0..<count).map { _ in characters.randomElement(using: &self) ?? "x" })
    }

    /// What every format can represent: nonempty dictionaries with sorted XML names, texts without
    /// surrounding white space, arrays of two texts or more.
    mutating func common(depth: Int) -> DocumentValue {
        switch Int.random(in: depth > 2 ? 2...2 : depth > 0 ? 0...2 : 0...1, using: &self) {
        case 0: return .string(content())
        case 1:
            return .array(
                (0..<Int.random(in: 2...5, using: &self)).map { _ in .string(content()) })
        default:
            let keys = Set(
                (0..<Int.random(in: 1...5, using: &self)).map { _ in
                    text(Array("abcde-_.9"), 0...6)
                })
            var dictionary = DocumentDictionary()
            for key in keys.sorted() { dictionary["k" + key] = common(depth: depth - 1) }
            return .dictionary(dictionary)
        }
    }

    private mutating func content() -> String {
        let ends = Array("ax<&>\"'%+=[]é漢😀/?;")
        return text(ends, 1...1) + text(ends + [" ", "\n", "\t"], 0...9) + text(ends, 1...1)
    }

    /// What JSON and property lists can represent.
    mutating func value(depth: Int) -> DocumentValue {
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &self) {
        case 0: return .boolean(.random(using: &self))
        case 1: return .number(DocumentNumber(Int64.random(in: .min ... .max, using: &self)))
        case 2: return .number(DocumentNumber(Double.random(in: -1e9...1e9, using: &self)) ?? 0)
        case 3: return .string(text(Array("abc<&>\"'\\ \n\té漢😀"), 0...20))
        case 4:
            return .array(
                (0..<Int.random(in: 0...9, using: &self)).map { _ in value(depth: depth - 1) })
        default:
            var dictionary = DocumentDictionary()
            for _ in 0..<Int.random(in: 0...9, using: &self) {
                dictionary[text(Array("abc<&>\"' é"), 0...5)] = value(depth: depth - 1)
            }
            return .dictionary(dictionary)
        }
    }
}

@Suite("Content at random")
struct RandomTranslationTests {
    private static let formats: [BodyFormat] = [.json, .form, .plist, .xml]
    private let seed = UInt64.random(in: 0 ... .max)

    @Test(arguments: formats, formats)
    func `comes back as it was, from every format over every other`(
        from: BodyFormat, over: BodyFormat
    ) throws {
        guard from != over else { return }
        var random = Seeded(state: seed)
        for _ in 0..<100 {
            let value = DocumentValue.dictionary(["root": random.common(depth: 3)])
            let json = String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
            let first = from == .json ? json : try translated(json, .json, from).text
            let second = try translated(first, from, over).text
            #expect(try translated(second, over, from).text == first, "seed \(seed)")
            guard over != .json else { continue }
            #expect(try translated(second, over, .json).text == json, "seed \(seed)")
        }
    }

    @Test func `comes back from a property list with its numbers and truth values`() throws {
        var random = Seeded(state: seed)
        for _ in 0..<200 {
            let bytes = try JSONWriter.bytes(of: random.value(depth: 4))
            let json = String(decoding: bytes, as: UTF8.self)
            let list = try translated(json, .json, .plist).text
            #expect(try translated(list, .plist, .json).text == json, "seed \(seed)")
        }
    }

    @Test(arguments: formats)
    func `in parts is what it is as a form`(to: BodyFormat) throws {
        var random = Seeded(state: seed)
        let type = "multipart/form-data; boundary=b"
        for _ in 0..<100 {
            let value = DocumentValue.dictionary(["root": random.common(depth: 3)])
            let pairs = try QueryString.pairs(value)
            let parts = pairs.map { pair in
                "--b\r\nContent-Disposition: form-data; name=\"\(pair.name)\"\r\n\r\n"
                    + (pair.text ?? "") + "\r\n"
            }
            let form = try QueryString.encode(value)
            let made = try translated(
                parts.joined() + "--b--\r\n", .multipart, to, type: type)
            let expected = to == .form ? form : try translated(form, .form, to).text
            #expect(made.text == expected, "seed \(seed)")
        }
    }

    @Test(arguments: formats)
    func `with changed bytes is translated, or refused with whole characters`(
        from: BodyFormat
    ) throws {
        var random = Seeded(state: seed)
        var refused = 0
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: from, to: from == .json ? .xml : .json)
        let translation = try #require(RequestTranslation(rules))
        for _ in 0..<100 {
            let value = DocumentValue.dictionary(["root": random.common(depth: 3)])
            let json = String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
            let text = from == .json ? json : try translated(json, .json, from).text
            for _ in 0..<20 {
                var bytes = Array(text.utf8)
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    bytes[.random(in: 0..<bytes.count, using: &random)] = .random(
                        in: 0...255, using: &random)
                }
                do throws(TransformationError) {
                    _ = try translation.translate(bytes, contentType: nil)
                } catch {
                    refused += 1
                    #expect(error.excerpt.count <= 200, "seed \(seed)")
                    #expect(
                        String(validating: error.excerpt, as: UTF8.self) != nil, "seed \(seed)")
                }
            }
        }
        #expect(refused > 20, "seed \(seed)")
    }
}
