import EventLoop
import PinfoldEngine

/// A client's connection that has said everything, and is to be closed: what its client still sends
/// is discarded for a while (``UnwantedInput``).
struct Lingering {
    /// How long that may take, in milliseconds.
    static let milliseconds = UnwantedInput.milliseconds

    private var input = UnwantedInput()
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

    /// Reads what there is.
    mutating func discard(
        from transport: Transport, _ readiness: inout InputReadiness, by buffers: BufferPool,
        spending budget: inout TurnBudget
    ) -> UnwantedInput.Step {
        input.discard(from: transport, &readiness, by: buffers, spending: &budget)
    }
}
