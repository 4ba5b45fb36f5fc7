import EventLoop

/// What still arrives on a connection that has said everything, and is to be closed. It is read and
/// discarded for a while: closing with unread input would reset the connection, and a reset
/// destroys what the peer has not read yet (RFC 9112 §9.6).
package struct UnwantedInput {
    /// How long that may take, in milliseconds.
    package static let milliseconds: Int64 = 2000
    /// How much is read, in bytes.
    private static let mostBytes = 1 << 20

    private var bytes = 0

    package init() {}

    package enum Step {
        /// More may arrive.
        case waits
        /// There is more, for another turn.
        case turnIsOver
        /// The peer has ended as well, or has sent too much.
        case isOver
    }

    /// Reads what there is.
    package mutating func discard(
        from transport: Transport, _ readiness: inout InputReadiness, by buffers: BufferPool,
        spending budget: inout TurnBudget
    ) -> Step {
        let scratch = buffers.takeSmall()
        while readiness == .ready, bytes < Self.mostBytes {
            switch transport.read(into: scratch.writable, spending: &budget) {
            case .bytes(let count, _): bytes += count
            case .wouldBlock(let wantsWrite): readiness.foundNothing(wantsWrite: wantsWrite)
            case .turnIsOver: return .turnIsOver
            case .endOfStream, .truncated, .failed: return .isOver
            }
        }
        return bytes < Self.mostBytes ? .waits : .isOver
    }
}
