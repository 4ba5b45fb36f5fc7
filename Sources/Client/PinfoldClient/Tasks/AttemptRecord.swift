import HTTPTypes

/// What is known of an attempt and of those before it, for metrics.
struct AttemptRecord: Sendable {
    let request: HTTPRequest
    let cause: TaskMetrics.Cause
    let channel: TransferChannel
    let before: TaskMetrics

    /// Those of the task up to now.
    ///
    /// - Parameter status: Nil: there is no response.
    func metrics(status: Int?) -> TaskMetrics {
        metrics(status: status, channel.times ?? TransferTimes())
    }

    func metrics(status: Int?, _ times: TransferTimes) -> TaskMetrics {
        var metrics = before
        metrics.transactions.append(.init(times, of: request, cause: cause, status: status))
        return metrics
    }
}
