import Synchronization

/// Threads for work that would block the event loop, and the memory that messages may use while
/// they are collected for it.
package final class TransformationWork: Sendable {
    /// Does work on another thread at some time. Returns false if too much is waiting.
    package typealias Runner = @Sendable (_ work: @escaping @Sendable () -> Void) -> Bool

    private let runner: Runner
    private let heldBytes = Atomic<Int>(0)
    private let maximumHeldBytes: Int

    /// - Parameter maximumHeldBytes: the most content that all messages together may hold at a
    ///   time.
    package init(maximumHeldBytes: Int = 512 << 20, runner: @escaping Runner) {
        self.maximumHeldBytes = maximumHeldBytes
        self.runner = runner
    }

    /// A replacement if there are no threads.
    package static let none = TransformationWork(maximumHeldBytes: 64 << 20) { _ in false }

    func run(_ work: @escaping @Sendable () -> Void) -> Bool { runner(work) }

    /// The memory of one message. It counts until the last reference is gone: that of the message,
    /// or of the work on its content, which may wait longer.
    final class Claim: Sendable {
        private let work: TransformationWork
        private let counted = Atomic<Int>(0)
        private let wanted = Atomic(true)

        fileprivate init(_ work: TransformationWork) { self.work = work }

        deinit { work.heldBytes.subtract(counted.load(ordering: .relaxed), ordering: .relaxed) }

        /// Whether the message still waits for the result.
        var isWanted: Bool { wanted.load(ordering: .relaxed) }

        fileprivate func giveUp() { wanted.store(false, ordering: .relaxed) }

        /// Returns false if all messages together hold too much.
        @discardableResult
        func add(_ count: Int) -> Bool {
            counted.add(count, ordering: .relaxed)
            let (_, held) = work.heldBytes.add(count, ordering: .relaxed)
            return held <= work.maximumHeldBytes
        }
    }

    /// Content that a message holds. When the value ends, the result is no longer wanted.
    struct Holding: ~Copyable {
        let claim: Claim
        private(set) var bytes: [UInt8] = []

        /// Room that is reserved immediately for content whose length is known, before any has
        /// arrived.
        private static let roomBytes = 256 << 10

        /// - Parameter count: the number of bytes expected; 0 if unknown.
        init(_ work: TransformationWork, expecting count: Int = 0) {
            claim = Claim(work)
            bytes.reserveCapacity(min(count, Self.roomBytes))
        }

        deinit { claim.giveUp() }

        /// Returns false if all messages together hold too much.
        mutating func append(_ content: UnsafeRawBufferPointer) -> Bool {
            guard claim.add(content.count) else { return false }
            bytes.append(contentsOf: content)
            return true
        }

        /// The content; it counts as long as the claim exists.
        mutating func take() -> [UInt8] {
            let taken = bytes
            bytes = []
            return taken
        }
    }
}
