/// Why a connection ended.
package enum RedisConnectionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It could not be made in time.
    case connectTimeout
    /// It could not be made, or broke; what the system or TLS says.
    case transport(String)
    case handshakeTimeout
    case handshake(RedisHandshakeError)
    case malformed(RESPError)
    /// There is a reply to no command.
    case unexpectedReply
    /// A reply has been late for too long.
    case stalled
    /// The server ended it.
    case closedByServer
    /// It is not needed any longer.
    case stopped

    package var description: String {
        switch self {
        case .connectTimeout: "no connection to the server was made in time"
        case .transport(let text): text
        case .handshakeTimeout: "the server did not answer the first commands in time"
        case .handshake(let error): "\(error)"
        case .malformed(let error): "the server's reply cannot be read: \(error)"
        case .unexpectedReply: "the server replied to nothing that was asked"
        case .stalled: "the server did not answer"
        case .closedByServer: "the server closed the connection"
        case .stopped: "it was closed"
        }
    }
}

/// The life of a connection to a server, again and again, without the connection itself:
///
///     idle ─► connecting ─► handshaking ─► ready
///               ▲  │             │           │
///               │  ▼             ▼           ▼
///              waiting ◄── (closed, for a reason)
///
/// The adapter carries out what is returned. If that is `close`, or the transport ends by itself,
/// it closes the transport and calls ``closed(_:now:random:)``, which says what has become of the
/// operations and when to connect again. Times are milliseconds on one clock; nothing is read from
/// a clock here, and nothing is random.
package struct RedisConnection: Sendable {
    /// How long what may take, in milliseconds.
    package struct Options: Sendable, Hashable {
        package var connectMilliseconds: Int64 = 1000
        package var handshakeMilliseconds: Int64 = 1000
        /// How late a reply may be before the connection is given up: whatever is behind it waits,
        /// and a server that was stopped answers all of it when it goes on.
        package var stallMilliseconds: Int64 = 1000
        package var backoff = ReconnectBackoff()

        package init() {}
    }

    /// Where it is in the diagram.
    package enum State: Sendable, Hashable {
        case idle
        case connecting(until: Int64)
        case handshaking(RedisHandshake, until: Int64)
        case ready(RedisServer)
        case waiting(until: Int64)
    }

    /// What to do.
    package enum Action: Sendable, Hashable {
        case none
        /// Make a connection to the server.
        case connect
        /// Send this, before anything else.
        case send(RedisCommand)
        /// Operations are accepted from now on.
        case becomeReady(RedisServer)
        /// Close it, and say so (``closed(_:now:random:)``).
        case close(RedisConnectionError)
    }

    /// What a reply is about.
    package enum Reply: Sendable, Hashable {
        /// It answers this operation.
        case operation(Int)
        /// Nothing follows from it: its operation has ended.
        case dropped
        /// It was for the connection itself.
        case own(Action)
    }

    /// What follows from the end of a connection.
    package struct End: Sendable {
        /// The operations that waited.
        package let operations: [(tag: Int, fate: RedisOperationFate)]
        /// When to connect again; `nil` if it was stopped.
        package let retryAt: Int64?
    }

    private let session: RedisSession
    private let options: Options
    private var backoff: ReconnectBackoff
    package private(set) var state = State.idle
    /// Why the last connection ended; `nil` before the first end.
    package private(set) var lastError: RedisConnectionError?
    /// The operations that wait.
    package private(set) var pipeline: RedisPipeline

    /// A connection that has not been begun.
    package init(
        _ session: RedisSession, options: Options = Options(),
        limits: RedisPipeline.Limits = RedisPipeline.Limits()
    ) {
        self.session = session
        self.options = options
        backoff = options.backoff
        pipeline = RedisPipeline(limits: limits)
    }

    /// Whether operations are accepted.
    package var isReady: Bool { if case .ready = state { true } else { false } }

    // MARK: Events

    /// It is needed.
    package mutating func start(now: Int64) -> Action {
        switch state {
        case .idle:
            state = .connecting(until: now + options.connectMilliseconds)
            return .connect
        case .connecting, .handshaking, .ready, .waiting: return .none
        }
    }

    /// The transport is connected, with TLS if that is used.
    package mutating func connected(now: Int64) -> Action {
        switch state {
        case .connecting:
            var handshake = RedisHandshake(session)
            let command = handshake.begin()
            state = .handshaking(handshake, until: now + options.handshakeMilliseconds)
            return .send(command)
        case .idle, .handshaking, .ready, .waiting:
            preconditionFailure("connected in \(state)")
        }
    }

    /// Whether the next reply is read in pieces if it is a bulk string (`RESPReader.next`).
    package var streamsBulk: Bool { pipeline.streamsBulk }

    /// A reply, or the end of one that was read in pieces: then `reply` is `nil`.
    package mutating func replied(_ reply: RESPValue?) -> Reply {
        switch state {
        case .handshaking(var handshake, let until):
            guard let reply else { return .own(.close(.unexpectedReply)) }
            switch handshake.receive(reply) {
            case .send(let command):
                state = .handshaking(handshake, until: until)
                return .own(.send(command))
            case .ready(let server):
                state = .ready(server)
                return .own(.becomeReady(server))
            case .failed(let error): return .own(.close(.handshake(error)))
            }
        case .ready:
            switch pipeline.answered() {
            case .operation(let tag):
                backoff.succeeded()
                return .operation(tag)
            case .late: return .dropped
            case .nothing: return .own(.close(.unexpectedReply))
            }
        // It is being closed.
        case .idle, .connecting, .waiting: return .dropped
        }
    }

    /// Adds an operation, whose command is to be written.
    package mutating func add(
        _ tag: Int, bytes: Int, deadline: Int64, streamsBulk: Bool = false
    ) throws(RedisPipelineError) {
        guard isReady else { throw .notReady }
        try pipeline.add(tag, bytes: bytes, deadline: deadline, streamsBulk: streamsBulk)
    }

    /// Bytes of operations' commands were passed to the system.
    package mutating func wrote(_ count: Int) { pipeline.wrote(count) }

    /// Ends the operations whose deadlines have passed.
    package mutating func expire(now: Int64) -> [Int] { pipeline.expire(now) }

    /// When ``timePassed(now:)`` and ``expire(now:)`` are to be called; `nil` for not at all.
    package var deadline: Int64? {
        switch state {
        case .idle: nil
        case .connecting(let until), .handshaking(_, let until), .waiting(let until): until
        case .ready:
            [pipeline.deadline, stallsAt].compactMap { $0 }.min()
        }
    }

    private var stallsAt: Int64? {
        pipeline.oldestDeadline.map { $0 + options.stallMilliseconds }
    }

    /// Time has passed.
    package mutating func timePassed(now: Int64) -> Action {
        switch state {
        case .idle: return .none
        case .connecting(let until): return now < until ? .none : .close(.connectTimeout)
        case .handshaking(_, let until): return now < until ? .none : .close(.handshakeTimeout)
        case .ready:
            if let stallsAt, now >= stallsAt { return .close(.stalled) }
            return .none
        case .waiting(let until):
            guard now >= until else { return .none }
            state = .connecting(until: now + options.connectMilliseconds)
            return .connect
        }
    }

    /// The connection has ended, or could not be made.
    /// - Parameter random: any 64 bits.
    package mutating func closed(
        _ error: RedisConnectionError, now: Int64, random: UInt64
    ) -> End {
        lastError = error
        let operations = pipeline.fail()
        if case .stopped = error {
            state = .idle
            return End(operations: operations, retryAt: nil)
        }
        let retryAt = now + backoff.failed(random: random)
        state = .waiting(until: retryAt)
        return End(operations: operations, retryAt: retryAt)
    }
}
