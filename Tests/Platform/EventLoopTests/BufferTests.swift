import Testing

@testable import EventLoop

@Suite("Buffers and their pool")
struct BufferTests {
    private func fill(_ buffer: Buffer, with bytes: [UInt8]) {
        buffer.writable.copyBytes(from: bytes)
        buffer.end += bytes.count
    }

    @Test func `a buffer is empty and of its size`() {
        let pool = BufferPool()
        defer { pool.close() }
        for (buffer, size) in [
            (pool.takeSmall(), BufferPool.smallBytes), (pool.takeLarge(), BufferPool.largeBytes),
            (pool.take(bytes: 1), 1), (pool.take(bytes: 700), 700),
            (pool.take(atLeast: BufferPool.smallBytes), BufferPool.smallBytes),
            (pool.take(atLeast: BufferPool.smallBytes + 1), BufferPool.largeBytes),
            (pool.take(atLeast: BufferPool.largeBytes + 1), BufferPool.largeBytes + 1),
        ] {
            #expect(buffer.capacity == size)
            #expect(buffer.isEmpty)
            #expect(buffer.count == 0)
            #expect(buffer.readable.isEmpty)
            #expect(buffer.writable.count == size)
        }
    }

    @Test(arguments: [0, 1, 700, BufferPool.smallBytes, BufferPool.largeBytes, 1 << 20])
    func `a buffer takes over bytes of another thread`(count: Int) {
        let pool = BufferPool()
        defer { pool.close() }
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let detached = DetachedBytes(bytes)
        let buffer = pool.adopting(detached)
        #expect(buffer.readable.elementsEqual(bytes))
        #expect(pool.outstanding == 1)
        #expect(pool.adopting(detached).isEmpty)
    }

    @Test func `what is put in is readable until it is taken out`() {
        let buffer = BufferPool().take(bytes: 16)
        fill(buffer, with: [1, 2, 3, 4])
        #expect(Array(buffer.readable) == [1, 2, 3, 4])
        #expect(buffer.writable.count == 12)
        buffer.start += 3
        #expect(Array(buffer.readable) == [4])
        #expect(buffer.count == 1)
        buffer.start += 1
        #expect(buffer.isEmpty)
        buffer.clear()
        #expect(buffer.writable.count == 16)
    }

    @Test func `compacting moves what is left to the front even when it overlaps`() {
        let buffer = BufferPool().take(bytes: 16)
        fill(buffer, with: Array(0..<16))
        #expect(buffer.writable.isEmpty)
        buffer.start = 3
        buffer.compact()
        #expect(buffer.start == 0)
        #expect(Array(buffer.readable) == Array(3..<16))
        #expect(buffer.writable.count == 3)
        buffer.compact()
        #expect(Array(buffer.readable) == Array(3..<16))
        buffer.start = buffer.end
        buffer.compact()
        #expect(buffer.isEmpty && buffer.end == 0)
    }

    @Test func `room is made in the buffer that is there before a larger one is taken`() throws {
        let pool = BufferPool()
        defer { pool.close() }
        var buffer: Buffer?
        #expect(pool.makeRoom(in: &buffer).count == BufferPool.smallBytes)
        let first = try #require(buffer)
        #expect(first.capacity == BufferPool.smallBytes && first.isEmpty)
        // Everything was consumed: all of it is free.
        fill(first, with: Array(0..<8))
        first.start = 8
        #expect(pool.makeRoom(in: &buffer).count == first.capacity)
        #expect(buffer === first)
        #expect(first.isEmpty && first.writable.count == first.capacity)
        // Unread bytes move to the front.
        fill(first, with: Array(repeating: 1, count: first.capacity))
        first.start = 5
        #expect(pool.makeRoom(in: &buffer).baseAddress == first.writable.baseAddress)
        #expect(buffer === first)
        #expect(first.start == 0 && first.writable.count == 5)
        // If they fill it, they move to one of twice the size.
        fill(first, with: [2, 2, 2, 2, 2])
        let room = pool.makeRoom(in: &buffer)
        let larger = try #require(buffer)
        #expect(larger !== first && larger.capacity == 2 * first.capacity)
        #expect(room.baseAddress == larger.writable.baseAddress)
        #expect(larger.readable.elementsEqual(first.readable))
        #expect(larger.writable.count == first.capacity)
    }

    @Test func `what is unread is copied to the front of another`() {
        let (from, to) = (BufferPool().take(bytes: 8), BufferPool().take(bytes: 4))
        fill(from, with: [1, 2, 3, 4, 5])
        from.start = 2
        fill(to, with: [9, 9, 9, 9])
        to.copyUnread(of: from)
        #expect(Array(to.readable) == [3, 4, 5])
        #expect(Array(from.readable) == [3, 4, 5])
    }

    @Test func `memory goes back with the last reference`() {
        let pool = BufferPool()
        defer { pool.close() }
        var first: Buffer? = pool.takeSmall()
        var second = first
        let memory = first?.memory.baseAddress
        #expect(pool.outstanding == 1)
        first = nil
        #expect(pool.outstanding == 1)
        #expect(second != nil)
        second = nil
        #expect(pool.outstanding == 0)
        #expect(pool.takeSmall().memory.baseAddress == memory)
    }

    @Test func `the last reference that is released keeps the object`() {
        let pool = BufferPool()
        defer { pool.close() }
        var first: Buffer? = pool.takeSmall()
        let identity = first.map { ObjectIdentifier($0) }
        if let first { fill(first, with: [1, 2, 3]) }
        var second = first
        Buffer.release(&first)
        #expect(first == nil)
        #expect(pool.outstanding == 1)
        #expect(second.map { Array($0.readable) } == [1, 2, 3])
        Buffer.release(&second)
        #expect(pool.outstanding == 0)
        let again = pool.takeSmall()
        #expect(ObjectIdentifier(again) == identity)
        #expect(again.isEmpty)
        var none: Buffer?
        Buffer.release(&none)
        #expect(pool.outstanding == 1)
    }

    @Test func `what an output queue has written goes back to the pool`() throws {
        let pool = BufferPool()
        defer { pool.close() }
        var queue = OutputQueue()
        do {
            let buffer = pool.takeSmall()
            fill(buffer, with: [1, 2, 3])
            queue.append(buffer.readable, owner: buffer)
        }
        #expect(pool.outstanding == 1)
        queue.consume(2)
        #expect(pool.outstanding == 1)
        queue.consume(1)
        #expect(pool.outstanding == 0)
        #expect(pool.free == (1, 0))
    }

    @Test func `a buffer taken again is empty`() {
        let pool = BufferPool()
        defer { pool.close() }
        do {
            let buffer = pool.takeLarge()
            fill(buffer, with: [1, 2, 3])
            buffer.start = 1
        }
        let buffer = pool.takeLarge()
        #expect(buffer.isEmpty)
        #expect(buffer.start == 0)
    }

    @Test func `two sizes are kept apart`() {
        let pool = BufferPool()
        defer { pool.close() }
        do { _ = pool.takeSmall() }
        #expect(pool.takeLarge().capacity == BufferPool.largeBytes)
        do { _ = pool.takeLarge() }
        #expect(pool.takeSmall().capacity == BufferPool.smallBytes)
    }

    @Test func `no more than the limit is kept of each size`() {
        let pool = BufferPool(keptBuffers: 8)
        defer { pool.close() }
        var taken: [Buffer] = []
        for _ in 0..<9 { taken.append(pool.takeSmall()) }
        for _ in 0..<3 { taken.append(pool.takeLarge()) }
        for _ in 0..<3 { taken.append(pool.take(bytes: 100)) }
        #expect(pool.outstanding == 15)
        #expect(pool.free == (0, 0))
        taken = []
        #expect(pool.outstanding == 0)
        #expect(pool.free == (8, 2))
        taken = [pool.takeSmall(), pool.takeLarge()]
        #expect(pool.free == (7, 1))
    }

    @Test func `a pool outlives its owner while a buffer is out`() {
        weak var weakPool: BufferPool?
        var buffer: Buffer?
        do {
            let pool = BufferPool()
            defer { pool.close() }
            weakPool = pool
            buffer = pool.takeSmall()
        }
        #expect(weakPool != nil)
        #expect(buffer?.writable.count == BufferPool.smallBytes)
        buffer = nil
        #expect(weakPool == nil)
    }

    @Test func `a buffer that is released goes with its pool if there is no other reference`() {
        weak var weakPool: BufferPool?
        weak var weakBuffer: Buffer?
        var buffer: Buffer?
        do {
            let pool = BufferPool()
            defer { pool.close() }
            weakPool = pool
            buffer = pool.takeSmall()
            weakBuffer = buffer
        }
        #expect(weakPool != nil)
        Buffer.release(&buffer)
        #expect(weakBuffer == nil)
        #expect(weakPool == nil)
    }
}
