import Testing

@testable import Documents

/// Pseudorandom numbers from a seed (SplitMix64).
struct JSONDice: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func text() -> String {
        let characters = Array("ab \"\\/\n\0\u{1F}é\u{301}日😀[]{},:&=%+ \u{7F}\u{FFFF}\u{10FFFF}")
        let count = Int.random(in: 0..<24, using: &self)
        return String((0..<count).compactMap { _ in characters.randomElement(using: &self) })
    }

    mutating func number() -> DocumentNumber {
        let texts = [
            "0", "-0", "1.50", "-12e+3", "1E-400",
            String(Int.random(in: .min ... .max, using: &self)),
        ]
        return texts.randomElement(using: &self).flatMap(DocumentNumber.init) ?? 0
    }

    mutating func value(depth: Int) -> DocumentValue {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 5), using: &self) {
        case 0: return .null
        case 1: return .boolean(Bool.random(using: &self))
        case 2: return .number(number())
        case 3, 4: return .string(text())
        case 5, 6:
            let count = Int.random(in: 0..<6, using: &self)
            return .array((0..<count).map { _ in value(depth: depth - 1) })
        default:
            var dictionary = DocumentDictionary()
            for _ in 0..<Int.random(in: 0..<25, using: &self) {
                dictionary[text()] = value(depth: depth - 1)
            }
            return .dictionary(dictionary)
        }
    }

    /// The bytes with one to three of them changed, removed, inserted or moved.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &self) where !bytes.isEmpty {
            let index = Int.random(in: bytes.indices, using: &self)
            let marks = Array("[]{}\",:\\u0-+.eE \n\0%&=;\r\n-".utf8) + [0x80, 0xED, 0xA0, 0xFF]
            switch Int.random(in: 0..<5, using: &self) {
            case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &self)
            case 1: bytes[index] = marks.randomElement(using: &self) ?? 0
            case 2: bytes.remove(at: index)
            case 3: bytes.insert(marks.randomElement(using: &self) ?? 0, at: index)
            default:
                let end = Int.random(in: index...bytes.count, using: &self)
                bytes.insert(contentsOf: bytes[index..<end].prefix(64), at: index)
            }
        }
        return bytes
    }
}

@Suite("JSON of chance")
struct JSONRandomTests {
    private static let seed = UInt64.random(in: 0..<1_000_000)

    @Test func `what is written is read as it was`() throws {
        for seed in Self.seed..<Self.seed + 200 {
            var dice = JSONDice(seed: seed)
            let value = dice.value(depth: 4)
            let bytes = try JSONWriter.bytes(of: value)
            #expect(try JSONDocument.value(of: bytes) == value, "seed \(seed)")
            try JSONValidator.validate(bytes)
        }
    }

    /// What is accepted is written as a text with the same value; what is refused has a location.
    @Test func `changed bytes are a value or a typed error`() throws {
        var refused = 0
        for seed in Self.seed..<Self.seed + 2000 {
            var dice = JSONDice(seed: seed)
            let bytes = dice.mutated(try JSONWriter.bytes(of: dice.value(depth: 2)))
            do throws(DocumentError) {
                let value = try JSONDocument.value(of: bytes)
                let again = try JSONWriter.bytes(of: value)
                #expect(try JSONDocument.value(of: again) == value, "seed \(seed)")
                try JSONValidator.validate(bytes)
            } catch {
                refused += 1
                #expect((error.location?.offset ?? .max) <= bytes.count, "seed \(seed)")
                #expect(throws: error, "seed \(seed)") { try JSONValidator.validate(bytes) }
            }
        }
        #expect(refused > 500, "seed \(Self.seed)")
    }
}
