import EventLoop
import PinfoldResolver
import RedisProtocol

/// One question to one server, on a connection for this alone and for a bounded time: how those are
/// asked who know where others are.
final class ServerQuestion: EventHandler {
    /// What has come of it.
    enum Outcome {
        case reply(RESPValue)
        case failed(SharedLevelReason, String)
    }

    private let loop: EventLoop
    private let socket: ServerSocket
    private let limits: RESPLimits
    private var reader: RESPReader
    /// What is asked, as far as it has not been sent.
    private var question: ArraySlice<UInt8> = []
    /// Whether the next reply is that to the password.
    private var awaitsAdmission = false
    /// Distinguishes what happens with one question from what happens with the next.
    private var turn: UInt64 = 0
    /// Called with the outcome; `nil` while nothing is asked.
    private var completion: ((Outcome) -> Void)?

    private static let readBytes = 4096
    /// Reads in one turn of the loop: a server that sends without end leaves time for everything
    /// else, and for its own deadline.
    private static let readsPerTurn = 16

    init(
        limits: RESPLimits, resolver: Resolver?, on loop: EventLoop,
        mailbox: Mailbox<LevelMessage>
    ) {
        self.loop = loop
        self.limits = limits
        reader = RESPReader(limits: limits)
        socket = ServerSocket(resolver: resolver, on: loop, mailbox: mailbox)
        super.init()
        socket.start { [unowned self] in happened($0) }
    }

    /// Asks a server.
    /// - Parameters:
    ///   - password: what the server is told first, if there is one.
    ///   - completion: called with the outcome, never by this call; not after ``stop()``.
    func ask(
        _ command: RedisCommand, of place: ServerPlace, user: [UInt8]?, password: [UInt8]?,
        within milliseconds: Int64, _ completion: @escaping (Outcome) -> Void
    ) {
        stop()
        self.completion = completion
        reader = RESPReader(limits: limits)
        var bytes: [UInt8] = []
        awaitsAdmission = password != nil
        if let password {
            let user = user.map { [$0] } ?? []
            bytes += RedisCommand([Array("AUTH".utf8)] + user + [password]).bytes
        }
        bytes += command.bytes
        question = bytes[...]
        do throws(Errno) { try loop.add(self) } catch {
            let turn = turn
            // Whoever asks is not called back by its own call.
            loop.afterTurn { [self] in
                if turn == self.turn { failed(.unreachable, "\(error)") }
            }
            return
        }
        socket.open(place)
        loop.setDeadline(self, after: milliseconds)
    }

    /// Ends it, if there is one: nothing is called any longer.
    func stop() {
        turn += 1
        guard completion.take() != nil else { return }
        question = []
        socket.close()
        loop.remove(self)
    }

    /// The address of a server was looked up.
    func resolved(_ found: ServerAddresses, attempt: UInt64) {
        socket.resolved(found, attempt: attempt)
    }

    private func end(_ outcome: Outcome) {
        guard let completion else { return }
        stop()
        completion(outcome)
    }

    private func failed(_ reason: SharedLevelReason, _ detail: String) {
        end(.failed(reason, detail))
    }

    // MARK: The connection

    private func happened(_ event: ServerSocket.Event) {
        guard completion != nil else { return }
        switch event {
        case .opened:
            send()
            read()
        case .ready(let readiness):
            if readiness.mayWrite { send() }
            if readiness.mayRead { read() }
        case .failed(let reason, let detail): failed(reason, detail)
        }
    }

    override func deadlineReached() { failed(.connectTimeout, "it did not answer in time") }

    private func send() {
        let turn = turn
        while turn == self.turn, !question.isEmpty {
            switch question.withUnsafeBytes({ socket.write($0) }) {
            case .bytes(let count): question = question.dropFirst(count)
            case .wouldBlock: return
            case .ended: failed(.closedByServer, "it closed the connection")
            case .failed(let reason, let detail): failed(reason, detail)
            }
        }
    }

    private func read() {
        let turn = turn
        var memory = [UInt8](repeating: 0, count: Self.readBytes)
        for _ in 0..<Self.readsPerTurn {
            switch memory.withUnsafeMutableBytes({ socket.read(into: $0) }) {
            case .bytes(let count): take(Array(memory[..<count]))
            case .wouldBlock: return
            case .ended: failed(.closedByServer, "it closed the connection")
            case .failed(let reason, let detail): failed(reason, detail)
            }
            guard turn == self.turn, completion != nil else { return }
        }
        socket.readLater()
    }

    private func take(_ bytes: [UInt8]) {
        let turn = turn
        var position = 0
        do throws(RESPError) {
            while turn == self.turn, let event = try reader.next(bytes.span, at: &position) {
                switch event {
                case .reply(let reply): take(reply)
                // Nothing is asked for that is told without being asked.
                case .push: failed(.protocolError, "\(RedisConnectionError.unexpectedReply)")
                case .bulkBegins, .bulkBytes, .bulkEnds: break
                }
            }
        } catch {
            failed(.protocolError, "\(error)")
        }
    }

    private func take(_ reply: RESPValue) {
        guard awaitsAdmission else { return end(.reply(reply)) }
        awaitsAdmission = false
        if let error = reply.redisError { failed(SharedLevelReason(error.code), "\(error)") }
    }
}
