import HTTPCore

/// Frames that are to be sent before anything else.
///
/// The memory grows as needed; how much can wait is limited by whoever writes: nothing more is
/// received while it is too much, and a stream has at most a few frames in it.
struct ControlOutput: ~Copyable {
    private static let firstBytes = 256
    /// Memory beyond this is given back once everything has been taken.
    private static let keptBytes = 1024

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    private var end = 0

    init() {}

    deinit { memory.deallocate() }

    var count: Int { end - start }

    /// What waits; valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

    /// A writer for up to so many bytes more; ``wrote(_:)`` must follow.
    mutating func writer(_ bytes: Int) -> HeadWriter {
        if memory.count - end < bytes { makeRoom(bytes) }
        return HeadWriter(memory, after: end)
    }

    mutating func wrote(_ writer: HeadWriter) {
        assert(!writer.overflowed)
        end = writer.count
    }

    mutating func take(_ count: Int) {
        precondition(count >= 0 && count <= self.count)
        start += count
        guard start == end else { return }
        start = 0
        end = 0
        trim(to: ControlOutput.keptBytes)
    }

    /// Gives back the memory if nothing waits, and it is more than so many bytes.
    mutating func trim(to bytes: Int) {
        guard count == 0, memory.count > bytes else { return }
        memory.deallocate()
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        start = 0
        end = 0
    }

    @inline(never)
    private mutating func makeRoom(_ bytes: Int) {
        let waiting = self.bytes
        if memory.count - count >= bytes, start >= memory.count / 2 {
            memory.copyMemory(from: waiting)
        } else {
            let larger = UnsafeMutableRawBufferPointer.allocate(
                byteCount: max(ControlOutput.firstBytes, memory.count * 2, count + bytes),
                alignment: 16)
            larger.copyMemory(from: waiting)
            memory.deallocate()
            memory = larger
        }
        end -= start
        start = 0
    }
}
