import Testing

@testable import Documents

/// A property list of these objects, of which the first is the root; all sizes are one byte.
private func list(_ objects: [[UInt8]], top: UInt8 = 0) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
        offsets.append(UInt8(bytes.count))
        bytes += object
    }
    let start = UInt8(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
    for number in [UInt8(objects.count), top, start] { bytes += [0, 0, 0, 0, 0, 0, 0, number] }
    return bytes
}

/// The number 2⁶³ and a bit, as a size or count.
private let huge: [UInt8] = [0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]

@Suite("Binary property lists")
struct BinaryPropertyListTests {
    @Test(
        arguments: [
            ([0x09], .boolean(true)), ([0x00], .null), ([0x10, 0xFF], .number(255)),
            ([0x13] + [UInt8](repeating: 0xFF, count: 8), .number(-1)),
            ([0x14] + [UInt8](repeating: 0xFF, count: 16), .number(-1)),
            (
                [0x14] + [UInt8](repeating: 0, count: 8) + [UInt8](repeating: 0xFF, count: 8),
                .number(DocumentNumber(UInt64.max))
            ),
            ([0x22, 0x3F, 0xC0, 0, 0], .number(DocumentNumber(verified: "1.5"))),
            ([0x33, 0, 0, 0, 0, 0, 0, 0, 0], .date(978_307_200)),
            ([0x42, 1, 2], .data([1, 2])), ([0x51, 0x41], .string("A")),
            ([0x62, 0xD8, 0x3D, 0xDE, 0x00], .string("😀")),
            ([0x5F, 0x10, 0x01, 0x41], .string("A")), ([0x80, 7], ["CF$UID": .number(7)]),
        ] as [([UInt8], DocumentValue)])
    func `have each kind of object`(object: [UInt8], value: DocumentValue) throws {
        #expect(try PropertyListReader.value(of: list([object])) == value)
    }

    @Test(
        arguments: [
            ([[0x15] + [UInt8](repeating: 0, count: 32)], "an integer is damaged"),
            ([[0x13, 0]], "an integer is damaged"),
            ([[0x21, 0, 0]], "a real number or date is damaged"),
            ([[0x32, 0, 0, 0, 0]], "a real number or date is damaged"),
            ([[0x0F]], "an object's type is unknown"),
            ([[0xC0]], "an object's type is unknown"),
            ([[0x52, 0x41]], "a string or data is truncated"),
            ([[0x5F] + huge], "a string or data is truncated"),
            ([[0x4F] + huge], "a string or data is truncated"),
            ([[0x6F] + huge], "a string or data is truncated"),
            ([[0xAF] + huge], "an array or dictionary is truncated"),
            ([[0xDF] + huge], "an array or dictionary is truncated"),
            ([[0xAF, 0x51, 0x41]], "a size is damaged"), ([[0xAF, 0x14]], "a size is damaged"),
            ([[0x51, 0xE9]], "an ASCII string has a byte that is not ASCII"),
            ([[0x61, 0xD8, 0x3D]], "a string is not UTF-16"),
            ([[0xA1, 9]], "object 9 does not exist"),
            ([[0xD1, 1, 1], [0x09]], "a key is not a string"),
            ([[0xA1, 0]], "an array or dictionary contains itself"),
            (
                [[0xA1, 1], [0xD1, 2, 0], [0x51, 0x41]], "an array or dictionary contains itself"
            ),
            ([[0x8F] + [UInt8](repeating: 0, count: 16)], "a UID is damaged"),
        ] as [([[UInt8]], String)])
    func `that are damaged are refused with a reason`(objects: [[UInt8]], reason: String) {
        let error = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(of: list(objects))
        }
        #expect(error?.reason == .malformed(reason))
        #expect(error?.location?.line == nil && error?.location != nil)
    }

    @Test func `with numbers beyond what there is are refused`() {
        for object in [
            [0x14] + [UInt8](repeating: 1, count: 16),
            [0x23, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0], [0x33, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0],
        ] as [[UInt8]] {
            let error = #expect(throws: DocumentError.self) {
                try PropertyListReader.value(of: list([object]))
            }
            #expect(error?.reason.label == "number-out-of-range")
        }
        let twice = list([[0xD2, 1, 1, 2, 2], [0x51, 0x41], [0x09]])
        let error = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(of: twice)
        }
        #expect(error?.reason == .duplicateKey("A"))
    }

    @Test func `count what is named many times each time, and its bytes`() {
        // Arrays of ten references to the next one: 10⁹ values.
        let bomb = (1...9).map { [0xAA] + [UInt8](repeating: $0, count: 10) } + [[0x09]]
        let error = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(of: list(bomb), limits: .init(values: 10_000))
        }
        #expect(error?.reason == .tooManyValues(maximum: 10_000))
        let text = [0x5E] + [UInt8](repeating: 0x41, count: 14)
        let other = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(
                of: list([[0xAA] + [UInt8](repeating: 1, count: 10), text]),
                limits: .init(output: 139))
        }
        #expect(other?.reason == .outputTooLarge(maximum: 139))
    }

    @Test func `with a wrong trailer are refused`() {
        let good = list([[0xA1, 1], [0x09]])
        #expect(throws: Never.self) { try PropertyListReader.value(of: good) }
        let trailer = good.count - 32
        for (place, values) in [
            (6, [0, 9, 255]), (7, [0, 9, 255]), (8, [1, 255]), (15, [0, 200]), (16, [1, 255]),
            (23, [2, 255]), (24, [1, 255]), (31, [0, 8, 255]),
        ] as [(Int, [UInt8])] {
            for value in values {
                var bytes = good
                bytes[trailer + place] = value
                #expect(throws: DocumentError.self, "byte \(place), \(value)") {
                    try PropertyListReader.value(of: bytes)
                }
            }
        }
        for end in good.indices {
            #expect(throws: DocumentError.self) {
                try PropertyListReader.value(of: Array(good[..<end]))
            }
        }
    }

    @Test func `are written with references as wide as they need, equal texts once`() throws {
        for count in [10, 300, 70_000] {
            let value: DocumentValue = .array(
                (0..<count).map { .number(DocumentNumber($0)) } + [
                    .string("same"), .string("same"),
                ])
            let bytes = try propertyList(value, .binary)
            #expect(try PropertyListReader.value(of: bytes) == value)
            #expect(bytes[bytes.count - 32 + 7] == (count == 10 ? 1 : count == 300 ? 2 : 4))
            #expect(
                Int(bytes[bytes.count - 32 + 13]) << 16 | Int(bytes[bytes.count - 32 + 14]) << 8
                    | Int(bytes[bytes.count - 32 + 15]) == count + 2)
        }
    }
}
