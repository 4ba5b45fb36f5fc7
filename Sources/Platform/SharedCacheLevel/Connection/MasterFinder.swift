import EventLoop
import PinfoldResolver
import RedisProtocol

/// Asks Sentinels which server is the master: one after the other, each on a connection of its own
/// and for a bounded time. Who they name may be none, or not any longer: whoever connects to it
/// finds that out, and says so when it asks again.
final class MasterFinder: EventHandler {
    /// How a search has ended.
    enum Outcome {
        case master(RedisNode)
        case none(SharedLevelReason, String)
    }

    private let sentinels: SharedLevelOptions.Sentinels
    private let loop: EventLoop
    private let socket: ServerSocket
    private var search: SentinelSearch
    private var reader = RESPReader(limits: MasterFinder.limits)
    /// What is asked, as far as it has not been sent.
    private var question: ArraySlice<UInt8> = []
    /// Whether the next reply is that to the password.
    private var awaitsAdmission = false
    private var asked: RedisNode?
    /// Distinguishes what happens with one Sentinel from what happens with the next.
    private var turn: UInt64 = 0
    /// The most telling of what went wrong in this search.
    private var problem: (reason: SharedLevelReason, detail: String)?
    /// Called with the outcome; `nil` while nothing is searched for.
    private var completion: ((Outcome) -> Void)?

    /// An address is short.
    private static var limits: RESPLimits {
        var limits = RESPLimits()
        limits.replyBytes = 16 << 10
        limits.bulkBytes = limits.replyBytes
        return limits
    }
    private static let readBytes = 4096

    init(
        _ sentinels: SharedLevelOptions.Sentinels, resolver: Resolver?, on loop: EventLoop,
        mailbox: Mailbox<LevelMessage>
    ) {
        self.sentinels = sentinels
        self.loop = loop
        search = SentinelSearch(sentinels.nodes)
        socket = ServerSocket(resolver: resolver, on: loop, mailbox: mailbox)
        super.init()
        socket.start { [unowned self] in happened($0) }
    }

    /// Begins a search.
    /// - Parameters:
    ///   - wasOfUse: whether the server that was found last was one to use.
    ///   - completion: called with the outcome, never by this call; not after ``stop()``.
    func find(lastWasOfUse wasOfUse: Bool, _ completion: @escaping (Outcome) -> Void) {
        stop()
        problem = nil
        self.completion = completion
        do throws(Errno) { try loop.add(self) } catch { note(.unreachable, "\(error)") }
        // Whoever named one that was of no use is asked last.
        _ = search.verified(wasOfUse ? .master : nil)
        proceed(search.begin())
    }

    /// Ends the search, if there is one. The Sentinel that was being asked has had its time.
    func stop() {
        guard completion != nil else { return }
        completion = nil
        close()
        _ = search.failed()
    }

    /// The address of a Sentinel was looked up.
    func resolved(_ found: ServerAddresses, attempt: UInt64) {
        socket.resolved(found, attempt: attempt)
    }

    private func close() {
        leave()
        loop.remove(self)
    }

    /// Asks this one nothing more.
    private func leave() {
        turn += 1
        asked = nil
        question = []
        socket.close()
        loop.setDeadline(self, after: nil)
    }

    private func proceed(_ step: SentinelSearch.Step) {
        switch step {
        case .ask(let node): ask(node)
        case .verify(let node), .use(let node): end(.master(node))
        case .giveUp:
            let (reason, detail) = problem ?? (.unreachable, "there are no Sentinels")
            // Whoever searches is not called back by its own call.
            let turn = turn
            loop.afterTurn { [self] in if turn == self.turn { end(.none(reason, detail)) } }
        }
    }

    private func end(_ outcome: Outcome) {
        guard let completion = completion.take() else { return }
        close()
        completion(outcome)
    }

    // MARK: One Sentinel

    private func ask(_ node: RedisNode) {
        asked = node
        reader = RESPReader(limits: Self.limits)
        var bytes: [UInt8] = []
        awaitsAdmission = sentinels.password != nil
        if let password = sentinels.password {
            let user = sentinels.user.map { [$0] } ?? []
            bytes += RedisCommand([Array("AUTH".utf8)] + user + [password]).bytes
        }
        bytes += SentinelReplies.askMaster(Array(sentinels.master.utf8)).bytes
        question = bytes[...]
        socket.open(.tcp(host: node.host, port: node.port, tls: sentinels.tls))
        loop.setDeadline(self, after: sentinels.timeoutMilliseconds)
    }

    private func happened(_ event: ServerSocket.Event) {
        guard asked != nil else { return }
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
        while turn == self.turn, asked != nil {
            switch memory.withUnsafeMutableBytes({ socket.read(into: $0) }) {
            case .bytes(let count): take(Array(memory[..<count]))
            case .wouldBlock: return
            case .ended: failed(.closedByServer, "it closed the connection")
            case .failed(let reason, let detail): failed(reason, detail)
            }
        }
    }

    private func take(_ bytes: [UInt8]) {
        let turn = turn
        var position = 0
        do throws(RESPError) {
            while turn == self.turn, let event = try reader.next(bytes.span, at: &position) {
                if case .reply(let reply) = event { take(reply) }
            }
        } catch {
            failed(.protocolError, "\(error)")
        }
    }

    private func take(_ reply: RESPValue) {
        if awaitsAdmission {
            awaitsAdmission = false
            if let error = reply.redisError { failed(SharedLevelReason(error.code), "\(error)") }
            return
        }
        do throws(SentinelReplyError) {
            proceed(search.named(try SentinelReplies.master(reply)))
        } catch {
            failed(Self.reason(of: error), "\(error)")
        }
    }

    private static func reason(of error: SentinelReplyError) -> SharedLevelReason {
        switch error {
        case .unknownMaster: .refused
        case .malformed: .protocolError
        case .refused(let error): SharedLevelReason(error.code)
        }
    }

    private func failed(_ reason: SharedLevelReason, _ detail: String) {
        note(reason, "Sentinel \(asked.map { "\($0)" } ?? ""): \(detail)")
        leave()
        proceed(search.failed())
    }

    private func note(_ reason: SharedLevelReason, _ detail: String) {
        // What lasts says more than that another one could not be reached.
        if let known = problem, known.reason.isLasting, !reason.isLasting { return }
        problem = (reason, detail)
    }
}
