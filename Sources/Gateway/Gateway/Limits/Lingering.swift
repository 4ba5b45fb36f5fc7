import EventLoop
import PinfoldEngine

/// A connection that has said everything, and is to be closed. What its client still sends is read
/// and discarded for a while: closing with unread input would reset the connection, and a reset
/// destroys what the client has not read yet (RFC 9112 §9.6).
struct Lingering {
    /// How long that may take, in milliseconds.
    static let milliseconds: Int64 = 2000
    /// How much is still read, in bytes.
    private static let mostBytes = 1 << 20

    private var bytes = 0
    /// Its entry among the lingering connections; `nil` if it is not one that could make room.
    private var member: LingeringConnection?

    /// Begins, among those of a worker if it is a client's.
    mutating func begin(_ connection: any AdmittedConnection, among all: Worker?) {
        guard let all else { return }
        let member = LingeringConnection(connection)
        all.lingeringClients.append(member)
        self.member = member
    }

    /// The connection is closed.
    mutating func end(among all: Worker) {
        if let member = member.take() { all.lingeringClients.remove(member) }
    }

    enum Step {
        /// More may arrive.
        case waits
        /// There is more, for another turn.
        case turnIsOver
        /// The client has ended as well, or has sent too much.
        case isOver
    }

    /// Reads what there is.
    mutating func discard(
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
