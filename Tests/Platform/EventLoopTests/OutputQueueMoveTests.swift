import CLinux
import Testing

@testable import EventLoop

/// From one queue to another, as of a stream to its connection.
@Suite("Output that is moved between queues")
struct OutputQueueMoveTests {
    private final class Owner {
        let bytes: UnsafeMutableRawBufferPointer
        init(_ content: [UInt8]) {
            bytes = .allocate(byteCount: content.count, alignment: 1)
            bytes.copyBytes(from: content)
        }
        deinit { bytes.deallocate() }
    }

    private static func written(_ queue: inout OutputQueue) throws -> [UInt8] {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        var received: [UInt8] = []
        while !queue.isEmpty {
            let result = queue.flush(to: pair.left.fd)
            received += receive(from: pair.right.fd).bytes
            if case .failed(let error) = result { throw error }
        }
        return received
    }

    @Test(arguments: [1, 7, 100, 2048, 2049, 5000, 100_000])
    func `all bytes arrive in order, whatever the size of the parts`(part: Int) throws {
        let pool = BufferPool()
        defer { pool.close() }
        let content = pattern(20_000)
        let file = try memoryFile(pattern(9000, seed: 3))
        var source = OutputQueue()
        var expected: [UInt8] = []
        let owner = Owner(content)
        source.append(UnsafeRawBufferPointer(owner.bytes), owner: owner)
        expected += content
        source.append(file: file.fd, offset: 10, count: 8000, owner: file)
        expected += pattern(9000, seed: 3)[10..<8010]
        source.append("the end")
        expected += Array("the end".utf8)
        var destination = OutputQueue()
        var arrived: [UInt8] = []
        let frame = pool.takeSmall()
        while !source.isEmpty {
            // As the header of a frame precedes each part.
            frame.writable.copyBytes(from: [0])
            destination.appendWritten(1, to: frame)
            source.move(min(part, source.pendingBytes), to: &destination)
            if frame.writable.count < 4096 || destination.pendingBytes > 1000 {
                arrived += try Self.written(&destination)
                frame.clear()
            }
        }
        arrived += try Self.written(&destination)
        var rest = arrived[...]
        var moved: [UInt8] = []
        while !rest.isEmpty {
            rest = rest.dropFirst()
            let count = min(part, expected.count - moved.count)
            moved += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        #expect(moved == expected)
    }

    @Test func `what was moved is kept alive where it is now, and nowhere else`() throws {
        weak var seen: Owner?
        var source = OutputQueue()
        var destination = OutputQueue()
        do {
            let owner = Owner(pattern(10_000))
            seen = owner
            source.append(UnsafeRawBufferPointer(owner.bytes), owner: owner)
        }
        source.move(4000, to: &destination)
        #expect(source.pendingBytes == 6000 && destination.pendingBytes == 4000)
        source.discard()
        #expect(seen != nil)
        #expect(try Self.written(&destination) == Array(pattern(10_000)[..<4000]))
        #expect(seen == nil)
    }

    @Test func `bytes written behind the last run lengthen it`() throws {
        let pool = BufferPool()
        defer { pool.close() }
        let frames = pool.takeSmall()
        var queue = OutputQueue()
        for byte in 0..<3 as Range<UInt8> {
            frames.writable.copyBytes(from: [byte, byte])
            queue.appendWritten(2, to: frames)
        }
        #expect(queue.front?.isLast == true && queue.front?.count == 6)
        queue.append("x")
        frames.writable.copyBytes(from: [9])
        queue.appendWritten(1, to: frames)
        queue.appendWritten(0, to: frames)
        #expect(queue.pendingBytes == 8)
        #expect(try Self.written(&queue) == [0, 0, 1, 1, 2, 2, UInt8(ascii: "x"), 9])
    }
}
