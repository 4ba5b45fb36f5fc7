import PinfoldClient
import Synchronization

/// The ports of one of the server's processes.
struct Ports: Sendable {
    private let numbers: [Role: Int]

    /// - Parameter text: `plain=PORT,tls=PORT,…`, with all roles.
    init?(_ text: String) {
        var numbers: [Role: Int] = [:]
        for part in text.split(separator: ",") {
            let pair = part.split(separator: "=")
            guard pair.count == 2, let role = Role(rawValue: String(pair[0])),
                let port = Int(pair[1])
            else { return nil }
            numbers[role] = port
        }
        guard numbers.count == Role.allCases.count else { return nil }
        self.numbers = numbers
    }

    func url(_ role: Role, _ path: String, host: String = "127.0.0.1", wrong: Bool = false)
        -> String
    {
        let scheme = wrong ? (role.scheme == "http" ? "https" : "http") : role.scheme
        return "\(scheme)://\(host):\(numbers[role] ?? 0)/\(path)"
    }
}

/// A session, and what is known of it.
final class WatchedSession: Sendable {
    let session: SessionManager
    let watch: Watch
    /// The calls so far.
    let calls = Atomic(0)

    init(_ session: SessionManager, _ watch: Watch) {
        (self.session, self.watch) = (session, watch)
    }
}

/// What is common to all sessions.
struct Surroundings: Sendable {
    let servers: [Ports]
    /// Certificates of the server's authority.
    let anchors: [[UInt8]]
    let ledger: Ledger
    /// A pin that no server has.
    let pin: CertificatePin

    func configuration(_ watch: Watch) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.securityPolicy.trustsSystem = false
        configuration.securityPolicy.anchors = anchors
        configuration.proxies = .direct
        configuration.requestTimeout = .seconds(20)
        configuration.resourceTimeout = .seconds(60)
        configuration.idleConnectionTimeout = .milliseconds(500)
        configuration.maximumRequestsPerOrigin = 64
        configuration.maximumHeadBytes = 32 << 10
        configuration.eventMonitors = [watch, MetricsEventMonitor()]
        return configuration
    }

    func session(
        _ runtime: ClientRuntime, _ change: (inout SessionConfiguration) throws -> Void = { _ in }
    ) throws -> WatchedSession {
        let watch = Watch(ledger)
        var configuration = configuration(watch)
        try change(&configuration)
        return WatchedSession(
            try SessionManager(configuration: configuration, runtime: runtime), watch)
    }
}

/// The sessions of a round.
final class Sessions: Sendable {
    private let around: Surroundings
    private let runtime: ClientRuntime
    private let named: [SessionName: WatchedSession]
    /// The session that sends the requests of the decorated one.
    private let base: WatchedSession
    private let brief: Locked<Brief>

    private struct Brief {
        var current: WatchedSession
        var left = Sessions.briefCalls
        var retired: [WatchedSession] = []
    }

    /// After so many calls, a brief session is invalidated.
    private static let briefCalls = 100

    init(_ around: Surroundings, _ runtime: ClientRuntime, lasting: WatchedSession) throws {
        self.around = around
        self.runtime = runtime
        let base = try around.session(runtime)
        self.base = base
        let mock = MockTransport { try await mocked($0) }
        let (token, failing) = (Holder(), Holder())
        named = [
            .lasting: lasting,
            .direct: try around.session(runtime),
            .narrow: try around.session(runtime) {
                ($0.maximumRequestsPerOrigin, $0.queueOrder) = (4, .lastInFirstOut)
            },
            .cached: try around.session(runtime) { $0.cacheMemoryBytes = 1 << 20 },
            .decorated: try around.session(runtime) {
                $0.securityPolicy = .default
                $0.transport = Decorated(
                    HARRecorder(base.session.transport, maximumTotalBytes: 1 << 20))
            },
            .token: try around.session(runtime) {
                $0.interceptor = try refreshing(around.servers[0], by: token, failing: 0)
            },
            .failing: try around.session(runtime) {
                $0.interceptor = try refreshing(around.servers[0], by: failing, failing: 3)
            },
            .pinned: try around.session(runtime) {
                ($0.securityPolicy.mode, $0.securityPolicy.pins) = (.publicKey, [around.pin])
            },
            .impatient: try around.session(runtime) { $0.connectTimeout = .milliseconds(250) },
            .mock: try around.session(runtime) {
                ($0.securityPolicy, $0.transport) = (.default, mock)
            },
        ]
        brief = Locked(Brief(current: try around.session(runtime)))
        token.hold(named[.token])
        failing.hold(named[.failing])
    }

    /// The session of a call, which is counted.
    func session(_ plan: Plan) throws -> WatchedSession {
        let session = plan.session == .brief ? try nextBrief(plan) : named[plan.session]
        guard let session else { throw MissingSessionError() }
        session.calls.add(1, ordering: .relaxed)
        return session
    }

    private func nextBrief(_ plan: Plan) throws -> WatchedSession {
        let (current, over) = try brief.withLock { brief in
            brief.left -= 1
            guard brief.left == 0 else { return (brief.current, WatchedSession?.none) }
            let over = brief.current
            brief.retired.append(over)
            (brief.current, brief.left) = (try around.session(runtime), Self.briefCalls)
            return (brief.current, over)
        }
        over?.session.invalidate(cancelling: plan.number % 2 == 0)
        return current
    }

    /// All sessions of the round but the lasting one, and whether they may refuse calls.
    private var all: [(String, WatchedSession, isBrief: Bool)] {
        let (current, retired) = brief.withLock { ($0.current, $0.retired) }
        return named.filter { $0.key != .lasting }.map { ("\($0.key)", $0.value, false) }
            + [("base", base, false)] + (retired + [current]).map { ("brief", $0, true) }
    }

    /// Waits until all tasks have ended, ends the sessions, and returns what is wrong with them.
    func end() async -> [String] {
        // Those in front of others first.
        let sessions = all
        var problems: [String] = []
        for (name, session, isBrief) in sessions {
            let calls = session.calls.load(ordering: .relaxed)
            let isQuiet = await eventually {
                let counts = session.watch.counts
                return counts.open == 0 && (isBrief || name == "base" || counts.ended == calls)
            }
            let counts = session.watch.counts
            if !isQuiet {
                problems.append("session \(name): \(calls) calls, and of tasks \(counts)")
            }
            if isBrief ? counts.ended > calls : counts.refused > calls {
                problems.append(
                    "session \(name): \(calls) calls, but \(counts.ended) ends of tasks")
            }
            if counts.missed > 0 { problems.append("session \(name): events were dropped") }
            if !session.session.tasks.isEmpty {
                problems.append("session \(name): has tasks \(session.session.tasks.count)")
            }
        }
        for (_, session, _) in sessions { session.session.invalidate() }
        for (name, session, _) in sessions
        where await !eventually({ session.watch.counts.isOver }) {
            problems.append("session \(name): is invalidated and does not end")
        }
        return problems
    }

    /// What tells whether the sessions are released.
    var references: [Weak] { all.map { Weak(session: $0.1.session, name: $0.0) } }
}

struct MissingSessionError: Error {}

/// A session that ought to be released.
struct Weak {
    weak var session: SessionManager?
    let name: String
}

/// The session with which an interceptor refreshes tokens, which is created with the interceptor.
final class Holder: Sendable {
    private struct Reference { weak var session: WatchedSession? }

    private let reference = Locked(Reference())

    func hold(_ session: WatchedSession?) { reference.withLock { $0.session = session } }
    var session: WatchedSession? { reference.withLock { $0.session } }
}

struct RefreshFailedError: Error {}

/// An interceptor with tokens of the server.
///
/// - Parameter failing: One in so many refreshes fails, or none if 0.
private func refreshing(
    _ ports: Ports, by holder: Holder, failing: Int
) throws -> AuthenticationInterceptor<BearerAuthenticator> {
    let (witness, count) = (Witness(), Count())
    let authenticator = BearerAuthenticator { _ in
        _ = witness
        let number = count.next()
        if failing > 0, number % failing == 0 { throw RefreshFailedError() }
        guard let session = holder.session else { throw RefreshFailedError() }
        session.calls.add(1, ordering: .relaxed)
        let answer = try await session.session.data(
            for: HTTPRequest(.get, ports.url(number % 2 == 0 ? .plain : .h2, "token/\(number)")))
        return BearerCredential(token: String(decoding: answer.content, as: UTF8.self))
    }
    return try AuthenticationInterceptor(
        authenticator, credential: nil,
        for: [Role.plain, .tls, .h2].flatMap { role in
            ["127.0.0.1", "localhost"].map { ports.url(role, "", host: $0) }
        },
        refreshWindow: nil, maximumRetries: 5)
}

/// Counts up from 1.
final class Count: Sendable {
    private let value = Atomic(0)

    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
    var current: Int { value.load(ordering: .relaxed) }
}

/// A transport that adds a field to requests and responses, and cuts contents into other parts.
private struct Decorated: SessionTransport {
    let base: any SessionTransport
    let witness = Witness()

    init(_ base: any SessionTransport) { self.base = base }

    var sendingSession: SessionManager? { base.sendingSession }

    func response(to request: TransportRequest) async throws -> TransportResponse {
        var request = request
        request.head.headerFields[.userAgent] = "soak"
        var response = try await base.response(to: request)
        response.head.headerFields[.server] = "decorated"
        return response
    }
}

/// The answers of the session without a network.
private func mocked(_ request: TransportRequest) async throws -> TransportResponse {
    let number = Int(request.head.path?.split(separator: "/").last?.prefix { $0 != "?" } ?? "") ?? 0
    switch number % 10 {
    case 0: throw TransportError.connectionRefused
    case 1: throw TransportError.allCases[number / 10 % TransportError.allCases.count]
    case 2: throw RefreshFailedError()
    case 3:
        var response = TransportResponse(content: contents(number, 3000))
        response.error = .connectionLost
        return response
    case 4:
        var response = TransportResponse(content: contents(number, 1000))
        response.delay = .milliseconds(5)
        return response
    case 5:
        try await Task.sleep(for: .milliseconds(number / 10 % 20))
        return TransportResponse(content: contents(number, 1000))
    case 6: return TransportResponse(stream: Parts(number, 5000))
    default: return TransportResponse(content: contents(number, 1000))
    }
}

/// What the server sends.
func contents(_ number: Int, _ size: Int) -> [UInt8] {
    Array(repeating: UInt8(number % 251), count: size)
}

/// Waits, for half a minute at most in which the process runs.
func eventually(_ condition: () -> Bool) async -> Bool {
    for _ in 0..<6000 {
        if condition() { return true }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return condition()
}
