/// The life of one exchange as a pure state machine: no stream, no clock, no side effect.
///
/// Every event goes to ``handle(_:)``; the reaction says what is let go of, and then what goes on,
/// if anything. A connection to the server is part of the states in which there is one: forwarding
/// without an upstream cannot be written down.
///
///     routing ──► loading, waiting ──► routing (the disk has answered, what is stored has been
///        │                                      translated, another's response came)
///        ├──► gathering ──► connecting ──► requesting ──► responding ─────┐
///        │                      ▲               │                         │
///        │                      └── again ◄── discarding (304 and the like, read to its end)
///        │                                      │                         ▼
///        ├──► serving (from the disk) ──────────┴──────────────────► finishing ──► ended
///        └──► opening (CONNECT) ──► tunnelling ──────────────────────────────────►   ▲
///
/// From any state a client that goes away leads to the end. What goes wrong before a head was sent
/// leads back to routing, to try again or to reply; later it cuts the response off.
///
/// `Upstream` is what carries the request: a stream, or whatever stands for one in a test.
struct ExchangeState<Upstream> {
    /// Where the exchange is.
    enum Step {
        /// It is none, or none any more.
        case ended
        /// What happens next is being decided: who is asked, or what is replied.
        case routing
        /// The disk tier is asked, or what is stored is read and translated.
        case loading
        /// The response to another exchange's request is waited for.
        case waiting
        /// The request's content is taken in before a connection is asked for.
        case gathering
        /// A connection is waited for.
        case connecting
        /// The request goes out, and the final head of the response is waited for.
        case requesting(Upstream)
        /// The response is of no use to the client, and read to its end.
        case discarding(Upstream, then: Continuation)
        /// The response is passed on.
        case responding(Upstream)
        /// A stored response is streamed from the disk.
        case serving
        /// The response is complete, and the client takes the last of it.
        case finishing
        /// CONNECT: the connection to the destination is waited for.
        case opening
        /// The relay has taken over.
        case tunnelling
    }

    /// What follows on a response that is not passed on.
    enum Continuation: Equatable, CaseIterable {
        /// What is stored, which the server has confirmed, is the response.
        case serveConfirmed
        /// The request is sent again, without conditions.
        case forwardAgain
    }

    /// What is known of a request when it begins.
    struct Request: Equatable {
        var hasContent: Bool
        /// Sending it twice does no harm (RFC 9110 §9.2.2).
        var isIdempotent: Bool
        /// Somebody waits for the response; false in the background.
        var hasClient: Bool
    }

    /// What the gateway has decided to do with a request.
    enum Decision: Equatable, CaseIterable {
        /// Asks the disk tier, or prepares what is stored.
        case load
        /// Waits for the response to another request.
        case follow
        /// Takes the request's content in first.
        case gather
        /// Asks for a connection.
        case connect
        /// Sends a complete response: the gateway's own, or a stored one.
        case respond
        /// Sends the head of a stored response whose content comes from the disk.
        case serve
        /// Connects to the destination of a tunnel.
        case open
    }

    /// What the final head of a server's response means.
    enum Answer: Equatable, CaseIterable {
        /// An interim response: another head follows.
        case interim
        case passedOn
        case discarded(then: Continuation)
        /// It is a failure, and something stored is a better response.
        case replaced

        static var allCases: [Answer] {
            [
                .interim, .passedOn, .discarded(then: .serveConfirmed),
                .discarded(then: .forwardAgain), .replaced,
            ]
        }
    }

    /// Something went wrong.
    struct FailureInfo: Equatable {
        enum Cause: Equatable, CaseIterable {
            /// The server's connection ended, before a byte of the response or within it.
            case connectionDied(responseStarted: Bool)
            /// A reload gave the origin another policy while a connection was waited for.
            case superseded
            /// What is stored cannot be read.
            case storedBodyUnreadable
            /// Anything else: sending the request again does not help.
            case other

            static var allCases: [Cause] {
                [
                    .connectionDied(responseStarted: false),
                    .connectionDied(responseStarted: true),
                    .superseded, .storedBodyUnreadable, .other,
                ]
            }
        }

        var cause: Cause
        /// A head that was queued was taken back: the client has seen nothing of it.
        var headWithdrawn = false
    }

    /// Something that happened.
    enum Event {
        /// A request head has arrived, or the background asks.
        case begin(Request)
        case decided(Decision)
        /// The disk tier has answered, or what is stored is ready to be sent.
        case loaded
        /// The response that was waited for has come, or will not.
        case flightEnded
        /// There is a connection. `wasReused`: it carried requests before. `sendsGathered`: content
        /// that was taken in goes out behind the head, and is not kept.
        case connected(Upstream, wasReused: Bool, sendsGathered: Bool)
        case answered(Answer)
        /// The response has ended well, and its connection is the pool's again.
        case responseEnded
        case failed(FailureInfo)
        /// Content of the request has arrived.
        case content
        /// The request's content is complete. `isKept`: it could be sent again.
        case contentEnded(isKept: Bool)
        /// The client has taken everything that was queued for it.
        case drained
        case clientGone
        /// Nothing has moved between the client and the gateway for too long.
        case clientTimedOut
        /// Both ends of a tunnel, or of a switched protocol, are the relay's.
        case relayed
        /// The relay is over, or what happens in the background is of no further use.
        case over
    }

    /// What is let go of in a transition.
    enum Release {
        case nothing
        /// The connection: nobody reads on.
        case upstream(Upstream)
        /// The wait for a connection.
        case wait
        /// The connection to a tunnel's destination that is being made.
        case opening
    }

    /// What goes on after a transition: the last thing to be done, for it may bring the next event.
    enum Next: Equatable {
        case nothing
        /// The event is not possible in this state: a fault of the program.
        case illegal
        /// The fault is told, or something stored is sent in its place.
        case reply
        /// Asks for a connection, for this reason once more.
        case forwardAgain(RetryReason)
        /// What was taken in of the content is complete, or may not grow.
        case forward
        /// The confirmed response is sent.
        case serveConfirmed
        /// The next part of the stored content is read.
        case read
        /// The server may go on.
        case resume
        /// The end of the response is queued.
        case complete
        /// Content goes to the server.
        case sendContent
        /// The end of the content goes to the server.
        case endContent
        /// Content is kept until there is a connection.
        case gatherContent
        /// Content is not taken for now.
        case holdContent
        /// Content is thrown away.
        case dropContent
        /// The exchange is over. `cut`: the response is not complete, and the client must see it.
        case end(cut: Bool)
    }

    /// What a transition asks for.
    struct Reaction {
        var release = Release.nothing
        var next = Next.nothing
    }

    var step = Step.ended
    var hasClient = false
    var isIdempotent = false
    package var content = RetryDecision.Content.none
    /// Why the request has been sent another time.
    var retries: RetryReasons = []
    var upstreamWasReused = false
}
