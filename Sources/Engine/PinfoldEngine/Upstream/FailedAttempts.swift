import EventLoop
import HTTPCore

/// The addresses of a server that no connection, or none that could be used, came of: for logs and
/// replies.
package struct FailedAttempts: Sendable {
    /// What came of an address.
    package enum Outcome: Sendable {
        /// It could not be connected to.
        case failed(Errno)
        /// It did not answer before all was given up.
        case unanswered
        /// It was connected to.
        case connected
        /// The rules of access do not let it be connected to.
        case refused
    }

    /// Addresses that are named in a text; of more, how many they are.
    private static let named = 4

    private var entries: [(endpoint: Endpoint, outcome: Outcome)]

    /// What came of these addresses, in the order in which they were tried.
    init(_ entries: [(endpoint: Endpoint, outcome: Outcome)]) { self.entries = entries }

    /// A server that was connected to, and failed afterwards.
    init(connectedTo endpoint: Endpoint) { self.init([(endpoint, .connected)]) }

    /// The address tried last, or else refused last; nil: there was none.
    package var last: Endpoint? {
        (tried.last ?? entries.last)?.endpoint
    }

    /// The address tried last; nil: none was.
    var lastTried: Endpoint? { tried.last?.endpoint }

    private var tried: [(endpoint: Endpoint, outcome: Outcome)] {
        entries.filter { if case .refused = $0.outcome { false } else { true } }
    }

    /// All addresses, each with what came of it; nil: there are none.
    var text: String? { Self.text(entries) }

    /// The same of those that were tried, which clients may know: they do not get to know to what
    /// addresses a name leads that they may not reach.
    var textOfTried: String? { Self.text(tried) }

    private static func text(_ entries: [(endpoint: Endpoint, outcome: Outcome)]) -> String? {
        guard !entries.isEmpty else { return nil }
        // The last one is what the reason is about.
        let others = entries.count - named
        guard others > 0 else { return entries.map(text).joined(separator: ", ") }
        let parts =
            entries.prefix(named - 1).map(text) + ["\(others) more"] + entries.suffix(1).map(text)
        return parts.joined(separator: ", ")
    }

    private static func text(_ entry: (endpoint: Endpoint, outcome: Outcome)) -> String {
        switch entry.outcome {
        case .failed(let error): "\(entry.endpoint): \(error)"
        case .unanswered: "\(entry.endpoint): no answer"
        case .refused: "\(entry.endpoint): refused by the rules"
        case .connected: "\(entry.endpoint)"
        }
    }
}

/// Why there is no stream to a server, or why the one that there was has failed.
package struct StreamError: Error {
    package var error: ExchangeError
    /// The addresses that were tried; nil: none was, or the failure is not about one.
    package var attempts: FailedAttempts?
    /// Some byte of the final response had been received.
    package var responseStarted: Bool

    /// A failure for the reason `error`.
    package init(
        _ error: ExchangeError, _ attempts: FailedAttempts? = nil, responseStarted: Bool = false
    ) {
        self.error = error
        self.attempts = attempts
        self.responseStarted = responseStarted
    }
}
