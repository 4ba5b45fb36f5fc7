/// Whether a read may bring something, of a socket that reports only changes (``Trigger/edge``):
/// what was reported holds until a read has found nothing.
public enum InputReadiness: UInt8, Sendable {
    /// There may be something to read.
    case ready
    /// There is nothing to read before the socket is readable.
    case empty
    /// There is nothing to read before the socket is readable, or writable: TLS must write first.
    case awaitsWriting

    /// Takes note of what the socket has reported.
    @inlinable
    @inline(__always)
    public mutating func note(_ readiness: Readiness) {
        switch self {
        case .ready: break
        case .empty: if readiness.mayRead { self = .ready }
        case .awaitsWriting: if readiness.mayRead || readiness.mayWrite { self = .ready }
        }
    }

    /// Takes note of a read that found nothing.
    @inlinable
    @inline(__always)
    public mutating func foundNothing(wantsWrite: Bool) {
        self = wantsWrite ? .awaitsWriting : .empty
    }
}
