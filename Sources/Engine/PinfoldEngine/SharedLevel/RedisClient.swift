import EventLoop
import HTTPCore
import RedisProtocol

/// Where a server of Redis or Valkey is.
package enum RedisAddress: Sendable, Hashable {
    case endpoint(Endpoint)
    /// The path of a Unix socket.
    case unix(String)

    /// Begins to connect. The descriptor becomes writable when that has succeeded or failed.
    fileprivate func connect() throws(Errno) -> Int32 {
        switch self {
        case .endpoint(let endpoint): try Sockets.connect(to: endpoint)
        case .unix(let path): try UnixSockets.connectAtOnce(to: path)
        }
    }
}

/// Why an operation has no reply.
package enum RedisOperationError: Error, Sendable, Hashable {
    /// It was not sent: no connection is ready, or too much is waiting.
    case refused(RedisPipelineError)
    /// Its deadline has passed. Its command may be carried out nevertheless.
    case slow
    /// The connection has ended.
    case lost(RedisOperationFate)
}

/// What has become of an operation.
package enum RedisOutcome: Sendable, Hashable {
    case reply(RESPValue)
    /// The reply was a string, all of which has been passed to `receive`.
    case received
    case failed(RedisOperationError)
}

/// Who waits for the reply to a command.
private struct RedisOperation {
    var receive: ((UnsafeRawBufferPointer) -> Void)?
    var completion: (RedisOutcome) -> Void
}

/// A connection to a server, which is made again whenever it ends, on one loop: `RedisConnection`
/// carried out over a socket.
///
/// All commands of a turn are sent by one write at its end. Nothing waits for the server: an
/// operation that is not answered in time fails, and one for which there is no connection fails at
/// once.
package final class RedisClient: EventHandler {
    private let loop: EventLoop
    private let address: RedisAddress
    private let limits: RESPLimits
    private let random: () -> UInt64
    private var connection: RedisConnection
    private var transport: Transport?
    private var isConnecting = false
    private var reader: RESPReader
    private var output = OutputQueue()
    /// Bytes of the connection's own commands that have not been written; they precede all others.
    private var ownBytes = 0
    private var input: Buffer?
    /// Where the next command is written, behind those that wait to be sent.
    private var outgoing: Buffer?
    /// Whether the server has ended its direction: what is read may then be followed by the end.
    private var peerHasFinished = false
    private var budget = TurnBudget()
    private var willFlush = false
    private var isStopped = false
    /// Those that wait, by their numbers, and the numbers that are free.
    private var operations: [RedisOperation?] = []
    private var free: [Int] = []

    /// Called when operations are accepted from now on.
    package var onReady: ((RedisServer) -> Void)?
    /// Called when a connection has ended, or could not be made.
    package var onEnd: ((RedisConnectionError) -> Void)?
    /// Called with each message that answers no command.
    package var onPush: (([RESPValue]) -> Void)?
    /// How often bytes were passed to the system, for tests.
    package private(set) var writes = 0

    /// - Parameters:
    ///   - loop: whose thread makes all calls.
    ///   - random: 64 random bits.
    package init(
        loop: EventLoop, address: RedisAddress, session: RedisSession,
        options: RedisConnection.Options = .init(),
        pipeline: RedisPipeline.Limits = .init(),
        limits: RESPLimits = RESPLimits(),
        random: @escaping () -> UInt64 = { .random(in: 0...(.max)) }
    ) {
        self.loop = loop
        self.address = address
        self.limits = limits
        self.random = random
        connection = RedisConnection(session, options: options, limits: pipeline)
        reader = RESPReader(limits: limits)
    }

    /// Whether operations are accepted.
    package var isReady: Bool { connection.isReady }
    /// Why the last connection ended; `nil` before the first end.
    package var lastError: RedisConnectionError? { connection.lastError }
    /// Operations whose replies have not come.
    package var pendingCount: Int { connection.pipeline.count }

    /// Connects, and does so again when the connection has ended.
    package func start() throws(Errno) {
        try loop.add(self)
        perform(connection.start(now: loop.now))
        updateDeadline()
    }

    /// Ends the connection for good. Operations that wait fail.
    package func stop() {
        guard !isStopped else { return }
        isStopped = true
        end(.stopped)
    }

    // MARK: Operations

    /// Sends a command.
    /// - Parameters:
    ///   - milliseconds: how long its reply is waited for.
    ///   - receive: called with the bytes of a reply that is a string, piece by piece, where they
    ///     are: they are valid during the call. `nil` if the reply is wanted as a value. If the
    ///     operation fails after that, what was passed is worth nothing.
    ///   - completion: called once, on the loop, never from within this call.
    package func send(
        _ command: RedisCommand, within milliseconds: Int64,
        receive: ((UnsafeRawBufferPointer) -> Void)? = nil,
        completion: @escaping (RedisOutcome) -> Void
    ) {
        let count = command.byteCount
        let number = free.popLast() ?? operations.count
        do throws(RedisPipelineError) {
            try connection.add(
                number, bytes: count, deadline: loop.now + milliseconds,
                streamsBulk: receive != nil)
        } catch {
            if number < operations.count { free.append(number) }
            return loop.afterTurn { completion(.failed(.refused(error))) }
        }
        let operation = RedisOperation(receive: receive, completion: completion)
        if number < operations.count {
            operations[number] = operation
        } else {
            operations.append(operation)
        }
        write(command, count)
        updateDeadline()
    }

    /// An operation has ended.
    private func complete(_ number: Int, _ outcome: RedisOutcome) {
        guard let operation = operations[number].take() else { return }
        free.append(number)
        operation.completion(outcome)
    }

    private func write(_ command: RedisCommand, _ count: Int) {
        if outgoing.map({ $0.writable.count < count }) ?? true {
            outgoing = loop.buffers.take(atLeast: count)
        }
        guard let buffer = outgoing else { return }
        var writer = HeadWriter(buffer.writable)
        command.write(to: &writer)
        assert(writer.count == count)
        output.appendWritten(count, to: buffer)
        guard !willFlush else { return }
        willFlush = true
        loop.afterTurn { [weak self] in self?.flush() }
    }

    // MARK: Events

    package override func ready(_ readiness: Readiness) {
        guard let transport else { return }
        if isConnecting {
            guard readiness.mayWrite else { return }
            if let error = Sockets.connectionError(transport.descriptor) {
                return end(.transport("\(error)"))
            }
            isConnecting = false
            perform(connection.connected(now: loop.now))
            updateDeadline()
        }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
            peerHasFinished = true
        }
        if readiness.mayWrite { flush() }
        if readiness.mayRead { read() }
    }

    package override func continueWork() {
        flush()
        read()
    }

    package override func deadlineReached() {
        for number in connection.expire(now: loop.now) { complete(number, .failed(.slow)) }
        perform(connection.timePassed(now: loop.now))
        updateDeadline()
    }

    private func updateDeadline() {
        guard !isStopped else { return }
        loop.setDeadline(self, after: connection.deadline.map { max(0, $0 - loop.now) })
    }

    private func perform(_ action: RedisConnection.Action) {
        switch action {
        case .none: break
        case .connect: open()
        case .send(let command):
            let count = command.byteCount
            ownBytes += count
            write(command, count)
        case .becomeReady(let server): onReady?(server)
        case .close(let error): end(error)
        }
    }

    private func open() {
        do throws(Errno) {
            let descriptor = try address.connect()
            loop.remove(self)
            do throws(Errno) {
                try loop.add(self, descriptor: descriptor)
            } catch {
                Descriptors.close(descriptor)
                throw error
            }
            transport = Transport(descriptor: descriptor)
            isConnecting = true
            peerHasFinished = false
        } catch {
            end(.transport("\(error)"))
        }
    }

    private func end(_ error: RedisConnectionError) {
        loop.remove(self)
        transport?.close()
        transport = nil
        isConnecting = false
        reader = RESPReader(limits: limits)
        output = OutputQueue()
        ownBytes = 0
        Buffer.release(&input)
        Buffer.release(&outgoing)
        let ended = connection.closed(error, now: loop.now, random: random())
        // For the deadline at which it is tried again. Without a descriptor nothing can fail.
        if !isStopped { try? loop.add(self) }
        for (number, fate) in ended.operations { complete(number, .failed(.lost(fate))) }
        onEnd?(error)
        updateDeadline()
    }

    // MARK: Bytes

    private func flush() {
        willFlush = false
        guard let transport, !isConnecting, !output.isEmpty else { return }
        budget.renew(loop)
        let before = output.pendingBytes
        let result = transport.flush(&output, on: loop, spending: &budget)
        writes += 1
        let count = before - output.pendingBytes
        let own = min(ownBytes, count)
        ownBytes -= own
        connection.wrote(count - own)
        switch result {
        case .drained: Buffer.release(&outgoing)
        case .blocked: break
        case .turnIsOver: loop.requeue(self)
        case .failed(let error): end(.transport("\(error)"))
        }
    }

    private func read() {
        while let transport, !isConnecting {
            budget.renew(loop)
            guard !budget.isSpent else { return loop.requeue(self) }
            let room = loop.buffers.makeRoom(in: &input)
            switch transport.read(into: room, trustsShortRead: !peerHasFinished, spending: &budget)
            {
            case .bytes(let count, let isDrained):
                input?.end += count
                take()
                if isDrained { return Buffer.release(&input) }
            case .wouldBlock: return Buffer.release(&input)
            case .turnIsOver: return loop.requeue(self)
            case .endOfStream, .truncated: return end(.closedByServer)
            case .failed(let error): return end(.transport("\(error)"))
            }
        }
    }

    /// Reads all that has arrived.
    private func take() {
        guard let buffer = input else { return }
        let bytes = buffer.readable
        var position = 0
        do throws(RESPError) {
            while transport != nil,
                let event = try reader.next(
                    bytes.octets, at: &position, streamsBulk: connection.streamsBulk)
            {
                handle(event, bytes)
            }
        } catch {
            end(.malformed(error))
        }
        buffer.clear()
        updateDeadline()
    }

    private func handle(_ event: RESPReader.Event, _ bytes: UnsafeRawBufferPointer) {
        switch event {
        case .reply(let value): replied(value)
        case .push(let values): onPush?(values)
        case .bulkBegins: break
        case .bulkBytes(let range):
            guard let number = connection.pipeline.next else { return }
            operations[number]?.receive?(UnsafeRawBufferPointer(rebasing: bytes[range]))
        case .bulkEnds: replied(nil)
        }
    }

    private func replied(_ value: RESPValue?) {
        switch connection.replied(value) {
        case .operation(let number): complete(number, value.map { .reply($0) } ?? .received)
        case .dropped: break
        case .own(let action): perform(action)
        }
    }
}
