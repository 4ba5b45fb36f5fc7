import Locking

/// Memory of a fixed size from a loop's pool; goes back to it with the last reference.
///
/// `readable` is what was put in and not yet taken out.
package final class Buffer {
    package let memory: UnsafeMutableRawBufferPointer
    /// Where the memory goes. It never changes, so that no references are counted for it each time
    /// that a buffer is taken and given back.
    private let pool: BufferPool
    /// It is in the pool, or no longer of it.
    fileprivate final var isFree = false
    /// The next one that is free, to which the list keeps a reference.
    fileprivate final var next: Unmanaged<Buffer>?
    /// Offset of the first byte not yet taken out.
    package final var start = 0
    /// Offset behind the last byte put in.
    package final var end = 0

    fileprivate init(memory: UnsafeMutableRawBufferPointer, pool: BufferPool) {
        self.memory = memory
        self.pool = pool
    }

    deinit { isFree ? memory.deallocate() : pool.put(memory) }

    /// Gives up a reference. If it was the last one, the pool keeps the object as it is, which
    /// costs a fraction of making another one around the same memory.
    @inline(__always)
    package static func release(_ reference: inout Buffer?) {
        guard reference != nil else { return }
        if isKnownUniquelyReferenced(&reference), let buffer = reference.take() {
            giveBack(Unmanaged.passRetained(buffer))
        } else {
            reference = nil
        }
    }

    /// Offers a buffer's last reference to its pool. What is not kept is freed here, outside of the
    /// pool, which may go with it.
    @inline(__always)
    fileprivate static func giveBack(_ buffer: Unmanaged<Buffer>) {
        let isKept = buffer._withUnsafeGuaranteedRef { $0.pool.keep($0, buffer) }
        if !isKept { buffer.release() }
    }

    package var capacity: Int { memory.count }
    package var count: Int { end - start }
    package var isEmpty: Bool { start == end }

    /// The bytes put in and not yet taken out.
    package var readable: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[start..<end])
    }

    /// The same bytes, for who takes them out to change them.
    package var mutableReadable: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[start..<end])
    }

    /// The room behind them.
    package var writable: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[end...])
    }

    package func clear() {
        start = 0
        end = 0
    }

    /// Moves the readable bytes to the front, so that all free room is behind them.
    package func compact() {
        guard start > 0 else { return }
        let bytes = count
        if bytes > 0 { memory.copyMemory(from: readable) }
        start = 0
        end = bytes
    }

    /// Holds what is unread in another buffer, which stays as it is, and nothing else.
    package func copyUnread(of other: Buffer) {
        precondition(other.count <= capacity)
        memory.copyMemory(from: other.readable)
        start = 0
        end = other.count
    }
}

/// Free buffers of two sizes, owned by one loop. An idle connection holds none; what a burst has
/// left over is given back to the system beyond `keptBuffers` of the small size and a quarter as
/// many of the large one.
///
/// Pool and free buffers refer to each other until ``close()``, which its owner calls at the end.
package final class BufferPool {
    /// Room for a head and a small body.
    package static let smallBytes = 16 * 1024
    /// For long bodies: fewer, larger transfers.
    package static let largeBytes = 128 * 1024

    private var small: FreeList
    private var large: FreeList
    /// Buffers handed out and not yet back.
    package private(set) var outstanding = 0

    package init(keptBuffers: Int = 64) {
        small = FreeList(limit: keptBuffers)
        large = FreeList(limit: keptBuffers / 4)
    }

    /// Lets go of the free buffers, and keeps none from now on.
    package func close() {
        small.close()
        large.close()
    }

    /// Free buffers of each size.
    package var free: (small: Int, large: Int) { (small.count, large.count) }

    /// An empty buffer of `smallBytes`.
    package func takeSmall() -> Buffer { handOut(small.take() ?? make(Self.smallBytes)) }

    /// An empty buffer of `largeBytes`.
    package func takeLarge() -> Buffer { handOut(large.take() ?? make(Self.largeBytes)) }

    /// An empty buffer of `smallBytes`, of `largeBytes` where that is too small, or of another size
    /// where that is, too.
    @inline(__always)
    package func take(atLeast bytes: Int) -> Buffer {
        if bytes <= Self.smallBytes { return takeSmall() }
        return bytes <= Self.largeBytes ? takeLarge() : take(bytes: bytes)
    }

    /// An empty buffer of another size, which is not kept afterwards.
    package func take(bytes: Int) -> Buffer { handOut(make(bytes)) }

    /// A buffer of its own that holds these bytes.
    package func holding(_ bytes: [UInt8]) -> Buffer {
        let buffer = take(bytes: max(1, bytes.count))
        buffer.memory.copyBytes(from: bytes)
        buffer.end = bytes.count
        return buffer
    }

    /// A buffer that takes over the memory of these bytes; an empty one if another did before.
    package func adopting(_ bytes: DetachedBytes) -> Buffer {
        guard let memory = bytes.take() else { return takeSmall() }
        let buffer = handOut(Buffer(memory: memory, pool: self))
        buffer.end = memory.count
        return buffer
    }

    /// Sees to it that there is a buffer to read into: the one that is there, what is unread at its
    /// front, or one of twice its size if that has filled it; a small one if there is none.
    /// - Returns: the room behind what is unread.
    package func makeRoom(in buffer: inout Buffer?) -> UnsafeMutableRawBufferPointer {
        guard let current = buffer else {
            let first = takeSmall()
            let room = first.memory
            buffer = consume first
            return room
        }
        if current.isEmpty {
            current.clear()
            return current.writable
        }
        current.compact()
        if current.end < current.capacity { return current.writable }
        let larger = take(bytes: current.capacity * 2)
        larger.copyUnread(of: current)
        buffer = larger
        return larger.writable
    }

    @inline(__always)
    private func handOut(_ buffer: consuming Buffer) -> Buffer {
        outstanding += 1
        buffer.isFree = false
        return buffer
    }

    private func make(_ bytes: Int) -> Buffer {
        Buffer(memory: Self.allocate(bytes), pool: self)
    }

    fileprivate static func allocate(_ bytes: Int) -> UnsafeMutableRawBufferPointer {
        .allocate(byteCount: bytes, alignment: 64)
    }

    /// Takes back a buffer that nobody refers to any more but by `reference`.
    /// - Returns: whether it took the reference, too.
    fileprivate func keep(_ buffer: Buffer, _ reference: Unmanaged<Buffer>) -> Bool {
        outstanding -= 1
        buffer.isFree = true
        buffer.clear()
        switch buffer.capacity {
        case Self.smallBytes: return small.add(buffer, reference)
        case Self.largeBytes: return large.add(buffer, reference)
        default: return false
        }
    }

    /// Takes back the memory of a buffer whose object is gone.
    fileprivate func put(_ memory: UnsafeMutableRawBufferPointer) {
        Buffer.giveBack(Unmanaged.passRetained(Buffer(memory: memory, pool: self)))
    }
}

/// Bytes that another thread has made for a loop, in memory that a buffer takes over: the loop does
/// not spend its time on copying them.
package final class DetachedBytes: Sendable {
    private let memory: Locked<UnsafeMutableRawBufferPointer?>

    /// Copies the bytes, on the thread that calls.
    package init(_ bytes: [UInt8]) {
        let copy = BufferPool.allocate(max(1, bytes.count))
        copy.copyBytes(from: bytes)
        memory = Locked(UnsafeMutableRawBufferPointer(rebasing: copy[..<bytes.count]))
    }

    deinit { take()?.deallocate() }

    /// The memory, which is the caller's from now on; nil: it was taken before.
    fileprivate func take() -> UnsafeMutableRawBufferPointer? {
        memory.withLock { $0.take() }
    }
}

/// Free buffers of one size, linked through themselves: the last one that came back goes out first,
/// while its memory is still in the processor's cache. The one reference to a buffer comes and goes
/// with it, so that none is counted.
private struct FreeList {
    private var limit: Int
    private(set) var count = 0
    private var first: Unmanaged<Buffer>?

    init(limit: Int) { self.limit = limit }

    mutating func close() {
        limit = 0
        while count > 0 { _ = take() }
    }

    @inline(__always)
    mutating func take() -> Buffer? {
        guard let buffer = first?.takeRetainedValue() else { return nil }
        first = buffer.next
        count &-= 1
        return buffer
    }

    /// Keeps a buffer, and the reference to it, if there is room.
    @inline(__always)
    mutating func add(_ buffer: Buffer, _ reference: Unmanaged<Buffer>) -> Bool {
        guard count < limit else { return false }
        buffer.next = first
        first = reference
        count &+= 1
        return true
    }
}
