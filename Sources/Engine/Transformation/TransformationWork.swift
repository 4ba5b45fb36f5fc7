import Synchronization

/// Threads for work that would hold up the event loop, and the memory that messages may take up
/// while they are gathered for it.
package final class TransformationWork: Sendable {
    /// Does work on another thread, sometime; false: too much of it waits.
    package typealias Runner = @Sendable (_ work: @escaping @Sendable () -> Void) -> Bool

    private let runner: Runner
    private let heldBytes = Atomic<Int>(0)
    private let maximumHeldBytes: Int

    /// - Parameter maximumHeldBytes: of content that all messages together hold at a time.
    package init(maximumHeldBytes: Int = 512 << 20, runner: @escaping Runner) {
        self.maximumHeldBytes = maximumHeldBytes
        self.runner = runner
    }

    /// In place of threads that there are not.
    package static let none = TransformationWork(maximumHeldBytes: 64 << 20) { _ in false }

    func run(_ work: @escaping @Sendable () -> Void) -> Bool { runner(work) }

    /// Content that a message holds. What it counts is given back with the value.
    struct Holding: ~Copyable {
        private let work: TransformationWork
        private(set) var bytes: [UInt8] = []
        private var counted = 0

        init(_ work: TransformationWork) { self.work = work }

        deinit { work.heldBytes.subtract(counted, ordering: .relaxed) }

        /// False: all messages together hold too much.
        mutating func append(_ content: UnsafeRawBufferPointer) -> Bool {
            let (_, held) = work.heldBytes.add(content.count, ordering: .relaxed)
            counted += content.count
            guard held <= work.maximumHeldBytes else { return false }
            bytes.append(contentsOf: content)
            return true
        }

        /// The content; it counts until the value is gone.
        mutating func take() -> [UInt8] {
            let taken = bytes
            bytes = []
            return taken
        }
    }
}
