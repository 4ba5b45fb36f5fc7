import CLinux

/// The error number of a failed system call (errno(3)), read right after the call.
public struct Errno: Error, Equatable, Sendable, CustomStringConvertible {
    public let code: Int32

    @inlinable
    public init(code: Int32) { self.code = code }

    /// The error of a call that returned a negated errno.
    @inlinable @inline(__always)
    init(negated result: Int) { code = Int32(truncatingIfNeeded: -result) }

    /// The calling thread's errno; meaningful only directly after a failed call.
    @inlinable @inline(__always)
    static var last: Errno { Errno(code: __errno_location().pointee) }

    public static let again = Errno(code: EAGAIN)
    public static let interrupted = Errno(code: EINTR)
    public static let inProgress = Errno(code: EINPROGRESS)
    public static let connectionRefused = Errno(code: ECONNREFUSED)
    public static let connectionReset = Errno(code: ECONNRESET)
    public static let inputOutput = Errno(code: EIO)
    public static let brokenPipe = Errno(code: EPIPE)
    public static let timedOut = Errno(code: ETIMEDOUT)
    public static let noSuchFile = Errno(code: ENOENT)
    public static let accessDenied = Errno(code: EACCES)
    public static let hostUnreachable = Errno(code: EHOSTUNREACH)
    public static let networkUnreachable = Errno(code: ENETUNREACH)

    /// Whether the process or the system has run out of descriptors or buffers (accept(2)).
    public var isExhaustion: Bool {
        code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM
    }

    /// Whether the process or the system has run out of descriptors: closing one helps.
    public var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }

    public var description: String { "\(String(cString: strerror(code))) (errno \(code))" }
}

/// The result of a non-blocking transfer. "Would block" is a result, not an error.
public enum IOResult: Equatable, Sendable {
    /// At least one byte was transferred.
    case bytes(Int)
    /// Nothing can be transferred now; readiness will be reported.
    case wouldBlock
    /// The peer has finished sending (reads only).
    case endOfStream
    case failed(Errno)
}
