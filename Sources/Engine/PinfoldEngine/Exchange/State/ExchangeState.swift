/// The life of one exchange as a pure state machine: without streams, clocks or side effects.
///
/// Every event is passed to ``handle(_:)``; the reaction defines what to release and then how to
/// continue, if at all. A connection to the server is part of the states in which there is one:
/// forwarding without an upstream cannot be expressed.
///
///     routing ──► loading, waiting ──► routing (the disk has answered, what is stored has been
///        │                                      translated, another's response came)
///        ├──► authenticating ──► routing (the password has been checked)
///        ├──► delayed ──► routing (its turn has come within a rate, or will not)
///        ├──► gathering ──► connecting ──► requesting ──► responding ─────┐
///        │                      ▲               │                         │
///        │                      └── again ◄── discarding (304 and the like, read to its end)
///        │                                      │                         ▼
///        ├──► serving (from the disk) ──────────┴──────────────────► finishing ──► ended
///        └──► opening (CONNECT) ──► tunnelling ──────────────────────────────────►   ▲
///
/// A QUERY is routed again once its content, which is part of its cache key, is gathered. In any
/// state, a client that goes away leads to the end. A failure before a head was sent leads
/// back to routing, to try again or to reply; after that, it cuts the response off.
///
/// `Upstream` is what carries the request: a stream, or a stand-in in a test.
struct ExchangeState<Upstream> {
    /// Where the exchange is.
    enum Step {
        /// There is no exchange, or it has ended.
        case ended
        /// Deciding what happens next: where to send the request, or what to reply.
        case routing
        /// Waiting for the check of the password that came with the request.
        case authenticating
        /// Waiting for its turn within the rate of a rule.
        case delayed
        /// Waiting for the disk tier, or for the gateway's own answer, or reading and translating a
        /// stored response.
        case loading
        /// Waiting for the response to another exchange's request.
        case waiting
        /// Collecting the request's content before a connection is requested.
        case gathering
        /// Waiting for a connection.
        case connecting
        /// Sending the request and waiting for the final head of the response.
        case requesting(Upstream)
        /// Reading a response to its end that is not for the client.
        case discarding(Upstream, then: Continuation)
        /// Forwarding the response.
        case responding(Upstream)
        /// Streaming a stored response from the disk.
        case serving
        /// The response is complete, and the client is reading the last of it.
        case finishing
        /// CONNECT: waiting for the connection to the destination.
        case opening
        /// The relay has taken over.
        case tunnelling
    }

    /// What follows a response that is not forwarded.
    enum Continuation: Equatable, CaseIterable {
        /// The stored response, which the server has confirmed, is served.
        case serveConfirmed
        /// The request is sent again, without conditions.
        case forwardAgain
    }

    /// What is known about a request when it begins.
    struct Request: Equatable {
        var hasContent: Bool
        /// Sending it twice does no harm (RFC 9110 §9.2.2).
        var isIdempotent: Bool
        /// Whether a client waits for the response; false in the background.
        var hasClient: Bool
    }

    /// What the gateway has decided to do with a request.
    enum Decision: Equatable, CaseIterable {
        /// Have a password checked.
        case authenticate
        /// Have it wait for its turn.
        case delay
        /// Ask the disk tier, or prepare a stored response.
        case load
        /// Wait for the response to another request.
        case follow
        /// Collect the request's content first.
        case gather
        /// Look it up, now that the content is there or is too much for the key.
        case lookUp
        /// Request a connection.
        case connect
        /// Send a complete response: the gateway's own, or a stored one.
        case respond
        /// Send the head of a stored response whose content comes from the disk.
        case serve
        /// Connect to the destination of a tunnel.
        case open

        /// Whether it is to wait for something other than a connection.
        @inline(__always)
        var isWait: Bool {
            switch self {
            case .authenticate, .delay, .load, .follow, .gather: true
            case .lookUp, .connect, .respond, .serve, .open: false
            }
        }
    }

    /// What the final head of a server's response means.
    enum Answer: Equatable, CaseIterable {
        /// An interim response: another head follows.
        case interim
        case passedOn
        case discarded(then: Continuation)
        /// It is an error, and a stored response is served instead.
        case replaced

        static var allCases: [Answer] {
            [
                .interim, .passedOn, .discarded(then: .serveConfirmed),
                .discarded(then: .forwardAgain), .replaced,
            ]
        }
    }

    /// A failure.
    struct FailureInfo: Equatable {
        /// How the attempt ended; `nil` if sending the request again does not help.
        var ending: RetryDecision.Ending?
        /// Whether a queued head was withdrawn: the client has seen nothing of it.
        var headWithdrawn = false
    }

    /// Something that happened.
    enum Event {
        /// A request head has arrived, or a background request begins.
        case begin(Request)
        case decided(Decision)
        /// The password has been checked, or will not be.
        case authenticated
        /// Its turn has come, or will not.
        case turnCame
        /// The disk tier has answered, or the stored response is ready to be sent.
        case loaded
        /// The response that it waited for has arrived, or will not.
        case flightEnded
        /// There is a connection. `wasReused`: it has carried requests before. `sendsGathered`:
        /// collected content is sent after the head, and is not kept.
        case connected(Upstream, wasReused: Bool, sendsGathered: Bool)
        case answered(Answer)
        /// The response is complete, and its connection is back in the pool. `isRead`: the client
        /// reads the rest of it from where it is stored.
        case responseEnded(isRead: Bool)
        case failed(FailureInfo)
        /// Content of the request has arrived.
        case content
        /// The request's content is complete. `isKept`: it can be sent again.
        case contentEnded(isKept: Bool)
        /// Everything queued for the client has been written.
        case drained
        /// `isWanted`: others wait for the response or read it, or it is to be stored.
        case clientGone(isWanted: Bool)
        /// Nothing has moved between the client and the gateway for too long.
        case clientTimedOut
        /// The response broke off; another exchange completes it, and the client reads what it
        /// stores.
        case handedOn
        /// The relay has taken over both ends of a tunnel or of a switched protocol.
        case relayed
        /// The relay has ended, or the background exchange is of no further use.
        case over
    }

    /// What is released in a transition.
    enum Release {
        case nothing
        /// The connection, which is no longer read.
        case upstream(Upstream)
        /// The wait for a connection.
        case wait
        /// The connection to a tunnel's destination that is being established.
        case opening
        /// The check of a password.
        case check
        /// The wait for a turn.
        case turn
    }

    /// How to continue after a transition. It must be done last, because it may cause the next
    /// event.
    enum Next: Equatable {
        case nothing
        /// The event is impossible in this state: a bug in the program.
        case illegal
        /// Reply with the error, or with a stored response in its place.
        case reply
        /// Request a connection again, for this reason.
        case forwardAgain(RetryReason)
        /// The collected content is complete, or may not grow: forward the request.
        case forward
        /// Serve the confirmed response.
        case serveConfirmed
        /// Read the next part of the stored content.
        case read
        /// Resume reading from the server.
        case resume
        /// Queue the end of the response.
        case complete
        /// Send content to the server.
        case sendContent
        /// Send the end of the content to the server.
        case endContent
        /// Keep content until there is a connection.
        case gatherContent
        /// Do not accept content for now.
        case holdContent
        /// Discard content.
        case dropContent
        /// Go on without the client, which is gone.
        case detach
        /// The exchange has ended. `cut`: the response is incomplete, and the client must notice.
        case end(cut: Bool)
    }

    /// What a transition requires.
    struct Reaction {
        var release = Release.nothing
        var next = Next.nothing
    }

    var step = Step.ended
    var hasClient = false
    var isIdempotent = false
    package var content = RetryDecision.Content.none
    /// The reasons for which the request has been sent again.
    var retries = RetryReasons()
    var upstreamWasReused = false
}
