import CLinux
import Testing

@testable import EventLoop

/// Keeps bytes alive, and counts how many such objects are left.
private final class OwnedBytes {
    final class Counter { var alive = 0 }

    let memory: UnsafeMutableRawBufferPointer
    private let counter: Counter?

    init(_ bytes: [UInt8], _ counter: Counter? = nil) {
        memory = .allocate(byteCount: max(1, bytes.count), alignment: 1)
        memory.copyBytes(from: bytes)
        count = bytes.count
        self.counter = counter
        counter?.alive += 1
    }

    private let count: Int

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[0..<count]) }

    deinit {
        memory.deallocate()
        counter?.alive -= 1
    }
}

extension OutputQueue {
    fileprivate mutating func append(inBuffer bytes: [UInt8], of pool: BufferPool) {
        let buffer = pool.takeSmall()
        buffer.writable.copyBytes(from: bytes)
        buffer.end = bytes.count
        append(buffer.readable, owner: buffer)
    }

    fileprivate mutating func append(owned bytes: [UInt8], _ counter: OwnedBytes.Counter? = nil) {
        let owner = OwnedBytes(bytes, counter)
        append(owner.bytes, owner: owner)
    }
}

/// Flushes and receives alternately until the queue is drained.
private func drain(_ queue: inout OutputQueue, through pair: SocketPair) -> [UInt8] {
    var received: [UInt8] = []
    for _ in 0..<1_000_000 {
        let flush = queue.flush(to: pair.left.fd)
        received += receive(from: pair.right.fd).bytes
        switch flush {
        case .drained: return received
        case .blocked, .turnIsOver: continue
        case .failed(let error):
            Issue.record("\(error)")
            return received
        }
    }
    Issue.record("the queue does not drain")
    return received
}

@Suite("The queue of output")
struct OutputQueueTests {
    /// A sink that accepts everything would otherwise occupy the loop for as long as there is
    /// something to write.
    @Test func `a flush writes a bounded part however much the sink takes`() throws {
        let sink = try memoryFile([])
        let source = try memoryFile(pattern(OutputQueue.bytesPerFlush))
        var queue = OutputQueue()
        for _ in 0..<3 {
            queue.append(
                file: source.fd, offset: 0, count: OutputQueue.bytesPerFlush, owner: source)
        }
        #expect(queue.flush(to: sink.fd) == .turnIsOver)
        #expect(queue.pendingBytes == 2 * OutputQueue.bytesPerFlush)
        #expect(queue.flush(to: sink.fd) == .turnIsOver)
        #expect(queue.flush(to: sink.fd) == .drained)
    }

    @Test func `a flush makes a bounded number of calls however small the runs`() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        var queue = OutputQueue()
        for _ in 0..<8000 { queue.append(owned: [7]) }
        guard queue.flush(to: pair.left.fd) == .turnIsOver else {
            return #expect(queue.pendingBytes > 0, "a socket that holds little is full first")
        }
        #expect(queue.pendingBytes >= 8000 - 64 * 64)
    }

    @Test func `a queue that is never empty does not grow by what was sent`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        for _ in 0..<10 { queue.append(owned: [7, 8]) }
        for _ in 0..<10_000 {
            queue.append(owned: [7, 8])
            queue.consume(2)
        }
        #expect(queue.pendingBytes == 20)
        #expect(queue.segmentCount < 200)
        #expect(queue.flush(to: pair.left.fd) == .drained)
    }

    @Test func `an empty queue is drained`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        #expect(queue.isEmpty)
        #expect(queue.front == nil)
        #expect(queue.flush(to: pair.left.fd) == .drained)
        // Not even the descriptor is used.
        #expect(queue.flush(to: -1) == .drained)
    }

    @Test func `empty runs are left out`() throws {
        let file = try memoryFile([1])
        var queue = OutputQueue()
        queue.append(UnsafeRawBufferPointer(start: nil, count: 0), owner: nil)
        queue.append(owned: [])
        queue.append(file: file.fd, offset: 0, count: 0, owner: file)
        queue.append("")
        #expect(queue.isEmpty)
        #expect(queue.pendingBytes == 0)
    }

    @Test func `several runs go out in one call`() throws {
        // A packet socket preserves the boundaries of the calls.
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let (left, right) = (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
        var queue = OutputQueue()
        queue.append("HTTP/1.1 ")
        queue.append(owned: Array("200 OK".utf8))
        queue.append("\r\n\r\n")
        #expect(queue.pendingBytes == 19)
        #expect(queue.flush(to: left.fd) == .drained)
        #expect(queue.isEmpty && queue.pendingBytes == 0)
        var packet = [UInt8](repeating: 0, count: 100)
        let result = packet.withUnsafeMutableBytes { Transfers.read(right.fd, into: $0) }
        #expect(result == .bytes(19))
        #expect(Array(packet[0..<19]) == Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
    }

    @Test(arguments: [1, 15, 16, 17, 32, 33, 100])
    func `any number of runs arrives in order`(count: Int) throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        var expected: [UInt8] = []
        for index in 0..<count {
            let run = pattern(index % 7 + 1, seed: index * 13)
            queue.append(owned: run)
            expected += run
        }
        #expect(queue.pendingBytes == expected.count)
        #expect(queue.flush(to: pair.left.fd) == .drained)
        #expect(receive(from: pair.right.fd).bytes == expected)
    }

    @Test func `a tiny socket buffer blocks and nothing is lost or repeated`() throws {
        let pair = try SocketPair(sendBuffer: 2048)
        var queue = OutputQueue()
        var expected: [UInt8] = []
        for index in 0..<60 {
            let run = pattern(997 * (index % 5 + 1), seed: index)
            queue.append(owned: run)
            expected += run
        }
        #expect(queue.flush(to: pair.left.fd) == .blocked)
        #expect(queue.pendingBytes > 0 && queue.pendingBytes < expected.count)
        #expect(queue.flush(to: pair.left.fd) == .blocked)
        let received = drain(&queue, through: pair)
        #expect(received == expected)
        #expect(queue.isEmpty && queue.pendingBytes == 0)
    }

    @Test func `blocked is followed by a report of writability`() throws {
        let loop = try EventLoop()
        let pair = try SocketPair(sendBuffer: 2048)
        let handler = Recorder()
        try loop.add(handler, descriptor: pair.left.fd)
        loop.turn(waitingAtMost: 1000)
        var queue = OutputQueue()
        let expected = pattern(300_000)
        queue.append(owned: expected)
        var received: [UInt8] = []
        var flush = queue.flush(to: pair.left.fd)
        while flush == .blocked {
            let before = handler.events.count
            received += receive(from: pair.right.fd).bytes
            // Edge-triggered: without another report the rest would never be written.
            try #require(loop.runs { handler.events.count > before })
            flush = queue.flush(to: pair.left.fd)
        }
        #expect(flush == .drained)
        received += receive(from: pair.right.fd).bytes
        #expect(received == expected)
    }

    @Test func `memory and files go out in the order they were added`() throws {
        for sendBuffer in [nil, 2048, 9000] as [Int32?] {
            let content = pattern(50_000)
            let file = try memoryFile(content)
            let pair = try SocketPair(sendBuffer: sendBuffer)
            var queue = OutputQueue()
            var expected: [UInt8] = []
            func memory(_ count: Int) {
                queue.append(owned: pattern(count, seed: count))
                expected += pattern(count, seed: count)
            }
            func run(_ offset: Int, _ count: Int) {
                queue.append(file: file.fd, offset: offset, count: count, owner: file)
                expected += content[offset..<(offset + count)]
            }
            memory(100)
            run(0, 50_000)
            memory(3)
            memory(5000)
            run(49_999, 1)
            run(10, 20_000)
            run(0, 1)
            memory(1)
            #expect(queue.pendingBytes == expected.count)
            #expect(drain(&queue, through: pair) == expected)
            #expect(queue.isEmpty && queue.pendingBytes == 0)
        }
    }

    @Test func `owners are kept until their bytes are out and no longer`() throws {
        let counter = OwnedBytes.Counter()
        let pair = try SocketPair()
        var queue = OutputQueue()
        for _ in 0..<5 { queue.append(owned: pattern(10), counter) }
        #expect(counter.alive == 5)
        queue.consume(9)
        #expect(counter.alive == 5)
        queue.consume(1)
        #expect(counter.alive == 4)
        queue.consume(25)
        #expect(counter.alive == 2)
        #expect(queue.flush(to: pair.left.fd) == .drained)
        #expect(counter.alive == 0)
    }

    @Test(arguments: [
        (0, true), (1, true), (2048, true), (2049, false), (BufferPool.smallBytes, false),
    ])
    func `a few bytes are copied behind the last run, more are not`(
        count: Int, isCopied: Bool
    ) throws {
        let (pair, pool, counter) = (try SocketPair(), BufferPool(), OwnedBytes.Counter())
        defer { pool.close() }
        let head = [UInt8](repeating: 7, count: 100)
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        var queue = OutputQueue()
        queue.append(inBuffer: head, of: pool)
        do {
            let owner = OwnedBytes(content, counter)
            #expect(queue.appendCopy(owner.bytes) == isCopied)
            if !isCopied { queue.append(owner.bytes, owner: owner) }
        }
        #expect(counter.alive == (isCopied ? 0 : 1))
        #expect(queue.pendingBytes == head.count + count)
        #expect(queue.front?.isLast == isCopied)
        #expect(drain(&queue, through: pair) == head + content)
    }

    @Test func `nothing is copied behind what is not the end of its buffer`() throws {
        let (pair, pool) = (try SocketPair(), BufferPool())
        defer { pool.close() }
        let bytes: [UInt8] = [1, 2, 3]
        func copies(_ queue: inout OutputQueue) -> Bool {
            bytes.withUnsafeBytes { queue.appendCopy($0) }
        }
        var queue = OutputQueue()
        #expect(!copies(&queue))
        queue.append("constant")
        #expect(!copies(&queue))
        let shared = pool.takeSmall()
        shared.writable.copyBytes(from: bytes)
        shared.end = 3
        queue.append(shared.readable, owner: shared)
        // Its owner has since appended to it.
        shared.writable.copyBytes(from: [9])
        shared.end = 4
        #expect(!copies(&queue))
        queue.append(inBuffer: [UInt8](repeating: 5, count: BufferPool.smallBytes - 4), of: pool)
        #expect(copies(&queue))
        #expect(!copies(&queue))
        let full = [UInt8](repeating: 5, count: BufferPool.smallBytes - 4)
        #expect(drain(&queue, through: pair) == Array("constant".utf8) + bytes + full + bytes)
    }

    @Test func `bytes are copied behind a run of which a part is written`() throws {
        let (pair, pool) = (try SocketPair(), BufferPool())
        defer { pool.close() }
        var queue = OutputQueue()
        queue.append(inBuffer: [1, 2, 3, 4], of: pool)
        queue.consume(3)
        #expect([UInt8]([5, 6]).withUnsafeBytes { queue.appendCopy($0) } == true)
        #expect(queue.pendingBytes == 3)
        #expect(drain(&queue, through: pair) == [4, 5, 6])
    }

    @Test func `consuming crosses runs and the rest is still written`() throws {
        let content = pattern(100)
        let file = try memoryFile(content)
        let expected = pattern(50) + content[20..<60] + pattern(30, seed: 5)
        for consumed in [0, 1, 49, 50, 51, 70, 89, 90, 91, 119, 120] {
            let pair = try SocketPair()
            var queue = OutputQueue()
            queue.append(owned: pattern(50))
            queue.append(file: file.fd, offset: 20, count: 40, owner: file)
            queue.append(owned: pattern(30, seed: 5))
            queue.consume(consumed)
            #expect(queue.pendingBytes == 120 - consumed)
            #expect(queue.isEmpty == (consumed == 120))
            #expect(drain(&queue, through: pair) == Array(expected[consumed...]))
        }
    }

    @Test func `what is discarded is released, partly written or not`() throws {
        for (count, consumed) in [(1, 0), (1, 4), (3, 0), (3, 14), (20, 35)] {
            let (pair, counter) = (try SocketPair(), OwnedBytes.Counter())
            var queue = OutputQueue()
            for _ in 0..<count { queue.append(owned: pattern(10), counter) }
            queue.consume(consumed)
            queue.discard()
            #expect(counter.alive == 0)
            #expect(queue.isEmpty && queue.front == nil)
            // It continues to be used.
            queue.append(owned: pattern(5), counter)
            queue.append(owned: pattern(6, seed: 3), counter)
            #expect(counter.alive == 2)
            #expect(drain(&queue, through: pair) == pattern(5) + pattern(6, seed: 3))
            #expect(counter.alive == 0)
        }
    }

    @Test func `runs added while others wait are sent after them`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        var expected: [UInt8] = []
        for round in 0..<50 {
            for index in 0..<(round % 4) {
                let run = pattern(7 + index, seed: round)
                queue.append(owned: run)
                expected += run
            }
            let count = min(queue.pendingBytes, round % 11)
            queue.consume(count)
            expected.removeFirst(count)
            #expect(queue.pendingBytes == expected.count)
        }
        #expect(drain(&queue, through: pair) == expected)
    }

    @Test func `the front is the first run that waits`() throws {
        let file = try memoryFile([1, 2, 3])
        var queue = OutputQueue()
        queue.append(owned: [7, 8, 9])
        queue.append(file: file.fd, offset: 0, count: 3, owner: file)
        #expect(queue.front?.count == 3)
        queue.consume(2)
        #expect(queue.front?.count == 1)
        #expect(queue.front?.memory?.load(as: UInt8.self) == 9)
        queue.consume(1)
        #expect(queue.front?.memory == nil)
        #expect(queue.front?.count == 3)
        queue.consume(3)
        #expect(queue.front == nil)
    }

    @Test func `the memory at the front is copied as far as there is room`() throws {
        let file = try memoryFile([1, 2, 3])
        var queue = OutputQueue()
        var room = [UInt8](repeating: 0, count: 4)
        #expect(room.withUnsafeMutableBytes { queue.copyFront(into: $0) } == 0)
        queue.append(owned: [7, 8])
        queue.append(owned: [9])
        queue.append(file: file.fd, offset: 1, count: 2, owner: file)
        queue.append(owned: [10])
        #expect(queue.front?.isLast == false)
        #expect(room.withUnsafeMutableBytes { queue.copyFront(into: $0) } == 3)
        #expect(room == [7, 8, 9, 0])
        queue.consume(1)
        var small = [UInt8](repeating: 0, count: 1)
        #expect(small.withUnsafeMutableBytes { queue.copyFront(into: $0) } == 1)
        #expect(small == [8])
        queue.consume(2)
        #expect(room.withUnsafeMutableBytes { queue.copyFront(into: $0) } == 0)
        #expect(queue.front?.file == file.fd)
        #expect(queue.front?.offset == 1)
        queue.consume(2)
        #expect(queue.front?.isLast == true)
    }

    @Test func `a queue is used again after it was drained`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        for round in 0..<20 {
            let expected = pattern(round + 1, seed: round)
            for byte in expected { queue.append(owned: [byte]) }
            #expect(queue.flush(to: pair.left.fd) == .drained)
            #expect(receive(from: pair.right.fd).bytes == expected)
        }
    }

    @Test func `discarding forgets the bytes and their owners`() throws {
        let counter = OwnedBytes.Counter()
        var queue = OutputQueue()
        for _ in 0..<3 { queue.append(owned: [1, 2], counter) }
        queue.consume(3)
        queue.discard()
        #expect(counter.alive == 0)
        #expect(queue.isEmpty && queue.pendingBytes == 0)
        queue.append(owned: [5], counter)
        let pair = try SocketPair()
        #expect(drain(&queue, through: pair) == [5])
    }

    @Test func `a peer that has closed is a failure`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        queue.append("bytes")
        pair.right.close()
        #expect(queue.flush(to: pair.left.fd) == .failed(.brokenPipe))
        #expect(queue.pendingBytes == 5)
    }

    @Test func `a file that is shorter than announced is a failure`() throws {
        let file = try memoryFile(pattern(10))
        let pair = try SocketPair()
        var queue = OutputQueue()
        queue.append(file: file.fd, offset: 4, count: 7, owner: file)
        #expect(queue.flush(to: pair.left.fd) == .failed(Errno(code: EIO)))
        #expect(receive(from: pair.right.fd).bytes == Array(pattern(10)[4...]))
        #expect(queue.pendingBytes == 1)
    }

    @Test func `a file that cannot be read is a failure`() throws {
        let pair = try SocketPair()
        var queue = OutputQueue()
        queue.append(file: -1, offset: 0, count: 1, owner: pair)
        #expect(queue.flush(to: pair.left.fd) == .failed(Errno(code: EBADF)))
    }
}
