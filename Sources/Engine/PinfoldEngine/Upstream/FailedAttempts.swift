import EventLoop
import HTTPCore

/// The addresses of a server that could not be connected to, or whose connection could not be used:
/// for logs and replies.
package struct FailedAttempts: Sendable {
    /// The result for an address.
    package enum Outcome: Sendable {
        /// It could not be connected to.
        case failed(Errno)
        /// It did not answer before the operation gave up.
        case unanswered
        /// It was connected to.
        case connected
        /// The access rules do not allow connecting to it.
        case refused
    }

    /// How many addresses a text names; of the others it gives the number.
    private static let named = 4

    private var entries: [(endpoint: Endpoint, outcome: Outcome)]
    /// The path of the Unix socket that was tried, in place of an address; `nil` for an address.
    private var unixPath: String?

    /// The results for these addresses, in the order in which they were tried.
    init(_ entries: [(endpoint: Endpoint, outcome: Outcome)]) { self.entries = entries }

    /// A server that was connected to, but failed afterwards.
    init(connectedTo endpoint: Endpoint) { self.init([(endpoint, .connected)]) }

    /// The result for a server on a Unix socket.
    init(unixSocket path: String, _ outcome: Outcome) {
        self.init([(.unnamed, outcome)])
        unixPath = path
    }

    /// The address tried last, or else the one refused last; `nil` if there is none.
    package var last: Endpoint? {
        (tried.last ?? entries.last)?.endpoint
    }

    /// The address tried last; `nil` if none was.
    var lastTried: Endpoint? { tried.last?.endpoint }

    /// The address tried last that could not be connected to, and why; `nil` if there is none.
    package var lastFailure: (endpoint: Endpoint, error: Errno)? {
        for (endpoint, outcome) in entries.reversed() {
            switch outcome {
            case .failed(let error): return (endpoint, error)
            case .unanswered: return (endpoint, .timedOut)
            case .connected, .refused: continue
            }
        }
        return nil
    }

    private var tried: [(endpoint: Endpoint, outcome: Outcome)] {
        entries.filter { if case .refused = $0.outcome { false } else { true } }
    }

    /// All addresses with their results; `nil` if there are none.
    var text: String? { text(entries) }

    /// The same for the addresses that were tried, which clients may see. They do not learn the
    /// addresses of a name that they may not connect to.
    var textOfTried: String? { text(tried) }

    private func text(_ entries: [(endpoint: Endpoint, outcome: Outcome)]) -> String? {
        guard !entries.isEmpty else { return nil }
        // The last one is what the reason is about.
        let others = entries.count - Self.named
        guard others > 0 else { return entries.map(text).joined(separator: ", ") }
        let parts =
            entries.prefix(Self.named - 1).map(text) + ["\(others) more"]
            + entries.suffix(1).map(text)
        return parts.joined(separator: ", ")
    }

    private func text(_ entry: (endpoint: Endpoint, outcome: Outcome)) -> String {
        let place = unixPath.map { UnixSocketPath.scheme + $0 } ?? "\(entry.endpoint)"
        return switch entry.outcome {
        case .failed(let error): "\(place): \(error)"
        case .unanswered: "\(place): no answer"
        case .refused: "\(place): refused by the rules"
        case .connected: place
        }
    }
}

/// Why a stream to a server could not be obtained, or why it failed.
package struct StreamError: Error {
    package var error: ExchangeError
    /// The addresses that were tried; `nil` if none was, or if the failure does not concern an
    /// address.
    package var attempts: FailedAttempts?
    /// Whether some byte of the final response had been received.
    package var responseStarted: Bool
    /// What was done to make the connection; `nil` if none was being made. For the thread that the
    /// connection is made on, which errors do not leave.
    nonisolated(unsafe) package var timeline: ConnectionTimeline?

    /// A failure for the reason `error`.
    package init(
        _ error: ExchangeError, _ attempts: FailedAttempts? = nil, responseStarted: Bool = false,
        by timeline: ConnectionTimeline? = nil
    ) {
        self.error = error
        self.attempts = attempts
        self.responseStarted = responseStarted
        self.timeline = timeline
    }
}
