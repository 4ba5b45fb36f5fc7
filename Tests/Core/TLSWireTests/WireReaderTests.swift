import Testing

@testable import Trust

@Suite("The reader of TLS structures")
struct WireReaderTests {
    private static let malformed: TLSWireError = .malformed("a message")

    /// What a closure reads from these bytes, and how many it leaves; `nil` if it throws.
    private func read<Value>(
        _ bytes: [UInt8], _ body: (inout WireReader) throws(TLSWireError) -> Value
    ) -> (value: Value, rest: Int)? {
        // A slice that does not begin at 0, as most do.
        var reader = WireReader(([0xFF] + bytes).dropFirst(), "a message")
        do throws(TLSWireError) {
            let value = try body(&reader)
            return (value, reader.remaining.count)
        } catch {
            #expect(error == Self.malformed)
            return nil
        }
    }

    @Test(arguments: 1...8)
    func `reads a number only if all of its bytes are there`(count: Int) {
        let bytes = (0..<count).map { UInt8(0x80 + $0) }
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        for length in 0..<count {
            #expect(
                read(Array(bytes.prefix(length))) { reader throws(TLSWireError) in
                    try reader.number(bytes: count)
                } == nil)
        }
        let all = read(bytes + [7]) { reader throws(TLSWireError) in
            try reader.number(bytes: count)
        }
        #expect(all.map { UInt64(bitPattern: Int64($0.value)) } == number)
        #expect(all?.rest == 1)
    }

    @Test(arguments: 1...3, [0, 1, 255])
    func `reads a vector only if all of it is there`(lengthBytes: Int, count: Int) {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let length = [UInt8](repeating: 0, count: lengthBytes - 1) + [UInt8(count)]
        let whole = length + content
        for end in 0..<whole.count {
            #expect(
                read(Array(whole.prefix(end))) { reader throws(TLSWireError) in
                    try reader.vector(lengthBytes: lengthBytes)
                } == nil)
        }
        let found = read(whole + [1, 2]) { reader throws(TLSWireError) in
            try reader.vector(lengthBytes: lengthBytes)
        }
        #expect(found.map { Array($0.value) } == content)
        #expect(found?.rest == 2)
    }

    @Test(
        arguments: [
            ([], nil), ([0, 0], nil), ([0, 1, 5], nil), ([0, 2, 1, 2], [0x0102]),
            ([0, 3, 1, 2, 3], nil), ([0, 4, 1, 2, 0xFF, 0xFE], [0x0102, 0xFFFE]),
            ([0, 4, 1, 2, 3], nil),
        ] as [([UInt8], [UInt16]?)])
    func `reads a vector of numbers, at least one and all of them whole`(
        bytes: [UInt8], numbers: [UInt16]?
    ) {
        let found = read(bytes) { reader throws(TLSWireError) in
            try reader.shorts(lengthBytes: 2)
        }
        #expect(found?.value == numbers)
    }

    @Test(
        arguments: [
            ([], nil), ([0, 0], nil), ([0, 1, 0], nil), ([0, 2, 1, 9], [[9]]),
            ([0, 3, 1, 9, 0], nil), ([0, 4, 1, 9, 1, 8], [[9], [8]]), ([0, 3, 1, 9, 1], nil),
            ([0, 3, 2, 9, 8], [[9, 8]]), ([0, 2, 2, 9], nil), ([0, 2, 2, 9, 8], nil),
        ] as [([UInt8], [[UInt8]]?)])
    func `reads a vector of vectors, at least one and none of them empty`(
        bytes: [UInt8], vectors: [[UInt8]]?
    ) {
        let found = read(bytes) { reader throws(TLSWireError) in
            try reader.vectors(lengthBytes: 2, eachLengthBytes: 1)
        }
        #expect(found?.value.map { Array($0) } == vectors)
    }

    @Test func `ends only where nothing is left`() {
        #expect(read([]) { reader throws(TLSWireError) in try reader.end() } != nil)
        #expect(read([1]) { reader throws(TLSWireError) in try reader.end() } == nil)
        #expect(
            read([1]) { reader throws(TLSWireError) in
                _ = try reader.byte()
                try reader.end()
            } != nil)
    }
}
