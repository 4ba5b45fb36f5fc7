import CacheStore
import EventLoop
import RedisProtocol
import SharedCache

/// A connection to one server, again and again: what is asked on it, and what the next replies are
/// to. Used by one thread, which says what follows from each reply: the level's, or a worker's.
final class ServerLink {
    let socket: ServerSocket
    var connection: RedisConnection
    var reader = RESPReader(limits: ServerLink.limits)
    var output = CommandOutput()
    /// Whether the socket is open, with TLS if that is used.
    var isOpen = false
    /// What the server is; `nil` before it has said so.
    var server: RedisServer?
    /// Whether lookups are sent.
    var breaker: CircuitBreaker
    /// When the probe under way counts as failed; `nil` if there is none.
    var probeDeadline: Int64?
    /// Not before this moment is it taken into use.
    var holdOffUntil: Int64 = 0
    /// What the next replies are to, in their order.
    private var expected: [Expected] = []
    private var firstExpected = 0
    /// Replies that were ever waited for, and those of them that are not any longer.
    private(set) var asked: UInt64 = 0
    private(set) var answered: UInt64 = 0

    // Of a node of a cluster.

    /// Where it leads; `nil` before that is known.
    var node: RedisNode?
    /// Which state of its data the node goes on with; `nil` before it has said so.
    var identity: [UInt8]?
    /// The number that everything names which is stored there; `nil` while it is not known.
    var generation: SharedToken?
    /// Whether what it has may be found, and changed.
    var isInUse = false
    /// Since when commands have waited for room; `nil` while there is room.
    var fullSince: Int64?
    /// Why it was last given up; `nil` while it is in use.
    var reason: SharedLevelReason?

    /// Bytes that wait in the output before no more commands are written.
    private static let outputBytes = 1 << 20
    /// Replies that are waited for at most.
    static let pipelineLimit = 32_768

    private static var limits: RESPLimits {
        var limits = RESPLimits()
        limits.replyBytes = 32 << 20
        return limits
    }

    /// - Parameter socket: by what it is connected.
    init(_ options: SharedLevelOptions, socket: ServerSocket, now: Int64) {
        self.socket = socket
        var timing = RedisConnection.Options()
        // Each operation's deadline is when the connection is given up; lookups have their own.
        timing.stallMilliseconds = 0
        timing.backoff = options.backoff
        var limits = RedisPipeline.Limits()
        limits.operations = 2 * Self.pipelineLimit
        limits.unsentBytes = 256 << 20
        connection = RedisConnection(options.session, options: timing, limits: limits)
        breaker = CircuitBreaker(options: options.breaker, now: now)
    }

    /// Whether commands can be sent.
    var isConnected: Bool { isOpen && connection.isReady }

    /// Whether it is encrypted.
    var isSecured: Bool { socket.isSecured }

    /// Whether there is room for another command.
    var hasRoom: Bool {
        output.unsentCount < Self.outputBytes && connection.pipeline.count < Self.pipelineLimit
    }

    // MARK: What was asked

    /// Adds a command that is to be answered by a deadline.
    /// - Returns: `false` if it cannot be asked, or there is no room for it: the replies could not
    ///   be told apart.
    func add(
        _ expected: Expected, by deadline: Int64, _ write: (inout CommandOutput) -> Void
    ) -> Bool {
        guard connection.isReady else { return false }
        let before = output.total
        write(&output)
        do throws(RedisPipelineError) {
            // Replies come in order, and none is given up before its connection.
            try connection.add(0, bytes: Int(output.total - before), deadline: deadline)
            self.expected.append(expected)
            asked += 1
            return true
        } catch {
            return false
        }
    }

    /// What the reply is to that has come.
    func takeExpected() -> Expected {
        let taken = expected[firstExpected]
        answered += 1
        expected[firstExpected] = .nothing
        firstExpected += 1
        if firstExpected == expected.count {
            expected.removeAll(keepingCapacity: expected.capacity <= 4096)
            firstExpected = 0
        } else if firstExpected >= 256, firstExpected >= expected.count / 2 {
            expected.removeSubrange(..<firstExpected)
            firstExpected = 0
        }
        return taken
    }

    /// Passes on what was written, as far as the system takes it.
    /// - Parameter noteWritten: called with how many bytes it has taken.
    /// - Returns: why nothing more can be passed on; `nil` while that is not so.
    func flush(_ noteWritten: (Int) -> Void) -> ServerSocket.Transfer? {
        while isOpen, output.unsentCount > 0 {
            let wanted = output.unsentCount
            let transfer = output.withUnsent { socket.write($0) }
            guard case .bytes(let count) = transfer else {
                if case .wouldBlock = transfer { return nil }
                return transfer
            }
            output.took(count)
            if connection.isReady { connection.wrote(count) }
            noteWritten(count)
            if count < wanted { return nil }
        }
        return nil
    }

    // MARK: The end

    /// Closes the socket, and forgets what was on its way.
    func close() {
        isOpen = false
        isInUse = false
        (identity, generation, fullSince) = (nil, nil, nil)
        probeDeadline = nil
        socket.close()
        output = CommandOutput()
        reader = RESPReader(limits: Self.limits)
    }

    /// The connection has ended.
    /// - Returns: what there will be no replies to.
    func ended(
        _ error: RedisConnectionError, now: Int64, random: UInt64
    ) -> ArraySlice<Expected> {
        let end = connection.closed(error, now: now, random: random)
        let given = expected[firstExpected...]
        assert(given.count == end.operations.count)
        expected = []
        firstExpected = 0
        answered = asked
        return given
    }
}
