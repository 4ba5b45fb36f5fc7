import HTTP2
import HTTPCore

extension FuzzTarget {
    /// The blocks of one connection, each after its length in two bytes; the highest bit of the
    /// first one begins a block with a table size that the peer has acknowledged.
    ///
    /// A block is refused for the same reason whether its fields are used or not. Fields that are
    /// accepted are the same after they have been encoded and decoded again, on a connection whose
    /// table lives as long.
    func checkHeaderBlocks(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        var decoder = HeaderDecoder()
        var other = HeaderDecoder()
        var again = HeaderDecoder()
        var encoder = HeaderEncoder()
        var isRead = false
        var rest = bytes[...]
        while rest.count >= 2 {
            let selector = rest.removeFirst()
            let count = min(Int(selector & 0x7F) << 8 | Int(rest.removeFirst()), rest.count)
            let block = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            if selector & 0x80 != 0 {
                decoder.peerAcknowledged(tableLimit: count)
                other.peerAcknowledged(tableLimit: count)
                encoder.peerTableLimit(count)
            }
            let (lines, fault) = try Self.section(of: block, by: &decoder)
            guard Self.discard(block, by: &other) == fault else {
                throw FuzzCheckError("\(block) is not refused for one reason")
            }
            if fault != nil { return false }
            guard let lines else { continue }
            isRead = true
            let fields = Array(lines.dropLast(2))
            let written = try Self.encoded(fields.count) { writer in
                encoder.encodeTrailers(lines: fields.span, into: &writer)
            }
            guard case (let read, nil) = try Self.section(of: written, by: &again), read == lines
            else {
                throw FuzzCheckError("\(lines) was written as \(written), which is something else")
            }
        }
        return isRead
    }

    /// The trailer section that a block is, if it is one, and why the block is refused, if it is.
    private static func section(
        of block: [UInt8], by decoder: inout HeaderDecoder
    ) throws(FuzzCheckError) -> (lines: [UInt8]?, fault: HeaderCompressionError?) {
        let limits = ChunkedLimits(trailerBytes: 1 << 14, trailerFields: 1 << 10)
        var memory = [UInt8](repeating: 0xEE, count: 1 << 14 + 64)
        var fault: HeaderCompressionError?
        var count: Int?
        memory.withUnsafeMutableBytes { memory in
            var assembler = TrailerAssembler(memory, limits: limits)
            do throws(HeaderCompressionError) {
                try decoder.decode(block.span, into: &assembler)
                count = try? assembler.finish()
            } catch let caught {
                fault = caught
            }
        }
        guard let count else { return (nil, fault) }
        let lines = Array(memory[..<count])
        guard count <= limits.trailerBytes, isSection(lines) else {
            throw FuzzCheckError("\(block) is \(lines)")
        }
        return (lines, nil)
    }

    /// Whether bytes are field lines and an empty line, with no other control characters.
    static func isSection(_ bytes: [UInt8]) -> Bool {
        guard bytes.suffix(2) == [0x0D, 0x0A] else { return false }
        var isStart = true
        for (index, byte) in bytes.dropLast(2).enumerated() {
            switch byte {
            case 0x0D: guard bytes[index + 1] == 0x0A else { return false }
            case 0x0A:
                guard bytes[index - 1] == 0x0D else { return false }
                isStart = true
                continue
            case 0..<0x20 where byte != 0x09, 0x7F: return false
            default: if isStart, !ASCII.isToken(byte) { return false }
            }
            isStart = false
        }
        return isStart
    }

    private static func discard(
        _ block: [UInt8], by decoder: inout HeaderDecoder
    ) -> HeaderCompressionError? {
        do throws(HeaderCompressionError) { try decoder.discard(block.span) } catch {
            return error
        }
        return nil
    }

    /// What is encoded, in memory of the promised size.
    static func encoded(
        _ count: Int, _ encode: (inout HeadWriter) -> Void
    ) throws(FuzzCheckError) -> [UInt8] {
        var isWhole = false
        let capacity = HeaderEncoder.bound(count)
        let block = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(buffer))
            encode(&writer)
            isWhole = !writer.overflowed
            count = writer.count
        }
        guard isWhole else { throw FuzzCheckError("there is too little room") }
        return block
    }
}
