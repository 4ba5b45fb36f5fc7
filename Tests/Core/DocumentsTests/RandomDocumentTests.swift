import Testing

@testable import Documents

/// Pseudorandom numbers from a seed (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return bits ^ bits >> 31
    }

    mutating func text() -> String {
        let characters = Array("abcdefgh<&>\"' \né漢😀")
        return String(
            (0..<Int.random(in: 0..<12, using: &self)).map { _ in
                characters[Int.random(in: 0..<characters.count, using: &self)]
            })
    }

    /// A value that a property list can represent.
    mutating func value(depth: Int) -> DocumentValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &self) {
        case 0: return .boolean(.random(using: &self))
        case 1: return .number(DocumentNumber(Int64.random(in: .min ... .max, using: &self)))
        case 2: return .number(DocumentNumber(Double.random(in: -1...1, using: &self)) ?? 0)
        case 3: return .string(text())
        case 4:
            return .data(
                (0..<Int.random(in: 0..<90, using: &self)).map { _ in
                    UInt8.random(in: 0...255, using: &self)
                })
        case 5: return .date(Double(Int64.random(in: -1 << 35...1 << 35, using: &self)))
        case 6:
            return .array(
                (0..<Int.random(in: 0..<20, using: &self)).map { _ in
                    value(depth: depth - 1)
                })
        default:
            var dictionary = DocumentDictionary()
            for _ in 0..<Int.random(in: 0..<20, using: &self) {
                dictionary[text()] = value(depth: depth - 1)
            }
            return .dictionary(dictionary)
        }
    }
}

@Suite("Documents at random")
struct RandomDocumentTests {
    private let seed = UInt64.random(in: 0 ... .max)

    @Test(arguments: PropertyListForm.allCases)
    func `property lists are read as they were written`(form: PropertyListForm) throws {
        var random = Seeded(state: seed)
        for _ in 0..<200 {
            let value = random.value(depth: 4)
            let bytes = try propertyList(value, form)
            #expect(try PropertyListReader.value(of: bytes) == value, "seed \(seed)")
        }
    }

    @Test(arguments: PropertyListForm.allCases)
    func `property lists with changed bytes are a value or an error`(
        form: PropertyListForm
    ) throws {
        var random = Seeded(state: seed)
        var refused = 0
        for _ in 0..<100 {
            let bytes = try propertyList(random.value(depth: 3), form)
            for _ in 0..<30 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    changed[.random(in: 0..<changed.count, using: &random)] = .random(
                        in: 0...255, using: &random)
                }
                let limits = DocumentLimits(values: 10_000, output: 1 << 20)
                do { _ = try PropertyListReader.value(of: changed, limits: limits) } catch {
                    refused += 1
                }
            }
        }
        #expect(refused > 100, "seed \(seed)")
    }

    @Test func `XML with changed bytes is a document or an error`() throws {
        var random = Seeded(state: seed)
        var refused = 0
        let whole = Array(XmltodictVectors.rows.map(\.xml).joined(separator: "").utf8)
        let bytes = Array("<r>".utf8) + whole + Array("</r>".utf8)
        let document = try XMLTree(bytes)
        #expect(try XMLTree(document.write()) == document)
        for _ in 0..<3000 {
            var changed = bytes
            changed[.random(in: 0..<changed.count, using: &random)] = .random(
                in: 0...255, using: &random)
            do {
                let document = try XMLTree(changed)
                #expect(try XMLTree(document.write()) == document, "seed \(seed)")
                _ = try XMLValueReader.value(of: changed)
            } catch { refused += 1 }
        }
        #expect(refused > 100, "seed \(seed)")
    }
}
