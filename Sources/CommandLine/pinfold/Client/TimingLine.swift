import Gateway
import PinfoldClient

/// Formats the timing of requests.
enum TimingLine {
    /// One line for each request of a task. If the task failed, the last line gives the reason.
    static func lines(_ end: TaskCompletion) -> [String] {
        let transactions = end.metrics.transactions
        return transactions.enumerated().map { index, transaction in
            let isLast = index == transactions.count - 1
            return text(transaction, failure: isLast ? end.error?.token : nil)
        }
    }

    private static func text(
        _ transaction: TaskMetrics.Transaction, failure: String?
    ) -> String {
        var phases = transaction.phases
        phases.add(.queue, UInt64(clamping: microseconds(transaction.queued)))
        var parts = PhaseText.parts(of: phases)
        if let tunnel = transaction.tunnel,
            let connect = parts.firstIndex(where: { $0.hasPrefix("connect") })
        {
            parts[connect] += " (tunnel \(PhaseText.milliseconds(microseconds(tunnel))))"
        }
        parts.append("total \(PhaseText.milliseconds(microseconds(transaction.total)))")
        if transaction.reusedConnection { parts.append("connection reused") }
        if transaction.cache != .none { parts.append("cache \(transaction.cache.rawValue)") }
        if let server = transaction.server { parts.append("from \(server)") }
        parts.append("sent \(transaction.sentBytes) bytes")
        parts.append("received \(transaction.receivedBytes) bytes")
        if let failure { parts.append("failed (\(failure))") }
        let status = transaction.status.map { "\($0)" } ?? "no response"
        return "\(status) \(transaction.url): \(parts.joined(separator: ", "))\n"
    }

    private static func microseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
