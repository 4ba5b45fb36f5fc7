import CLinux
import Clocks
import Testing

@testable import EventLoop

/// A descriptor that is closed with its last reference.
final class OwnedDescriptor {
    let fd: Int32
    private(set) var isOpen = true

    init(_ fd: Int32) { self.fd = fd }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Descriptors.close(fd)
    }

    deinit { close() }
}

/// Two connected stream sockets, non-blocking, closed with the pair.
final class SocketPair {
    let left: OwnedDescriptor
    let right: OwnedDescriptor

    /// - Parameter sendBuffer: the approximate size of the left end's kernel buffer.
    init(sendBuffer: Int32? = nil) throws {
        var ends: [Int32] = [-1, -1]
        let type =
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Errno.last }
        left = OwnedDescriptor(ends[0])
        right = OwnedDescriptor(ends[1])
        if var size = sendBuffer {
            try #require(
                setsockopt(left.fd, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(4)) == 0)
        }
    }
}

/// A file in memory with these bytes.
func memoryFile(_ bytes: [UInt8]) throws -> OwnedDescriptor {
    let fd = memfd_create("test", UInt32(PINFOLD_MFD_CLOEXEC))
    guard fd >= 0 else { throw Errno.last }
    let file = OwnedDescriptor(fd)
    var written = 0
    while written < bytes.count {
        let count = bytes[written...].withUnsafeBytes { CLinux.write(fd, $0.baseAddress, $0.count) }
        guard count > 0 else { throw Errno.last }
        written += count
    }
    return file
}

/// Bytes that depend on their position.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 ^ ($0 >> 8)) }
}

/// Writes a few bytes completely to a socket that has space for them.
func send(_ text: String, to end: OwnedDescriptor) {
    var bytes = Array(text.utf8)
    let result = bytes.withUnsafeMutableBytes {
        Transfers.write(end.fd, UnsafeRawBufferPointer($0))
    }
    #expect(result == .bytes(bytes.count))
}

/// What can be read now, at most `limit` bytes, and how reading ended.
func receive(from fd: Int32, limit: Int = .max) -> (bytes: [UInt8], last: IOResult?) {
    var all: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 64 * 1024)
    while all.count < limit {
        let wanted = min(block.count, limit - all.count)
        let result = block.withUnsafeMutableBytes {
            Transfers.read(fd, into: UnsafeMutableRawBufferPointer(rebasing: $0[0..<wanted]))
        }
        guard case .bytes(let count) = result else { return (all, result) }
        all += block[0..<count]
    }
    return (all, nil)
}

/// Waits until a descriptor has one of the poll(2) events; `false` after a minute.
func waitFor(_ events: Int32, on fd: Int32) -> Bool {
    var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
    while true {
        let count = poll(&entry, 1, 60_000)
        if count > 0 { return true }
        if count == 0 || Errno.last != .interrupted { return false }
    }
}

/// Records what a loop calls.
final class Recorder: EventHandler {
    private(set) var events: [Readiness] = []
    /// The times of the calls.
    private(set) var deadlines: [Int64] = []
    var onReady: ((Readiness) -> Void)?
    var onDeadline: (() -> Void)?
    /// Not retained: it retains its handlers.
    private weak var loop: EventLoop?

    init(_ loop: EventLoop? = nil) { self.loop = loop }

    override func ready(_ readiness: Readiness) {
        events.append(readiness)
        onReady?(readiness)
    }

    override func deadlineReached() {
        deadlines.append(loop?.now ?? 0)
        onDeadline?()
    }
}

extension EventLoop {
    /// Runs turns until a condition holds; `false` if it does not within a minute.
    func runs(until condition: () -> Bool) -> Bool {
        let end = Clock.monotonicMilliseconds() + 60_000
        while !condition() {
            guard Clock.monotonicMilliseconds() < end else { return false }
            turn(waitingAtMost: 1000)
        }
        return true
    }

    /// Runs turns until this many milliseconds have passed.
    func runs(for milliseconds: Int64) {
        let end = Clock.monotonicMilliseconds() + milliseconds
        while Clock.monotonicMilliseconds() < end { turn(waitingAtMost: 4) }
        turn(waitingAtMost: 0)
    }
}
