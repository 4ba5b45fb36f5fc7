/// An event monitor that is told over which connections responses come.
package protocol ConnectionMonitor: EventMonitor {
    /// The head of a response has arrived. This comes right before its
    /// ``RequestEvent/received(_:to:)``.
    ///
    /// - Parameter transaction: The request so far.
    func request(_ task: TaskIdentifier, arrivedBy transaction: TaskMetrics.Transaction)
}
