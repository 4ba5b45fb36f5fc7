/// Bytes that are appended and removed at the end, in separately allocated memory: for operations
/// at every event, where an array would check each time whether it is shared.
struct ByteStack: ~Copyable {
    private var start: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 256) {
        self.capacity = max(capacity, 16)
        start = .allocate(byteCount: self.capacity, alignment: 1)
    }

    deinit { start.deallocate() }

    var isEmpty: Bool { count == 0 }

    /// The bytes from an index on, valid until the stack changes.
    func bytes(from index: Int = 0) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start + index, count: count - index)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        if bytes.count > capacity - count { grow(by: bytes.count) }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    /// Removes all bytes from an index on.
    mutating func cut(to index: Int) { count = min(count, max(0, index)) }

    private mutating func grow(by more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 1)
        moved.copyMemory(from: start, byteCount: count)
        start.deallocate()
        start = moved
        capacity = larger
    }
}
