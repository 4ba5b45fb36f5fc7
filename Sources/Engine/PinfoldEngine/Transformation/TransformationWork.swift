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

    /// What one message holds. It counts until the last who refers to it is gone: the message, or
    /// the work on its content, which may wait for longer.
    final class Claim: Sendable {
        private let work: TransformationWork
        private let counted = Atomic<Int>(0)
        private let wanted = Atomic(true)

        fileprivate init(_ work: TransformationWork) { self.work = work }

        deinit { work.heldBytes.subtract(counted.load(ordering: .relaxed), ordering: .relaxed) }

        /// Whether the message still waits for what comes of its content.
        var isWanted: Bool { wanted.load(ordering: .relaxed) }

        fileprivate func giveUp() { wanted.store(false, ordering: .relaxed) }

        /// False: all messages together hold too much.
        @discardableResult
        func add(_ count: Int) -> Bool {
            counted.add(count, ordering: .relaxed)
            let (_, held) = work.heldBytes.add(count, ordering: .relaxed)
            return held <= work.maximumHeldBytes
        }
    }

    /// Content that a message holds. With the value it is no longer wanted.
    struct Holding: ~Copyable {
        let claim: Claim
        private(set) var bytes: [UInt8] = []

        /// Room that is made at once for content whose length is known, before any of it is there.
        private static let roomBytes = 256 << 10

        /// - Parameter count: bytes that are likely to come; 0: not known.
        init(_ work: TransformationWork, expecting count: Int = 0) {
            claim = Claim(work)
            bytes.reserveCapacity(min(count, Self.roomBytes))
        }

        deinit { claim.giveUp() }

        /// False: all messages together hold too much.
        mutating func append(_ content: UnsafeRawBufferPointer) -> Bool {
            guard claim.add(content.count) else { return false }
            bytes.append(contentsOf: content)
            return true
        }

        /// The content; it counts as long as the claim is there.
        mutating func take() -> [UInt8] {
            let taken = bytes
            bytes = []
            return taken
        }
    }
}
