import TestSupport
import Testing

@testable import HTTP2

/// Decodes bit by bit, by comparison with every code.
func decodedSlowly(_ bytes: [UInt8]) throws(HeaderCompressionError) -> [UInt8] {
    var decoded: [UInt8] = []
    var code: UInt64 = 0
    var length = 0
    for bit in 0..<bytes.count * 8 {
        code = code << 1 | UInt64(bytes[bit / 8] >> UInt8(7 - bit % 8) & 1)
        length += 1
        guard let symbol = symbols[length << 32 | Int(code)] else { continue }
        if symbol == HuffmanCode.endOfString { throw .endOfStringSymbol }
        decoded.append(UInt8(symbol))
        (code, length) = (0, 0)
    }
    guard length < 8, code == 1 << UInt64(length) - 1 else { throw .malformedPadding }
    return decoded
}

private let symbols = Dictionary(
    uniqueKeysWithValues: (0...256).map {
        (HuffmanCode.length($0) << 32 | Int(HuffmanCode.code($0)), $0)
    })

/// Decodes as blocks are decoded; and must not write further than it may.
func decodedFast(_ bytes: [UInt8]) throws(HeaderCompressionError) -> [UInt8] {
    let room = HuffmanDecoder.bound(bytes.count) + 1
    var memory = [UInt8](repeating: 0xEE, count: room + 64)
    var count = 0
    var caught: HeaderCompressionError?
    memory.withUnsafeMutableBytes { target in
        bytes.withUnsafeBytes { source in
            let place = target.baseAddress!
            let start = source.baseAddress ?? UnsafeRawPointer(place)
            do throws(HeaderCompressionError) {
                let end = try HuffmanDecoder.shared.decode(
                    start, count: source.count, to: place)
                count = end - place
            } catch { caught = error }
        }
    }
    #expect(memory[room...].allSatisfy { $0 == 0xEE })
    if let caught { throw caught }
    return Array(memory[..<count])
}

/// A string as it is written, with its length before it.
func written(_ bytes: [UInt8], lowercases: Bool = false) -> [UInt8] {
    var memory = [UInt8](repeating: 0xEE, count: bytes.count + 64)
    let count = memory.withUnsafeMutableBytes { target in
        bytes.withUnsafeBytes { source in
            let place = target.baseAddress!
            return StringEncoder.write(
                source.baseAddress ?? UnsafeRawPointer(place), count: source.count,
                lowercases: lowercases, to: place) - place
        }
    }
    // The length, and what is touched after the string.
    #expect(memory[(bytes.count + 13)...].allSatisfy { $0 == 0xEE })
    return Array(memory[..<count])
}

private func outcome(
    _ decode: ([UInt8]) throws(HeaderCompressionError) -> [UInt8], _ bytes: [UInt8]
) -> Result<[UInt8], HeaderCompressionError> {
    do throws(HeaderCompressionError) { return .success(try decode(bytes)) } catch {
        return .failure(error)
    }
}

@Suite("The Huffman code")
struct HuffmanTests {
    @Test func `is complete, and canonical among codes of one length`() {
        let ordered = (0...256).sorted {
            (HuffmanCode.length($0), $0) < (HuffmanCode.length($1), $1)
        }
        var next: UInt64 = 0
        var length = HuffmanCode.length(ordered[0])
        for symbol in ordered {
            next <<= UInt64(HuffmanCode.length(symbol) - length)
            length = HuffmanCode.length(symbol)
            #expect(HuffmanCode.code(symbol) == next)
            next += 1
        }
        // The last code has all bits set.
        #expect(ordered.last == HuffmanCode.endOfString)
        #expect(next == 1 << UInt64(length))
    }

    @Test func `decodes what was encoded, pairs of bytes`() throws {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max where (first ^ second) % 3 == 0 {
                let bytes = [first, second, first, first, second]
                let text = written(bytes)
                if text[0] & 0x80 != 0 {
                    let coded = Array(text.dropFirst())
                    try #require(try decodedFast(coded) == bytes)
                } else {
                    try #require(text == [5] + bytes)
                }
            }
        }
    }

    @Test func `is used exactly where it makes a string shorter`() {
        var random = SeededRandom(seed: 1)
        for count in 0..<300 {
            for alphabet in [UInt8(0x61)...0x7A, 0x20...0x7E, 0...255] {
                let bytes = (0..<count).map { _ in UInt8.random(in: alphabet, using: &random) }
                let bits = bytes.reduce(0) { $0 + HuffmanCode.length(Int($1)) }
                let coded = (bits + 7) / 8
                let text = written(bytes)
                #expect((text[0] & 0x80 != 0) == (coded < count))
                let length = min(coded, count)
                #expect(text.count == length + (length < 127 ? 1 : length < 255 ? 2 : 3))
            }
        }
    }

    @Test func `turns capital letters into small ones where that is asked`() throws {
        for name in ["ETag", "X-CamelCase", "{}|\\^~", "A", String(repeating: "Ab~", count: 90)] {
            let lower = Array(name.lowercased().utf8)
            #expect(written(Array(name.utf8), lowercases: true) == written(lower))
        }
    }

    /// Bytes at random are invalid nearly always, and so are those with one bit changed.
    @Test func `is decoded as it is bit by bit`() {
        var random = SeededRandom(seed: 2)
        var kinds: Set<String> = []
        for round in 0..<6000 {
            var bytes: [UInt8]
            if round % 2 == 0 {
                let length = Int.random(in: 0...24, using: &random)
                bytes = (0..<length).map { _ in
                    // Many ones, so that long codes occur.
                    UInt8.random(in: 0...255, using: &random)
                        | (Bool.random(using: &random) ? 0xFF : 0)
                }
            } else {
                let count = Int.random(in: 1...40, using: &random)
                bytes = encodedWithCode(
                    (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
                if round % 4 == 1, !bytes.isEmpty {
                    let bit = Int.random(in: 0..<bytes.count * 8, using: &random)
                    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                }
            }
            let slowly = outcome(decodedSlowly, bytes)
            let fast = outcome(decodedFast, bytes)
            switch (slowly, fast) {
            case (.success(let left), .success(let right)):
                #expect(left == right)
                kinds.insert("success")
            case (.failure(let left), .failure(let right)):
                // Both faults may be in one string, and the words are read in another order.
                kinds.insert("\(left)")
                #expect(left == right, "\(bytes)")
            default: Issue.record("\(bytes): \(slowly), \(fast)")
            }
        }
        #expect(kinds == ["success", "endOfStringSymbol", "malformedPadding"])
    }

    @Test(
        arguments: [
            ([0xFF], HeaderCompressionError.malformedPadding),
            // Three bits of 0, and five that are not all 1.
            ([0x1E], .malformedPadding),
            ([0x00], .malformedPadding),
            ([0x1F, 0xFF], .malformedPadding),
            ([0xFF, 0xFF, 0xFF, 0xFF], .endOfStringSymbol),
            ([0xFF, 0xFF, 0xFF, 0xFC], .endOfStringSymbol),
            ([UInt8](repeating: 0x18, count: 20) + [0xFF], .malformedPadding),
        ] as [([UInt8], HeaderCompressionError)])
    func `has one way of padding, and no end within a string`(
        bytes: [UInt8], error: HeaderCompressionError
    ) {
        #expect(outcome(decodedFast, bytes) == .failure(error))
    }
}

/// All bytes in the code, whether or not that is shorter.
func encodedWithCode(_ bytes: [UInt8]) -> [UInt8] {
    var bits = bytes.flatMap { byte in
        let (code, length) = (HuffmanCode.code(Int(byte)), HuffmanCode.length(Int(byte)))
        return (0..<length).map { UInt8(code >> UInt64(length - 1 - $0) & 1) }
    }
    while bits.count % 8 != 0 { bits.append(1) }
    return stride(from: 0, to: bits.count, by: 8).map { start in
        bits[start..<start + 8].reduce(0) { $0 << 1 | $1 }
    }
}
