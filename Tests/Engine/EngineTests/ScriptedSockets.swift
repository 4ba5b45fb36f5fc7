import CLinux
import EventLoop
import HTTPCore

@testable import PinfoldEngine

/// The destinations of a world's connections: each is one end of a socket pair, which the kernel
/// reports as not writable until the script decides how the attempt ends.
final class ScriptedSockets: SocketSource {
    private final class Attempt {
        let near: Int32
        let far: Int32
        /// How it has ended; `nil` while it has not.
        var outcome: Outcome?

        init(near: Int32, far: Int32) {
            self.near = near
            self.far = far
        }
    }

    private enum Outcome {
        case established
        case failed(Errno)
    }

    weak var world: SimulatedWorld?
    private var attempts: [Attempt] = []
    /// The far end of the connection that was reported last, until it is taken.
    private var latest: Int32 = -1
    private var signalsBefore = sigset_t()

    static let failures = [
        Errno.connectionRefused, .hostUnreachable, .networkUnreachable, .timedOut,
    ]

    private static var brokenPipe: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        return signals
    }

    /// Blocks SIGPIPE in its thread for as long as it lives, as the process does permanently: errno
    /// shows that a connection is gone, also for splice(2).
    init() {
        var signals = Self.brokenPipe
        pthread_sigmask(SIG_BLOCK, &signals, &signalsBefore)
    }

    deinit {
        var signals = Self.brokenPipe
        // A pending signal would be delivered now.
        var wait = timespec()
        while sigtimedwait(&signals, nil, &wait) == SIGPIPE {}
        if sigismember(&signalsBefore, SIGPIPE) == 0 {
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        }
    }

    func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        guard let world else { throw .connectionRefused }
        world.checkMayConnect(endpoint)
        if !world.isSettling, world.random.chance(8) {
            throw world.random.pick(Self.failures + [Errno(code: EMFILE)])
        }
        guard let (near, far) = Self.pair() else { throw Errno(code: EMFILE) }
        // So small that using a part of it fills it: an attempt is not writable.
        var size: Int32 = 4096
        setsockopt(near, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let filling = [UInt8](repeating: 0, count: 2048)
        while send(near, filling, filling.count, Int32(MSG_NOSIGNAL)) > 0 {}
        attempts.append(Attempt(near: near, far: far))
        world.note("connects", attempts.count, 0)
        return near
    }

    /// Two connected, non-blocking sockets that programs started by other tests do not keep open.
    static func pair() -> (Int32, Int32)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        return (ends[0], ends[1])
    }

    func connectionError(_ descriptor: Int32) -> Errno? {
        guard let index = attempts.lastIndex(where: { $0.near == descriptor }),
            let outcome = attempts[index].outcome
        else {
            world?.fail("an attempt is thought to have ended that has not")
            return .connectionRefused
        }
        let attempt = attempts.remove(at: index)
        switch outcome {
        case .established:
            closeLatest()
            latest = attempt.far
            return nil
        case .failed(let error):
            close(attempt.far)
            return error
        }
    }

    /// The far end of the connection that was established last.
    func takeLatest() -> Int32 {
        defer { latest = -1 }
        return latest
    }

    private func closeLatest() {
        if latest >= 0 { close(latest) }
        latest = -1
    }

    /// Ends one attempt in progress; returns false if there is none.
    @discardableResult
    func step() -> Bool {
        dropAbandoned()
        guard let world, !attempts.isEmpty else { return false }
        let attempt = attempts[world.random.below(attempts.count)]
        guard attempt.outcome == nil else { return false }
        if !world.isSettling, world.random.chance(25) {
            attempt.outcome = .failed(world.random.pick(Self.failures))
        } else {
            attempt.outcome = .established
        }
        drain(attempt)
        return true
    }

    private func drain(_ attempt: Attempt) {
        var bytes = [UInt8](repeating: 0, count: 8192)
        while recv(attempt.far, &bytes, bytes.count, 0) > 0 {}
    }

    /// Releases those that the gateway has closed.
    ///
    /// - Parameter milliseconds: how long that may take to show: between fork and exec a program
    ///   has all descriptors.
    private func dropAbandoned(waitingAtMost milliseconds: Int32 = 0) {
        attempts.removeAll { attempt in
            var state = pollfd(fd: attempt.far, events: 0, revents: 0)
            guard poll(&state, 1, milliseconds) > 0, state.revents & Int16(POLLHUP) != 0 else {
                return false
            }
            close(attempt.far)
            return true
        }
    }

    /// What is wrong when everything has ended.
    func violationAtEnd() -> String? {
        dropAbandoned(waitingAtMost: 5000)
        let left = attempts.count
        for attempt in attempts { close(attempt.far) }
        attempts = []
        closeLatest()
        return left > 0 ? "\(left) attempts to connect are neither used nor closed" : nil
    }
}
