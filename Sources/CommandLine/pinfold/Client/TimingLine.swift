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
        var parts = ["queued \(milliseconds(transaction.queued))"]
        let steps: [(String, Duration?)] = [
            ("lookup", transaction.lookup), ("connect", transaction.connect),
            ("tunnel", transaction.tunnel), ("TLS", transaction.handshake),
            ("first byte", transaction.firstByte),
            ("total", transaction.total),
        ]
        for (name, duration) in steps {
            if let duration { parts.append("\(name) \(milliseconds(duration))") }
        }
        if transaction.reusedConnection { parts.append("connection reused") }
        if transaction.cache != .none { parts.append("cache \(transaction.cache.rawValue)") }
        if let server = transaction.server { parts.append("from \(server)") }
        parts.append("sent \(transaction.sentBytes) bytes")
        parts.append("received \(transaction.receivedBytes) bytes")
        if let failure { parts.append("failed (\(failure))") }
        let status = transaction.status.map { "\($0)" } ?? "no response"
        return "\(status) \(transaction.url): \(parts.joined(separator: ", "))\n"
    }

    /// A duration in milliseconds, with one decimal.
    private static func milliseconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let tenths = seconds * 10_000 + attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
