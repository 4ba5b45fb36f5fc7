import Testing

@testable import HTTP2

@Suite("The static table")
struct StaticTableTests {
    @Test func `is that of RFC 7541, Appendix A`() throws {
        #expect(StaticTable.count == staticFields.count)
        for (index, field) in staticFields.enumerated() {
            var decoder = HeaderDecoder()
            #expect(try fields(of: [0x80 | UInt8(index + 1)], by: &decoder) == [field])
        }
    }

    @Test func `has the roles and faults that its bytes have`() {
        for index in 1...StaticTable.count {
            let line = StaticTable.line(index)
            let (role, nameFault) = NameSyntax.examine(line.start, line.nameCount)
            #expect(line.traits.role == role)
            // A path that is not there is empty; the table has none.
            let examined = FieldTraits(
                role: role, nameFault: nameFault, value: line.value, count: line.valueCount)
            #expect(line.traits.fault == examined.fault, "\(index)")
        }
    }

    @Test func `finds its names in any letter case, and no others`() {
        for (index, field) in staticFields.enumerated() where field.name[0] != 0x3A {
            let first = staticFields.firstIndex { $0.name == field.name }.map { $0 + 1 }
            for name in [field.name, field.name.map { 0x61...0x7A ~= $0 ? $0 - 0x20 : $0 }] {
                #expect(StaticNames.index(of: name) == first, "\(index)")
                for place in name.indices {
                    for byte in [UInt8(0x0D), 0x2D, 0x5F, 0x71, name[place] ^ 0x80] {
                        var other = name
                        other[place] = byte
                        guard other != name else { continue }
                        #expect(StaticNames.index(of: other) == 0)
                    }
                }
                #expect(StaticNames.index(of: Array(name.dropLast()) + [0x7E]) == 0)
            }
        }
        #expect(StaticNames.index(of: [0x78]) == 0)
    }
}

extension StaticNames {
    fileprivate static func index(of name: [UInt8]) -> Int {
        name.withUnsafeBytes { index($0.baseAddress!, $0.count) }
    }
}

@Suite("Numbers in header blocks")
struct PrefixIntegerTests {
    private func written(_ value: Int, _ bits: Int) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: 8)
        let count = memory.withUnsafeMutableBytes {
            PrefixInteger.write(value, mask: 1 << bits - 1, pattern: 0, to: $0.baseAddress!)
                - UnsafeMutableRawPointer($0.baseAddress!)
        }
        return Array(memory[..<count])
    }

    private func read(_ bytes: [UInt8], _ bits: Int) throws -> (value: Int, rest: Int) {
        let mask = 1 << bits - 1
        guard let first = bytes.first else { throw HeaderCompressionError.truncatedBlock }
        guard Int(first) == mask else { return (Int(first), bytes.count - 1) }
        return try bytes.withUnsafeBytes { bytes in
            var next = bytes.baseAddress! + 1
            let end = bytes.baseAddress! + bytes.count
            let value = try PrefixInteger.readRest(mask, &next, end: end)
            return (value, end - next)
        }
    }

    @Test(arguments: [
        (10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a"), (30, 5, "1e"), (31, 5, "1f00"),
        (158, 5, "1f7f"), (159, 5, "1f8001"),
    ])
    func `are those of RFC 7541, C_1, and those around a byte's end`(
        value: Int, bits: Int, bytes: String
    ) throws {
        #expect(written(value, bits) == hex(bytes))
        let (read, rest) = try read(hex(bytes), bits)
        #expect(read == value)
        #expect(rest == 0)
    }

    @Test func `are read as they were written, up to four bytes after the prefix`() throws {
        for bits in 4...7 {
            for exponent in 0..<28 {
                for value in [1 << exponent - 1, 1 << exponent, 1 << exponent + 1] {
                    let bytes = written(value, bits)
                    #expect(try read(bytes, bits).value == value)
                    for count in 1..<max(1, bytes.count) {
                        #expect(throws: HeaderCompressionError.truncatedBlock) {
                            try read(Array(bytes[..<count]), bits)
                        }
                    }
                }
            }
            let full = UInt8(1 << bits - 1)
            #expect(
                try read([full, 0xFF, 0xFF, 0xFF, 0x7F], bits).value == 1 << bits - 1 + 1 << 28 - 1)
            #expect(throws: HeaderCompressionError.integerTooLarge) {
                try read([full, 0xFF, 0xFF, 0xFF, 0xFF, 0x00], bits)
            }
            #expect(throws: HeaderCompressionError.integerTooLarge) {
                try read([full, 0x80, 0x80, 0x80, 0x80, 0x00], bits)
            }
            // Zeros that are not needed are allowed.
            #expect(try read([full, 0x80, 0x80, 0x00], bits).value == 1 << bits - 1)
        }
    }
}
