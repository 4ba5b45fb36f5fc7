/// The memory of a dynamic table: lines one after the other, the oldest first.
///
/// Lines are appended; when the memory ends, those that are still in the table move to its
/// beginning. Positions count all bytes ever appended (modulo 2^32), so they stay what they are
/// when a line moves. Nothing is allocated before the first line, and nothing once the memory has
/// the size that a peer's fields need.
struct LineMemory: ~Copyable {
    private var bytes: UnsafeMutableRawPointer?
    private var capacity = 0
    /// The position of the first byte in memory.
    private var base: UInt32 = 0
    /// The position of the next line.
    private(set) var end: UInt32 = 0

    init() {}

    deinit { bytes?.deallocate() }

    /// The line at a position; only if there is one.
    @inline(__always)
    func line(_ position: UInt32) -> UnsafeMutableRawPointer {
        bytes.unsafelyUnwrapped + Int(position &- base)
    }

    /// Where a line of at most `count` bytes can be written, and ``WordCopy/slack`` more.
    /// - Parameter first: the position of the oldest line that is still needed, or ``end``. All
    ///   lines may move.
    @inline(__always)
    mutating func room(_ count: Int, keepingFrom first: UInt32) -> UnsafeMutableRawPointer {
        let used = Int(end &- base)
        if used &+ count &+ WordCopy.slack <= capacity { return bytes.unsafelyUnwrapped + used }
        return makeRoom(count, first)
    }

    @inline(never)
    private mutating func makeRoom(_ count: Int, _ first: UInt32) -> UnsafeMutableRawPointer {
        let live = Int(end &- first)
        let needed = live + count + WordCopy.slack
        if needed <= capacity - capacity / 8, let bytes {
            bytes.copyMemory(from: bytes + Int(first &- base), byteCount: live)
        } else {
            capacity = (needed + needed / 4 + 127) & ~63
            let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
            if let bytes {
                larger.copyMemory(from: bytes + Int(first &- base), byteCount: live)
                bytes.deallocate()
            }
            bytes = larger
        }
        base = first
        return bytes.unsafelyUnwrapped + live
    }

    /// Gives back the memory of all but the lines from `first` on; they may move.
    mutating func trim(keepingFrom first: UInt32) {
        let live = Int(end &- first)
        let needed = live == 0 ? 0 : (live + WordCopy.slack + 15) & ~15
        guard needed < capacity, let bytes else { return }
        var smaller: UnsafeMutableRawPointer?
        if needed > 0 {
            smaller = .allocate(byteCount: needed, alignment: 16)
            smaller?.copyMemory(from: bytes + Int(first &- base), byteCount: live)
        }
        bytes.deallocate()
        self.bytes = smaller
        capacity = needed
        base = first
    }

    /// Notes that a line of `count` bytes was written where there was room.
    @inline(__always)
    mutating func append(_ count: Int) { end = end &+ UInt32(truncatingIfNeeded: count) }
}
