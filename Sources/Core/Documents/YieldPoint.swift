/// Called from time to time while a long document is read or written, so that a thread that shares
/// its processor with others can let them run.
package final class YieldPoint: Sendable, Equatable {
    private let body: @Sendable () -> Void

    /// - Parameter body: called after every few microseconds of work.
    package init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    package func run() { body() }

    package static func == (left: YieldPoint, right: YieldPoint) -> Bool { left === right }

    /// The number of values, or events, between two calls.
    static let values = 64
}
