/// The parts of a field block that came in several frames, put together.
struct FieldBlockBuffer: ~Copyable {
    /// Memory beyond this is given back once the block has been used.
    private static let keptBytes = 4096

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var count = 0

    init() {}

    deinit { memory.deallocate() }

    var isEmpty: Bool { count == 0 }

    /// The block; valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    /// Adds a part. Returns false if the block is larger than `limit` then.
    mutating func append(_ part: RawSpan, limit: Int) -> Bool {
        guard part.byteCount <= limit - count else { return false }
        let needed = count + part.byteCount
        if needed > memory.count {
            let larger = UnsafeMutableRawBufferPointer.allocate(
                byteCount: min(limit, max(needed, memory.count * 2, 1024)), alignment: 16)
            larger.copyMemory(from: bytes)
            memory.deallocate()
            memory = larger
        }
        part.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: $0)
        }
        count = needed
        return true
    }

    mutating func clear() {
        count = 0
        guard memory.count > FieldBlockBuffer.keptBytes else { return }
        memory.deallocate()
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Gives back the memory, if there is no block in it.
    mutating func trim() {
        guard count == 0, memory.count > 0 else { return }
        memory.deallocate()
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }
}
