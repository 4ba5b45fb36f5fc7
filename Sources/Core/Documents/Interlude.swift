/// What is done now and then while a long document is read or written: a thread that shares its
/// processor with others can let them go on.
package final class Interlude: Sendable, Equatable {
    private let body: @Sendable () -> Void

    /// - Parameter body: called every few microseconds of work.
    package init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    package func run() { body() }

    package static func == (left: Interlude, right: Interlude) -> Bool { left === right }

    /// Values, or events, from one to the next.
    static let values = 64
}
