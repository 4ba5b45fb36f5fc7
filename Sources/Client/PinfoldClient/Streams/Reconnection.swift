import ContentCoding
import HTTPCore
import PinfoldEngine

/// Decides when an event stream is requested again (WHATWG HTML, "Server-sent events", processing
/// model). It is a value that neither waits nor sends requests.
struct Reconnection: Sendable {
    /// What to do when a connection has ended or could not be established.
    enum Step: Sendable {
        case reconnect(after: Duration)
        case end
        case fail(ClientError)
    }

    let options: EventSourceOptions
    /// Whether the stream is requested again at all.
    let isRepeated: Bool
    /// The value of Last-Event-ID. If it is empty, the field is not sent.
    var lastEventID: String
    /// The delay specified by the server.
    private var time: Duration
    /// The number of failed attempts since there was a stream.
    private(set) var failures = 0

    init(_ options: EventSourceOptions, isRepeated: Bool) {
        self.options = options
        self.isRepeated = isRepeated
        lastEventID = options.lastEventID
        time = options.reconnectionTime
    }

    /// Records that there is a stream.
    mutating func opened() { failures = 0 }

    /// Sets the delay specified by the server.
    mutating func setTime(milliseconds: Int64) { time = .milliseconds(milliseconds) }

    /// Decides what to do after the end of a stream: a regular one, or with an error.
    func step(afterEnd error: ClientError?) -> Step {
        if let error, !isRepeated || !(error.isNetworkError || error.isBrokenOff) {
            return .fail(error)
        }
        guard isRepeated else { return .end }
        return .reconnect(after: bounded(time))
    }

    /// Decides what to do after a failed attempt.
    mutating func step(
        afterFailure error: ClientError, using generator: inout some RandomNumberGenerator
    ) -> Step {
        guard isRepeated, error.isNetworkError else { return .fail(error) }
        failures += 1
        if let maximum = options.maximumFailures, failures >= maximum { return .fail(error) }
        // Starting from the server's delay, each upper bound is twice the previous one, so that
        // many clients do not return at the same time.
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
    /// Whether another attempt may succeed.
    fileprivate var isNetworkError: Bool { retryFailure != nil || isFramingError }

    /// Whether content that had begun ends within its coding, or is framed incorrectly from here
    /// on. For an event stream that is an end like any other (Fetch, "network error").
    fileprivate var isBrokenOff: Bool {
        if case .truncated = underlying as? ContentCodingError { return true }
        if case .response = underlying as? ExchangeError { return true }
        return false
    }

    /// The same if the head arrived together with the framing error: there is then no stream.
    private var isFramingError: Bool {
        guard case .response(let error) = underlying as? ExchangeError else { return false }
        return switch error {
        case .malformedChunkSize, .chunkTooLarge, .malformedChunkExtension,
            .chunkExtensionsTooLarge, .unterminatedChunk, .trailersTooLarge, .tooManyTrailers:
            true
        default: false
        }
    }
}
