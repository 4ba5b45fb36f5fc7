import CLinux

/// Identifies one registration: the slot of its handler and the slot's generation at that time, so
/// that one comparison is enough to drop an event for a handler that is gone.
public struct Token: Equatable, Sendable, Hashable {
    public let raw: UInt64

    init(slot: Int, generation: UInt32) {
        raw = UInt64(generation) << 32 | UInt64(UInt32(truncatingIfNeeded: slot))
    }

    @inlinable init(raw: UInt64) { self.raw = raw }

    var slot: Int { Int(UInt32(truncatingIfNeeded: raw)) }
    var generation: UInt32 { UInt32(truncatingIfNeeded: raw >> 32) }

    /// Matches no handler.
    @inlinable public static var none: Token { Token(raw: .max) }
}

/// What a descriptor became ready for.
public struct Readiness: OptionSet, Sendable {
    public let rawValue: UInt32
    @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

    @inlinable public static var readable: Readiness { Readiness(rawValue: EPOLLIN.rawValue) }
    @inlinable public static var writable: Readiness { Readiness(rawValue: EPOLLOUT.rawValue) }
    /// The peer has finished sending; earlier data may still be unread.
    @inlinable public static var peerFinished: Readiness {
        Readiness(rawValue: EPOLLRDHUP.rawValue)
    }
    /// Both directions are over.
    @inlinable public static var hungUp: Readiness { Readiness(rawValue: EPOLLHUP.rawValue) }
    @inlinable public static var failed: Readiness { Readiness(rawValue: EPOLLERR.rawValue) }
    /// Something out of the ordinary: an event of the kernel's own files, or urgent data.
    @inlinable public static var urgent: Readiness { Readiness(rawValue: EPOLLPRI.rawValue) }

    /// Reading will return bytes, the end of the stream, or the error.
    @inline(__always)
    @inlinable public var mayRead: Bool {
        !isDisjoint(with: [.readable, .peerFinished, .hungUp, .failed])
    }

    /// Writing will accept bytes or return the error.
    @inline(__always)
    @inlinable public var mayWrite: Bool { !isDisjoint(with: [.writable, .hungUp, .failed]) }
}

/// How a registration reports.
public enum Trigger: Sendable {
    /// Once per change, for both directions, and never re-armed: the handler remembers what it has
    /// not used up. No system call per request.
    case edge
    /// As long as there is something to read.
    case levelReadable
    /// The same for a socket that several loops accept from: not all of them are woken for one
    /// connection (EPOLLEXCLUSIVE).
    case levelReadableShared
    /// As long as there is an exceptional event.
    case levelUrgent
}

/// An epoll(7) instance.
struct Selector: ~Copyable {
    private let fd: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>

    init(eventsPerWait: Int) throws(Errno) {
        fd = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard fd >= 0 else { throw Errno.last }
        events = .allocate(capacity: eventsPerWait)
    }

    deinit {
        events.deallocate()
        Descriptors.close(fd)
    }

    func add(_ descriptor: Int32, token: Token, trigger: Trigger) throws(Errno) {
        var event = epoll_event()
        switch trigger {
        case .edge:
            event.events =
                EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        case .levelReadable:
            event.events = EPOLLIN.rawValue
        case .levelReadableShared:
            event.events = EPOLLIN.rawValue | EPOLLEXCLUSIVE.rawValue
        case .levelUrgent:
            event.events = EPOLLPRI.rawValue
        }
        event.data.u64 = token.raw
        guard epoll_ctl(fd, EPOLL_CTL_ADD, descriptor, &event) == 0 else { throw Errno.last }
    }

    func remove(_ descriptor: Int32) {
        var event = epoll_event()
        _ = epoll_ctl(fd, EPOLL_CTL_DEL, descriptor, &event)
    }

    /// The maximum number of events that one wait returns.
    var capacity: Int { events.count }

    /// Waits at most `milliseconds` (-1 for no limit) and returns the number of events.
    @inline(__always)
    func wait(milliseconds: Int32) -> Int {
        // EINTR is a wait that ended early.
        max(0, Int(epoll_wait(fd, events.baseAddress, Int32(events.count), milliseconds)))
    }

    /// An event of the last wait.
    @inline(__always)
    subscript(index: Int) -> (Token, Readiness) {
        let event = events[index]
        return (Token(raw: event.data.u64), Readiness(rawValue: event.events))
    }

    /// Detaches an event of the last wait from its handler.
    func forget(_ index: Int) {
        // Sets the union as a whole: the compiler cannot yet set a member in place with
        // ThreadSanitizer.
        events[index].data = epoll_data_t(u64: Token.none.raw)
    }
}
