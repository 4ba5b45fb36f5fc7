import CLinux
import Testing
import Threads

@testable import EventLoop

private func write(_ fd: Int32, _ bytes: [UInt8]) -> IOResult {
    bytes.withUnsafeBytes { Transfers.write(fd, $0) }
}

@Suite("Reading, writing and sending files")
struct TransfersTests {
    @Test func `reading gives bytes, then nothing, then the end`() throws {
        let pair = try SocketPair()
        #expect(receive(from: pair.right.fd).last == .wouldBlock)
        #expect(write(pair.left.fd, [1, 2, 3]) == .bytes(3))
        #expect(receive(from: pair.right.fd, limit: 2).bytes == [1, 2])
        let (rest, last) = receive(from: pair.right.fd)
        #expect(rest == [3])
        #expect(last == .wouldBlock)
        pair.left.close()
        #expect(receive(from: pair.right.fd).last == .endOfStream)
    }

    @Test func `a full socket takes a part, then nothing`() throws {
        let pair = try SocketPair(sendBuffer: 4096)
        let bytes = pattern(1 << 18)
        guard case .bytes(let count) = write(pair.left.fd, bytes) else {
            Issue.record("nothing was written")
            return
        }
        #expect(count > 0 && count < bytes.count)
        #expect(write(pair.left.fd, bytes) == .wouldBlock)
        #expect(receive(from: pair.right.fd).bytes == Array(bytes[0..<count]))
    }

    @Test func `writing to a peer that has closed is an error and no signal`() throws {
        let pair = try SocketPair()
        pair.right.close()
        #expect(write(pair.left.fd, [1]) == .failed(.brokenPipe))
        var vectors = [iovec()]
        let result = vectors.withUnsafeMutableBufferPointer {
            Transfers.write(pair.left.fd, vectors: $0)
        }
        #expect(result == .failed(.brokenPipe) || result == .bytes(0))
    }

    @Test func `every transfer reports a bad descriptor`() throws {
        let bad = IOResult.failed(Errno(code: EBADF))
        let pair = try SocketPair()
        #expect(receive(from: -1).last == bad)
        #expect(write(-1, [1]) == bad)
        #expect(Transfers.sendFile(pair.left.fd, file: -1, offset: 0, count: 1) == bad)
        #expect(Transfers.splice(from: -1, to: pair.left.fd, count: 1) == bad)
    }

    @Test func `several runs of bytes go out in order`() throws {
        let pair = try SocketPair()
        var (first, second, third) = ([1, 2] as [UInt8], [3] as [UInt8], [4, 5, 6] as [UInt8])
        let result = first.withUnsafeMutableBytes { first in
            second.withUnsafeMutableBytes { second in
                third.withUnsafeMutableBytes { third in
                    var vectors = [first, second, third].map {
                        iovec(iov_base: $0.baseAddress, iov_len: $0.count)
                    }
                    return vectors.withUnsafeMutableBufferPointer {
                        Transfers.write(pair.left.fd, vectors: $0)
                    }
                }
            }
        }
        #expect(result == .bytes(6))
        #expect(receive(from: pair.right.fd).bytes == [1, 2, 3, 4, 5, 6])
    }

    @Test(
        arguments: [
            (0, 10, .bytes(10)), (4, 6, .bytes(6)), (4, 100, .bytes(6)), (9, 1, .bytes(1)),
            (10, 1, .endOfStream), (1000, 5, .endOfStream),
        ] as [(Int, Int, IOResult)])
    func `a file is sent from its offset`(offset: Int, count: Int, expected: IOResult) throws {
        let bytes = pattern(10)
        let file = try memoryFile(bytes)
        let pair = try SocketPair()
        let result = Transfers.sendFile(pair.left.fd, file: file.fd, offset: offset, count: count)
        #expect(result == expected)
        if case .bytes(let sent) = expected {
            #expect(receive(from: pair.right.fd).bytes == Array(bytes[offset..<(offset + sent)]))
        }
        // The file's own position is not used: others send the same file.
        #expect(lseek(file.fd, 0, SEEK_CUR) == off_t(bytes.count))
    }

    @Test func `sending a file to a full socket would block`() throws {
        let file = try memoryFile(pattern(1 << 18))
        let pair = try SocketPair(sendBuffer: 4096)
        var sent = 0
        while case .bytes(let count) = Transfers.sendFile(
            pair.left.fd, file: file.fd, offset: sent, count: 1 << 18 - sent)
        {
            sent += count
        }
        #expect(sent > 0 && sent < 1 << 18)
        let result = Transfers.sendFile(pair.left.fd, file: file.fd, offset: sent, count: 1)
        #expect(result == .wouldBlock)
        #expect(receive(from: pair.right.fd).bytes == Array(pattern(1 << 18)[0..<sent]))
    }
}

@Suite("Splicing through a pipe")
struct SpliceTests {
    private func pipe(capacity: Int32 = 65_536) throws -> (
        read: OwnedDescriptor, write: OwnedDescriptor
    ) {
        let ends = try Descriptors.pipe(capacity: capacity)
        return (OwnedDescriptor(ends.read), OwnedDescriptor(ends.write))
    }

    @Test func `a pipe is non-blocking and closed on exec`() throws {
        let ends = try pipe()
        for fd in [ends.read.fd, ends.write.fd] {
            #expect(fcntl_int(fd, F_GETFD, 0) == FD_CLOEXEC)
            #expect(fcntl_int(fd, F_GETFL, 0) & O_NONBLOCK != 0)
        }
    }

    @Test func `bytes go from socket to socket through a pipe`() throws {
        let (source, sink) = (try SocketPair(), try SocketPair())
        let through = try pipe()
        let bytes = pattern(30_000)
        #expect(write(source.left.fd, bytes) == .bytes(bytes.count))
        var (inPipe, received) = (0, [UInt8]())
        while received.count < bytes.count {
            if case .bytes(let count) = Transfers.splice(
                from: source.right.fd, to: through.write.fd, count: 7000)
            {
                #expect(count <= 7000)
                inPipe += count
            }
            guard
                case .bytes(let count) = Transfers.splice(
                    from: through.read.fd, to: sink.left.fd, count: inPipe)
            else {
                Issue.record("the pipe holds \(inPipe) bytes that do not come out")
                return
            }
            inPipe -= count
            received += receive(from: sink.right.fd).bytes
        }
        #expect(received == bytes)
        #expect(inPipe == 0)
    }

    @Test func `an empty source would block`() throws {
        let source = try SocketPair()
        let through = try pipe()
        let result = Transfers.splice(from: source.right.fd, to: through.write.fd, count: 100)
        #expect(result == .wouldBlock)
        let out = Transfers.splice(from: through.read.fd, to: source.right.fd, count: 100)
        #expect(out == .wouldBlock)
    }

    @Test func `the source's end is the end of the stream, after its bytes`() throws {
        let source = try SocketPair()
        let through = try pipe()
        send("bye", to: source.left)
        source.left.close()
        let moved = Transfers.splice(from: source.right.fd, to: through.write.fd, count: 100)
        #expect(moved == .bytes(3))
        let end = Transfers.splice(from: source.right.fd, to: through.write.fd, count: 100)
        #expect(end == .endOfStream)
    }

    @Test func `a full pipe would block and loses nothing`() throws {
        let source = try SocketPair()
        let through = try pipe(capacity: 4096)
        let bytes = pattern(40_000)
        #expect(write(source.left.fd, bytes) == .bytes(bytes.count))
        var moved = 0
        var result = IOResult.bytes(0)
        while case .bytes = result {
            result = Transfers.splice(
                from: source.right.fd, to: through.write.fd, count: bytes.count - moved)
            if case .bytes(let count) = result { moved += count }
        }
        #expect(result == .wouldBlock)
        #expect(moved > 0 && moved < bytes.count)
        let rest = receive(from: source.right.fd).bytes
        #expect(rest == Array(bytes[moved...]))
    }

    @Test func `a sink that has closed is an error`() throws {
        let sink = try SocketPair()
        let through = try pipe()
        var bytes = pattern(10)
        #expect(CLinux.write(through.write.fd, &bytes, 10) == 10)
        sink.right.close()
        let (source, target) = (through.read.fd, sink.left.fd)
        let results = try Mailbox<IOResult>()
        let thread = try Thread(name: "splice") {
            // splice(2) has no flag like MSG_NOSIGNAL. The gateway blocks the signal; here only
            // this thread does, because other tests are about its disposition.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            results.post(Transfers.splice(from: source, to: target, count: 10))
        }
        thread.join()
        #expect(results.take() == [.failed(.brokenPipe)])
    }
}
