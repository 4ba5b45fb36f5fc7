/// Memory of a fixed size from a loop's pool; goes back to it with the last reference.
///
/// `readable` is what was put in and not yet taken out.
package final class Buffer {
    package let memory: UnsafeMutableRawBufferPointer
    private let pool: BufferPool
    /// Offset of the first byte not yet taken out.
    package final var start = 0
    /// Offset behind the last byte put in.
    package final var end = 0

    fileprivate init(memory: UnsafeMutableRawBufferPointer, pool: BufferPool) {
        self.memory = memory
        self.pool = pool
    }

    deinit { pool.put(memory) }

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
}

/// Free memory blocks of two sizes, owned by one loop. An idle connection holds none; what a
/// burst has left over is given back beyond `keptBlocks` of each size.
package final class BufferPool {
    /// Room for a head and a small body.
    package static let smallBytes = 16 * 1024
    /// For long bodies: fewer, larger transfers.
    package static let largeBytes = 128 * 1024

    private let keptBlocks: Int
    private var small = ContiguousArray<UnsafeMutableRawBufferPointer>()
    private var large = ContiguousArray<UnsafeMutableRawBufferPointer>()
    /// Blocks handed out and not yet back.
    package private(set) var outstanding = 0

    package init(keptBlocks: Int = 64) { self.keptBlocks = keptBlocks }

    deinit {
        for block in small { block.deallocate() }
        for block in large { block.deallocate() }
    }

    /// An empty buffer of `smallBytes`.
    package func takeSmall() -> Buffer { take(&small, bytes: Self.smallBytes) }

    /// An empty buffer of `largeBytes`.
    package func takeLarge() -> Buffer { take(&large, bytes: Self.largeBytes) }

    /// An empty buffer of another size, which is not kept afterwards.
    package func take(bytes: Int) -> Buffer {
        outstanding += 1
        return Buffer(memory: Self.allocate(bytes), pool: self)
    }

    private func take(
        _ free: inout ContiguousArray<UnsafeMutableRawBufferPointer>, bytes: Int
    ) -> Buffer {
        outstanding += 1
        return Buffer(memory: free.popLast() ?? Self.allocate(bytes), pool: self)
    }

    private static func allocate(_ bytes: Int) -> UnsafeMutableRawBufferPointer {
        .allocate(byteCount: bytes, alignment: 64)
    }

    fileprivate func put(_ block: UnsafeMutableRawBufferPointer) {
        outstanding -= 1
        switch block.count {
        case Self.smallBytes where small.count < keptBlocks: small.append(block)
        case Self.largeBytes where large.count < keptBlocks / 4: large.append(block)
        default: block.deallocate()
        }
    }
}
