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
        let endless = try child("sleep 1000")
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
