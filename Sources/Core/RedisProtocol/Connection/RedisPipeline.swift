/// What has become of an operation whose connection failed.
package enum RedisOperationFate: Sendable, Hashable {
    /// Not one byte of it was passed to the system: it may be sent again.
    case notSent
    /// The server may have carried it out.
    case unanswered
}

/// Why an operation is not accepted.
package enum RedisPipelineError: Error, Sendable, Hashable {
    /// No connection is ready.
    case notReady
    /// As many operations are waiting as may be, or as many bytes.
    case full
}

/// Operations that wait for their replies, which come in the order of the commands.
///
/// An operation is a number here, which means something to whoever adds it. One whose deadline
/// passes ends then, and its reply, when it comes, is dropped: until then it keeps its place. A
/// value without locks; of one connection.
package struct RedisPipeline: Sendable {
    /// What may wait.
    package struct Limits: Sendable, Hashable {
        package var operations = 1024
        /// Bytes of commands that have not been passed to the system.
        package var unsentBytes = 4 << 20

        package init() {}
    }

    private struct Operation: Sendable {
        /// `nil` once its deadline has passed.
        var tag: Int?
        var deadline: Int64
        /// The bytes of all commands before it.
        var start: UInt64
        var streamsBulk: Bool
    }

    private let limits: Limits
    /// Those in `first...` wait.
    private var operations: [Operation] = []
    private var first = 0
    /// Of those, the first whose deadline has not passed.
    private var firstInTime = 0
    /// Bytes of all commands, and how many the system has taken.
    private var bytes: UInt64 = 0
    private var sent: UInt64 = 0

    /// An empty one.
    package init(limits: Limits = Limits()) { self.limits = limits }

    /// Operations whose replies have not come, late ones included.
    package var count: Int { operations.count - first }
    /// Bytes that were added and not yet passed to the system.
    package var unsentBytes: Int { Int(bytes - sent) }

    /// Adds an operation, whose command is written behind those before it.
    /// - Parameters:
    ///   - deadline: when it ends without a reply; not before that of an earlier one, which is
    ///     otherwise the one that counts.
    ///   - streamsBulk: see `RESPReader.next`.
    package mutating func add(
        _ tag: Int, bytes count: Int, deadline: Int64, streamsBulk: Bool = false
    ) throws(RedisPipelineError) {
        guard self.count < limits.operations, unsentBytes + count <= limits.unsentBytes else {
            throw .full
        }
        let last = operations.last?.deadline ?? deadline
        operations.append(
            Operation(
                tag: tag, deadline: max(deadline, last), start: bytes, streamsBulk: streamsBulk))
        bytes += UInt64(count)
    }

    /// Bytes of the commands were passed to the system.
    package mutating func wrote(_ count: Int) {
        sent += UInt64(count)
        assert(sent <= bytes)
    }

    /// Whether the next reply, if it is a bulk string, is to be read in pieces; also if its
    /// deadline has passed.
    package var streamsBulk: Bool {
        first < operations.count && operations[first].streamsBulk
    }

    /// What the next reply answers.
    package enum Answered: Sendable, Hashable {
        case operation(Int)
        /// One whose deadline has passed.
        case late
        /// No command: the server is none, or the reader has lost its place.
        case nothing
    }

    /// The next reply is complete.
    package mutating func answered() -> Answered {
        guard first < operations.count else { return .nothing }
        let tag = operations[first].tag
        operations[first].tag = nil
        first += 1
        firstInTime = max(firstInTime, first)
        if first == operations.count {
            operations.removeAll(keepingCapacity: true)
            (first, firstInTime) = (0, 0)
        } else if first >= 64, first >= operations.count / 2 {
            operations.removeSubrange(..<first)
            firstInTime -= first
            first = 0
        }
        return tag.map { .operation($0) } ?? .late
    }

    /// The operation that the next reply answers, which goes on waiting; `nil` if there is none, or
    /// its deadline has passed.
    package var next: Int? { first < operations.count ? operations[first].tag : nil }

    /// When the next deadline passes; `nil` if none is waited for.
    package var deadline: Int64? {
        firstInTime < operations.count ? operations[firstInTime].deadline : nil
    }

    /// The deadline of the operation that the next reply answers, passed or not; `nil` if there is
    /// none.
    package var oldestDeadline: Int64? {
        first < operations.count ? operations[first].deadline : nil
    }

    /// Ends the operations whose deadlines have passed. Their replies are dropped when they come.
    package mutating func expire(_ now: Int64) -> [Int] {
        var ended: [Int] = []
        while firstInTime < operations.count, operations[firstInTime].deadline <= now {
            if let tag = operations[firstInTime].tag { ended.append(tag) }
            operations[firstInTime].tag = nil
            firstInTime += 1
        }
        return ended
    }

    /// The connection has failed: nothing waits any longer.
    package mutating func fail() -> [(tag: Int, fate: RedisOperationFate)] {
        let ended = operations[first...].compactMap { operation in
            operation.tag.map {
                (tag: $0, fate: operation.start < sent ? .unanswered : RedisOperationFate.notSent)
            }
        }
        operations.removeAll(keepingCapacity: true)
        (first, firstInTime, bytes, sent) = (0, 0, 0, 0)
        return ended
    }
}
