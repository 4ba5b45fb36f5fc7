import HTTPTypes

/// What is known of an attempt and the previous ones, for metrics.
struct AttemptRecord: Sendable {
    let request: HTTPRequest
    let cause: TaskMetrics.Cause
    let channel: TransferChannel
    let before: TaskMetrics

    /// Returns the task's metrics so far.
    ///
    /// - Parameter status: The status of the response, or `nil` if there is none.
    func metrics(status: Int?) -> TaskMetrics {
        metrics(status: status, channel.times ?? TransferTimes())
    }

    func metrics(status: Int?, _ times: TransferTimes) -> TaskMetrics {
        var metrics = before
        metrics.transactions.append(.init(times, of: request, cause: cause, status: status))
        return metrics
    }
}
