import ContentCoding
import HTTPCore
import PinfoldEngine

/// When a stream of events is asked for again (WHATWG HTML, "Server-sent events", processing
/// model): a value, which neither waits nor asks.
struct Reconnection: Sendable {
    /// What follows when a connection has ended, or none came about.
    enum Step: Sendable {
        case reconnect(after: Duration)
        case end
        case fail(ClientError)
    }

    let options: EventSourceOptions
    /// The stream is asked for again at all.
    let isRepeated: Bool
    /// What Last-Event-ID says; empty: it is not sent.
    var lastEventID: String
    /// How long to wait, as the server has said.
    private var time: Duration
    /// Attempts that have failed since there was a stream.
    private(set) var failures = 0

    init(_ options: EventSourceOptions, isRepeated: Bool) {
        self.options = options
        self.isRepeated = isRepeated
        lastEventID = options.lastEventID
        time = options.reconnectionTime
    }

    /// There is a stream.
    mutating func opened() { failures = 0 }

    /// The server says how long to wait.
    mutating func setTime(milliseconds: Int64) { time = .milliseconds(milliseconds) }

    /// The stream has ended: well, or with this error.
    func step(afterEnd error: ClientError?) -> Step {
        if let error, !isRepeated || !(error.isOfNetwork || error.isBrokenOff) {
            return .fail(error)
        }
        guard isRepeated else { return .end }
        return .reconnect(after: bounded(time))
    }

    /// No stream came about.
    mutating func step(
        afterFailure error: ClientError, using generator: inout some RandomNumberGenerator
    ) -> Step {
        guard isRepeated, error.isOfNetwork else { return .fail(error) }
        failures += 1
        if let maximum = options.maximumFailures, failures >= maximum { return .fail(error) }
        // From the server's own time upwards, each bound twice the one before, so that many clients
        // do not come back at once.
        let least = bounded(time)
        var most = least
        for _ in 1..<min(failures + 1, 32) { most = bounded(most + most) }
        let spread = (most - least).wholeMilliseconds
        return .reconnect(
            after: least + .milliseconds(Int64.random(in: 0...max(0, spread), using: &generator)))
    }

    private func bounded(_ time: Duration) -> Duration {
        let bounds = options.reconnectionBounds
        return min(max(time, bounds.lowerBound), bounds.upperBound)
    }
}

extension ClientError {
    /// Another attempt may go better.
    fileprivate var isOfNetwork: Bool { retryFailure != nil || isOfFraming }

    /// Content that had begun ends in the midst of its coding, or is framed wrongly from here on:
    /// for a stream of events that is an end like others (Fetch, "network error").
    fileprivate var isBrokenOff: Bool {
        if case .truncated = underlying as? ContentCodingError { return true }
        if case .response = underlying as? ExchangeFault { return true }
        return false
    }

    /// The same where the head came along with what is wrong behind it: there is no stream then.
    private var isOfFraming: Bool {
        guard case .response(let error) = underlying as? ExchangeFault else { return false }
        return switch error {
        case .malformedChunkSize, .chunkTooLarge, .malformedChunkExtension,
            .chunkExtensionsTooLarge, .unterminatedChunk, .trailersTooLarge, .tooManyTrailers:
            true
        default: false
        }
    }
}
