import PinfoldConfiguration

/// Why a server of a set failed a request: the label of its metric, and the word in the log.
package enum ServerFailureReason: Int, Sendable, CaseIterable {
    /// Its name has no address.
    case name
    /// There was no connection to it.
    case connect
    /// There was no secure connection to it: it did not prove who it is, or a pin did not match.
    case tls
    /// It did not answer in time.
    case timeout
    /// The connection ended before the response did.
    case connection
    /// What it sent cannot be accepted.
    case response
    /// It answered with 502, 503 or 504.
    case status

    package var word: StaticString {
        switch self {
        case .name: "name"
        case .connect: "connect"
        case .tls: "tls"
        case .timeout: "timeout"
        case .connection: "connection"
        case .response: "response"
        case .status: "status"
        }
    }

    /// - Returns: `nil` if the error says nothing about the server.
    package init?(_ error: ExchangeError) {
        if error.isOwn { return nil }
        switch error {
        case .nameNotResolved: self = .name
        case .connectFailed, .unixSocketFailed, .connectTimeout, .proxy: self = .connect
        case .tlsFailed, .tlsTimeout: self = .tls
        case .upstreamReset, .upstreamUnanswered, .upstreamStreamReset: self = .connection
        case .response, .upstreamMalformed, .upstreamHTTP2: self = .response
        case .server(let reason):
            switch reason {
            case .connectionRefused, .destinationUnreachable, .connectFailed, .connectTimeout,
                .socketMissing, .socketNotPermitted:
                self = .connect
            case .upstreamClosed, .upstreamReset, .upstreamStreamReset, .upstreamNotProcessed:
                self = .connection
            case .upstreamSendTimeout, .firstByteTimeout, .upstreamBodyTimeout: self = .timeout
            case .upstreamSpokeUnasked, .upstreamSpeaksTLS, .tooManyInterim, .upstreamMalformed,
                .upstreamHTTP2Error, .upstreamHTTP2NotSpoken:
                self = .response
            case .eventStreamTimeout, .noServer: return nil
            }
        default: return nil
        }
    }

    /// Whether a status says that the server, or what is behind it, does not work.
    @inline(__always)
    static func isFailure(_ status: UInt16) -> Bool { 502...504 ~= status }
}

/// The failures in a row of one server, and how often it has been left out for them.
struct EjectionRecord: Equatable {
    /// After how many ejections in a row the period does not grow any more.
    static let longest = 10

    /// The times of the latest failures in a row, in milliseconds, as many as count.
    private var failures: [Int64] = []
    /// How many ejections in a row there were.
    private var times = 0
    /// When the last one ends or ended.
    private var end: Int64 = .min

    /// A request has failed.
    /// - Returns: whether it is one too many.
    mutating func failed(at now: Int64, by rules: UpstreamSet.Ejection) -> Bool {
        guard rules.failures > 0 else { return false }
        failures.append(now)
        if failures.count > rules.failures { failures.removeFirst(failures.count - rules.failures) }
        return failures.count == rules.failures
            && now - failures[0] <= rules.windowMilliseconds
    }

    /// A request has not failed.
    mutating func succeeded() { failures = [] }

    /// The server is left out. Each ejection in a row lasts one period longer than the one before;
    /// a server that has served for ten periods begins anew.
    /// - Returns: until when, in milliseconds.
    mutating func eject(at now: Int64, by rules: UpstreamSet.Ejection) -> Int64 {
        let period = rules.periodMilliseconds
        if end == .min || now - end >= period * Int64(Self.longest) { times = 0 }
        times = min(times + 1, Self.longest)
        end = now + period * Int64(times)
        failures = []
        return end
    }
}

extension UpstreamSet.Ejection {
    /// Whether another server may be left out.
    /// - Parameters:
    ///   - ejected: how many are already.
    ///   - servers: how many there are.
    func mayEject(besides ejected: Int, of servers: Int) -> Bool {
        (ejected + 1) * 100 <= servers * sharePercent
    }
}

/// What the checks of one server say.
struct CheckRecord: Equatable {
    enum State: Int, Equatable {
        /// None has ended yet: it is used.
        case unknown
        case up
        case down
    }

    private(set) var state = State.unknown
    /// How many in a row say the contrary.
    private var against = 0

    /// A check has ended. The first one decides alone.
    /// - Returns: the new state, if it is another one.
    mutating func ended(passed: Bool, by check: UpstreamSet.HealthCheck) -> State? {
        let said = passed ? State.up : .down
        if state == said {
            against = 0
            return nil
        }
        against += 1
        let needed = state == .unknown ? 1 : passed ? check.rise : check.fall
        guard against >= needed else { return nil }
        state = said
        against = 0
        return said
    }
}

/// How many requests may be sent to another server after one has failed them: a share of all
/// requests, so that a set that fails altogether gets little more than it would without.
///
/// In thousandths of a retry: each request adds its share, each retry takes a thousand. It begins
/// with a few, and what is saved up is limited.
enum RetryBudget {
    static let atFirst = 10_000
    static let most = 100_000

    static func added(to saved: Int, percent: Int) -> Int { min(most, saved + percent * 10) }

    /// What is left after a retry; `nil` if there may be none.
    static func taken(from saved: Int) -> Int? { saved >= 1000 ? saved - 1000 : nil }
}
