import Locking

/// Memory of a fixed size from a loop's pool, returned to the pool when the last reference goes
/// away.
///
/// `readable` is what was written to it and not yet consumed.
public final class Buffer {
    public let memory: UnsafeMutableRawBufferPointer
    /// The pool that the memory returns to. It never changes, so that no reference counting is
    /// needed each time a buffer is taken and returned.
    @usableFromInline let pool: BufferPool
    /// Whether it is in the pool, or has already left it for good.
    @usableFromInline final var isFree = false
    /// The next free buffer; the list owns a reference to it.
    @usableFromInline final var next: Unmanaged<Buffer>?
    /// Offset of the first byte not yet consumed.
    public final var start = 0
    /// Offset just past the last byte written.
    public final var end = 0

    fileprivate init(memory: UnsafeMutableRawBufferPointer, pool: BufferPool) {
        self.memory = memory
        self.pool = pool
    }

    deinit { isFree ? memory.deallocate() : pool.put(memory) }

    /// Gives up a reference. If it was the last one, the pool keeps the object as it is, which
    /// costs a fraction of creating another around the same memory.
    @inline(__always)
    @inlinable public static func release(_ reference: inout Buffer?) {
        guard reference != nil else { return }
        if isKnownUniquelyReferenced(&reference), let buffer = reference.take() {
            giveBack(Unmanaged.passRetained(buffer))
        } else {
            reference = nil
        }
    }

    /// Offers a buffer's last reference to its pool. If the pool does not keep it, it is freed
    /// here, outside the pool, which may be freed with it.
    @inline(__always)
    @inlinable static func giveBack(_ buffer: Unmanaged<Buffer>) {
        let isKept = buffer._withUnsafeGuaranteedRef { $0.pool.keep($0, buffer) }
        if !isKept { buffer.release() }
    }

    public var capacity: Int { memory.count }
    public var count: Int { end - start }
    public var isEmpty: Bool { start == end }

    /// The bytes written and not yet consumed.
    @inlinable public var readable: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[start..<end])
    }

    /// The same bytes, for callers that modify them while consuming.
    public var mutableReadable: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[start..<end])
    }

    /// The free space after them.
    @inlinable public var writable: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[end...])
    }

    public func clear() {
        start = 0
        end = 0
    }

    /// Moves the readable bytes to the front, so that all free space is after them.
    public func compact() {
        guard start > 0 else { return }
        let bytes = count
        if bytes > 0 { memory.copyMemory(from: readable) }
        start = 0
        end = bytes
    }

    /// Copies the unread bytes of another buffer, which is left unchanged, replacing any contents.
    public func copyUnread(of other: Buffer) {
        precondition(other.count <= capacity)
        memory.copyMemory(from: other.readable)
        start = 0
        end = other.count
    }
}

/// Free buffers of two sizes, owned by one loop. An idle connection holds none. After a burst, the
/// pool keeps up to `keptBuffers` buffers of the small size and a quarter as many of the large one;
/// the rest is returned to the system.
///
/// The pool and its free buffers refer to each other until ``close()``, which the owner calls at
/// the end.
public final class BufferPool {
    /// Enough for a head and a small body.
    public static let smallBytes = 16 * 1024
    /// For long bodies: fewer, larger transfers.
    public static let largeBytes = 128 * 1024

    @usableFromInline var small: FreeList
    @usableFromInline var large: FreeList
    /// Buffers handed out and not yet returned.
    public var outstanding: Int { handedOut }
    @usableFromInline var handedOut = 0

    public init(keptBuffers: Int = 64) {
        small = FreeList(limit: keptBuffers)
        large = FreeList(limit: keptBuffers / 4)
    }

    /// Frees the free buffers, and keeps none from now on.
    public func close() {
        small.close()
        large.close()
    }

    /// Free buffers of each size.
    public var free: (small: Int, large: Int) { (small.count, large.count) }

    /// An empty buffer of `smallBytes`.
    @inlinable public func takeSmall() -> Buffer { handOut(small.take() ?? make(Self.smallBytes)) }

    /// An empty buffer of `largeBytes`.
    @inlinable public func takeLarge() -> Buffer { handOut(large.take() ?? make(Self.largeBytes)) }

    /// An empty buffer of `smallBytes`, or of `largeBytes` if that is too small, or of another size
    /// if that is too small as well.
    @inline(__always)
    @inlinable public func take(atLeast bytes: Int) -> Buffer {
        if bytes <= Self.smallBytes { return takeSmall() }
        return bytes <= Self.largeBytes ? takeLarge() : take(bytes: bytes)
    }

    /// An empty buffer of another size, which is not kept afterwards.
    @inlinable public func take(bytes: Int) -> Buffer { handOut(make(bytes)) }

    /// A new buffer that holds these bytes.
    public func holding(_ bytes: [UInt8]) -> Buffer {
        let buffer = take(bytes: max(1, bytes.count))
        buffer.memory.copyBytes(from: bytes)
        buffer.end = bytes.count
        return buffer
    }

    /// A buffer that takes over the memory of these bytes, or an empty one if another did so
    /// before.
    public func adopting(_ bytes: DetachedBytes) -> Buffer {
        guard let memory = bytes.take() else { return takeSmall() }
        let buffer = handOut(Buffer(memory: memory, pool: self))
        buffer.end = memory.count
        return buffer
    }

    /// Makes sure that there is a buffer to read into: the existing one with its unread bytes moved
    /// to the front, one of twice its size if those fill it, or a small one if there is none.
    /// - Returns: the free space after the unread bytes.
    public func makeRoom(in buffer: inout Buffer?) -> UnsafeMutableRawBufferPointer {
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

    /// The same for a buffer to which others may refer for what they have not used yet: it stays as
    /// it is then, and what is unread is copied to another.
    /// - Parameter isLarge: whether the other one is large.
    public func makeOwnRoom(
        in buffer: inout Buffer?, isLarge: Bool = false
    ) -> UnsafeMutableRawBufferPointer {
        if buffer != nil, !isKnownUniquelyReferenced(&buffer), let current = buffer {
            let fits = isLarge && current.count < Self.largeBytes
            let next = fits ? takeLarge() : take(atLeast: current.count + 1)
            next.copyUnread(of: current)
            buffer = next
        }
        return makeRoom(in: &buffer)
    }

    @inline(__always)
    @inlinable func handOut(_ buffer: consuming Buffer) -> Buffer {
        handedOut += 1
        buffer.isFree = false
        return buffer
    }

    @usableFromInline func make(_ bytes: Int) -> Buffer {
        Buffer(memory: Self.allocate(bytes), pool: self)
    }

    fileprivate static func allocate(_ bytes: Int) -> UnsafeMutableRawBufferPointer {
        .allocate(byteCount: bytes, alignment: 64)
    }

    /// Takes back a buffer to which `reference` is the only remaining reference.
    /// - Returns: whether it took over the reference as well.
    @inlinable func keep(_ buffer: Buffer, _ reference: Unmanaged<Buffer>) -> Bool {
        handedOut -= 1
        buffer.isFree = true
        buffer.clear()
        switch buffer.capacity {
        case Self.smallBytes: return small.add(buffer, reference)
        case Self.largeBytes: return large.add(buffer, reference)
        default: return false
        }
    }

    /// Takes back the memory of a buffer whose object has been freed.
    fileprivate func put(_ memory: UnsafeMutableRawBufferPointer) {
        Buffer.giveBack(Unmanaged.passRetained(Buffer(memory: memory, pool: self)))
    }
}

/// Bytes that another thread produced for a loop, in memory that a buffer takes over, so that the
/// loop spends no time copying them.
public final class DetachedBytes: Sendable {
    private let memory: Locked<UnsafeMutableRawBufferPointer?>

    /// Copies the bytes, on the calling thread.
    public init(_ bytes: [UInt8]) {
        let copy = BufferPool.allocate(max(1, bytes.count))
        copy.copyBytes(from: bytes)
        memory = Locked(UnsafeMutableRawBufferPointer(rebasing: copy[..<bytes.count]))
    }

    deinit { take()?.deallocate() }

    /// The memory, which the caller now owns, or `nil` if it was taken before.
    fileprivate func take() -> UnsafeMutableRawBufferPointer? {
        memory.withLock { $0.take() }
    }
}

/// Free buffers of one size, linked through themselves. The last one returned goes out first, while
/// its memory is still in the processor's cache. The list's single reference to a buffer moves with
/// it, so that no reference counting is needed.
@usableFromInline struct FreeList {
    @usableFromInline var limit: Int
    @usableFromInline var count = 0
    @usableFromInline var first: Unmanaged<Buffer>?

    init(limit: Int) { self.limit = limit }

    mutating func close() {
        limit = 0
        while count > 0 { _ = take() }
    }

    @inlinable @inline(__always)
    mutating func take() -> Buffer? {
        guard let buffer = first?.takeRetainedValue() else { return nil }
        first = buffer.next
        count &-= 1
        return buffer
    }

    /// Keeps a buffer, and the reference to it, if there is space.
    @inlinable @inline(__always)
    mutating func add(_ buffer: Buffer, _ reference: Unmanaged<Buffer>) -> Bool {
        guard count < limit else { return false }
        buffer.next = first
        first = reference
        count &+= 1
        return true
    }
}
