/// Decodes strings in the Huffman code, up to two symbols at once.
///
/// The next bits select an entry of a table, which has one symbol, or two if both fit, and their
/// length. Codes longer than that are found by a binary search among the few that there are: they
/// are ordered, because the code is canonical.
struct HuffmanDecoder: @unchecked Sendable {
    /// The bits that select an entry.
    private static let width = 11

    /// A code longer than ``width``.
    private struct LongCode {
        /// The code in the highest bits.
        var code: UInt32
        var length: UInt8
        /// The byte; 0 for the end of the string, which has the last code.
        var symbol: UInt8
    }

    /// From the lowest byte: the length in bits of one or two symbols, how many they are, and the
    /// symbols. 0 if a longer code begins so. The index is the complement of the bits.
    private let entries: UnsafePointer<UInt32>
    private let longCodes: UnsafePointer<LongCode>
    private let longCount: Int

    /// The tables, made when they are first needed and never freed.
    static let shared = HuffmanDecoder()

    private init() {
        let size = 1 << Self.width
        let table = UnsafeMutablePointer<UInt32>.allocate(capacity: size)
        table.initialize(repeating: 0, count: size)
        for first in 0..<256 where HuffmanCode.length(first) <= Self.width {
            let length = HuffmanCode.length(first)
            let free = Self.width - length
            let start = Int(HuffmanCode.code(first)) << free
            for index in start..<start + 1 << free {
                table[size - 1 - index] = UInt32(first) << 16 | 1 << 8 | UInt32(length)
            }
            for second in 0..<256 where HuffmanCode.length(second) <= free {
                let rest = free - HuffmanCode.length(second)
                let inner = start + Int(HuffmanCode.code(second)) << rest
                let entry = UInt32(first | second << 8) << 16 | 2 << 8
                for index in inner..<inner + 1 << rest {
                    table[size - 1 - index] = entry | UInt32(Self.width - rest)
                }
            }
        }
        entries = UnsafePointer(table)
        let long = (0...256).filter { HuffmanCode.length($0) > Self.width }.map { symbol in
            let length = HuffmanCode.length(symbol)
            return LongCode(
                code: UInt32(HuffmanCode.code(symbol)) << UInt32(32 - length),
                length: UInt8(length), symbol: UInt8(truncatingIfNeeded: symbol))
        }.sorted { $0.code < $1.code }
        let codes = UnsafeMutablePointer<LongCode>.allocate(capacity: long.count)
        for (index, code) in long.enumerated() { (codes + index).initialize(to: code) }
        longCodes = UnsafePointer(codes)
        longCount = long.count
    }

    /// The most bytes that `count` bytes decode to: no code is shorter than 5 bits.
    @inline(__always)
    static func bound(_ count: Int) -> Int { (count &* 8) / 5 }

    /// Decodes `count` bytes to `target`, where ``bound(_:)`` bytes and one more may be written.
    ///
    /// The bits are taken as their complement. So those that a shift brings in at the end of a
    /// string are what its padding consists of: the highest bits of the end-of-string symbol, all
    /// ones (RFC 7541 §5.2).
    ///
    /// - Returns: the end of what was decoded.
    @inline(__always)
    func decode(
        _ source: UnsafeRawPointer, count: Int, to target: UnsafeMutableRawPointer
    ) throws(HeaderCompressionError) -> UnsafeMutableRawPointer {
        var next = source
        let end = source + count
        var target = target
        // The bits that were read and are not decoded yet are the highest `bits` of `window`;
        // those below are read again.
        var window: UInt64 = 0
        var bits = 0
        while end - next >= 8 {
            window |= ~WordCopy.bigEndianWord(next) &>> UInt64(truncatingIfNeeded: bits)
            next += (63 &- bits) &>> 3
            bits |= 56
            guard takeEntry(&window, &bits, &target) else {
                try decodeLong(&window, &bits, &target)
                continue
            }
            // Five entries have no more bits than there are.
            for _ in 0..<4 {
                guard takeEntry(&window, &bits, &target) else { break }
            }
        }
        // Fewer than eight bytes are unread.
        while true {
            var rest = end - next
            if rest > 0 {
                rest = min(rest, (64 &- bits) &>> 3)
                window |=
                    Self.complement(next, rest, end, count) &>> UInt64(truncatingIfNeeded: bits)
                next += rest
                bits &+= rest &* 8
            }
            var entry = entries[Int(window &>> UInt64(64 &- Self.width))]
            while entry != 0, Int(entry & 0xFF) <= bits {
                take(entry, &window, &bits, &target)
                entry = entries[Int(window &>> UInt64(64 &- Self.width))]
            }
            if next == end {
                if bits < 8, window == 0 { return target }
                try decodeLast(&window, &bits, &target)
            } else if entry == 0, bits >= 30 {
                try decodeLong(&window, &bits, &target)
            }
        }
    }

    /// Takes what the next bits stand for, unless a longer code begins.
    @inline(__always)
    private func takeEntry(
        _ window: inout UInt64, _ bits: inout Int, _ target: inout UnsafeMutableRawPointer
    ) -> Bool {
        let entry = entries[Int(window &>> UInt64(64 &- Self.width))]
        guard entry != 0 else { return false }
        take(entry, &window, &bits, &target)
        return true
    }

    @inline(__always)
    private func take(
        _ entry: UInt32, _ window: inout UInt64, _ bits: inout Int,
        _ target: inout UnsafeMutableRawPointer
    ) {
        target.storeBytes(
            of: UInt16(truncatingIfNeeded: entry &>> 16).littleEndian, as: UInt16.self)
        target += Int(UInt8(truncatingIfNeeded: entry &>> 8))
        window = window &<< UInt64(entry)
        bits &-= Int(UInt8(truncatingIfNeeded: entry))
    }

    /// The complement of up to 7 bytes in the highest bits, followed by zeros.
    /// - Parameters:
    ///   - end: the end of the string, which follows at most 7 bytes later.
    ///   - available: the length of the whole string.
    @inline(__always)
    private static func complement(
        _ start: UnsafeRawPointer, _ count: Int, _ end: UnsafeRawPointer, _ available: Int
    ) -> UInt64 {
        if available >= 8, start + count == end {
            let word = ~WordCopy.bigEndianWord(end - 8)
            return count == 0 ? 0 : word &<< UInt64(truncatingIfNeeded: 64 &- count &* 8)
        }
        var word: UInt64 = 0
        var shift: UInt64 = 56
        for offset in 0..<count {
            word |= UInt64(~(start + offset).load(as: UInt8.self)) &<< shift
            shift &-= 8
        }
        return word
    }

    /// Decodes a symbol when everything is read and no entry fits.
    @inline(never)
    private func decodeLast(
        _ window: inout UInt64, _ bits: inout Int, _ target: inout UnsafeMutableRawPointer
    ) throws(HeaderCompressionError) {
        let entry = entries[Int(window &>> UInt64(64 &- Self.width))]
        // Of the two symbols of an entry that is too long, the first one may fit.
        let symbol = UInt8(truncatingIfNeeded: entry &>> 16)
        let length = entry == 0 ? longCode(window).length : UInt8(HuffmanCode.length(Int(symbol)))
        guard Int(length) <= bits else { throw .malformedPadding }
        if entry == 0 { return try decodeLong(&window, &bits, &target) }
        target.storeBytes(of: symbol, as: UInt8.self)
        target += 1
        window = window &<< UInt64(length)
        bits &-= Int(length)
    }

    @inline(never)
    private func decodeLong(
        _ window: inout UInt64, _ bits: inout Int, _ target: inout UnsafeMutableRawPointer
    ) throws(HeaderCompressionError) {
        let code = longCode(window)
        guard code.length < 30 || code.code != UInt32.max &<< 2 else {
            throw .endOfStringSymbol
        }
        target.storeBytes(of: code.symbol, as: UInt8.self)
        target += 1
        window = window &<< UInt64(code.length)
        bits &-= Int(code.length)
    }

    /// The longer code that the window begins with: the last one that is not above it.
    private func longCode(_ window: UInt64) -> LongCode {
        let bits = ~UInt32(truncatingIfNeeded: window &>> 32)
        var (low, high) = (0, longCount)
        while high &- low > 1 {
            let middle = (low &+ high) &>> 1
            if longCodes[middle].code <= bits { low = middle } else { high = middle }
        }
        return longCodes[low]
    }
}
