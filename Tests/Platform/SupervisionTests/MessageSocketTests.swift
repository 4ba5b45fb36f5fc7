import CLinux
import Testing

@testable import Supervision

@Suite("Messages between two processes")
struct MessageSocketTests {
    @Test func `keep their boundaries`() throws {
        let (one, other) = try MessageSocket.pair()
        #expect(try other.receive() == .nothing)
        for message in [[1], [2, 3], [UInt8](repeating: 4, count: MessageSocket.maximumBytes)] {
            try one.send(message)
        }
        #expect(try other.receive() == .message([1], descriptors: []))
        #expect(try other.receive() == .message([2, 3], descriptors: []))
        guard case .message(let bytes, _) = try other.receive() else {
            Issue.record("no message")
            return
        }
        #expect(bytes.count == MessageSocket.maximumBytes)
        #expect(try other.receive(waitingAtMost: 1) == .nothing)
    }

    @Test func `bring descriptors along`() throws {
        let (one, other) = try MessageSocket.pair()
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let many = [Int32](repeating: ends[1], count: MessageSocket.maximumDescriptors)
        try one.send([7], descriptors: many)
        guard case .message([7], let descriptors) = try other.receive() else {
            Issue.record("no message")
            return
        }
        #expect(descriptors.count == many.count)
        for descriptor in descriptors {
            #expect(fcntl_int(descriptor, F_GETFD, 0) & FD_CLOEXEC != 0)
            var byte: UInt8 = 9
            #expect(write(descriptor, &byte, 1) == 1)
            close(descriptor)
        }
        var room = [UInt8](repeating: 0, count: 300)
        #expect(read(ends[0], &room, room.count) == many.count)
    }

    @Test func `come before the end`() throws {
        var (one, other): (MessageSocket?, MessageSocket) = try MessageSocket.pair()
        // Unread, which makes the kernel report a reset first.
        try other.send([1])
        try one?.send([2])
        one = nil
        #expect(try other.receive() == .message([2], descriptors: []))
        #expect(try other.receive() == .end)
        #expect(throws: MessageSocket.CallError("sendmsg", EPIPE)) { try other.send([3]) }
    }

    @Test func `are not for an end that is closed, whether it has read all or not`() throws {
        for hasRead in [true, false] {
            var (one, other): (MessageSocket?, MessageSocket) = try MessageSocket.pair()
            try other.send([1])
            if hasRead { _ = try one?.receive() }
            one = nil
            for _ in 0..<2 {
                do throws(MessageSocket.CallError) {
                    try other.send([2])
                    Issue.record("sent")
                } catch {
                    #expect(error.isOfClosedEnd)
                }
            }
        }
    }

    @Test func `are of a known process`() throws {
        let (one, other) = try MessageSocket.pair()
        #expect(one.isConnected(to: getpid()))
        #expect(!one.isConnected(to: getppid()))
        withExtendedLifetime(other) {}
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        close(ends[1])
        #expect(!MessageSocket(descriptor: ends[0]).isConnected(to: getpid()))
    }

    @Test func `are files where they are too large`() throws {
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        try MessageFile.with(bytes) { #expect(MessageFile.read($0) == bytes) }
        try MessageFile.with([]) { #expect(MessageFile.read($0) == []) }
        #expect(MessageFile.read(-1) == nil)
    }

    @Test func `go to a child, whose end is known`() throws {
        let (ours, its) = try MessageSocket.pair()
        func child(_ script: String) throws -> ChildProcess {
            try ChildProcess(
                "/bin/sh", arguments: ["sh", "-c", script], environment: ["NAME=value"],
                descriptor: its.descriptor, as: 3)
        }
        func end(_ child: ChildProcess) -> ChildProcess.Ended? {
            for _ in 0..<5000 {
                if let ended = child.check() { return ended }
                usleep(2000)
            }
            return nil
        }
        let exits = try child("test \"$NAME\" = value && echo -n hello >&3; exit 3")
        #expect(end(exits) == .exited(3))
        #expect(exits.check() == .exited(3))
        #expect(try ours.receive() == .message(Array("hello".utf8), descriptors: []))
        #expect(end(try child("kill -TERM $$")) == .killed(signal: SIGTERM))
        let endless = try child("exec sleep 1000")
        #expect(endless.check() == nil)
        endless.end()
        #expect(endless.check() == .killed(signal: SIGKILL))
        #expect(throws: MessageSocket.CallError("/nonexistent", ENOENT)) {
            try ChildProcess(
                "/nonexistent", arguments: ["x"], environment: [], descriptor: its.descriptor, as: 3
            )
        }
    }
}

@Suite("A secret that another process gets")
struct SecretPipeTests {
    private func send(_ secret: [UInt8], _ body: (Int32) -> Void) throws {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: secret.count, alignment: 1)
        defer { room.deallocate() }
        room.copyBytes(from: secret)
        try SecretPipe.with(UnsafeRawBufferPointer(room), body)
    }

    private func read(_ descriptor: Int32, room: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: room) { bytes, count in
            count = SecretPipe.read(descriptor, into: UnsafeMutableRawBufferPointer(bytes))
        }
    }

    @Test(arguments: [1, 100, SecretPipe.maximumBytes])
    func `can be read once`(count: Int) throws {
        let secret = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        try send(secret) { pipe in
            #expect(fcntl_int(pipe, F_GETFD, 0) & FD_CLOEXEC != 0)
            #expect(read(pipe, room: count) == secret)
            #expect(read(pipe, room: count) == [])
        }
    }

    @Test func `is nothing if there is too little room, or no pipe`() throws {
        try send([1, 1, 1, 1, 1]) { #expect(read($0, room: 4) == []) }
        let (one, other) = try MessageSocket.pair()
        try other.send([1])
        #expect(read(one.descriptor, room: 4) == [])
        let file = memfd_create("test", 0)
        defer { close(file) }
        #expect(read(file, room: 4) == [])
    }
}
