import CachePolicy
import CacheStore

extension Exchange {
    /// The response on its way into the store.
    struct Storing {
        /// Begun when the request is sent, if its response may be stored. An invalidation after
        /// that prevents the response from being stored.
        private(set) var flight: StoreFlight?
        /// The response being stored, once that has begun.
        private(set) var ticket: StoreTicket?
        /// The part of a representation being stored; `nil` usually.
        private(set) var partial: PartialStoring?
        /// The body for those who read it while it arrives; it may go on if it is not stored.
        private(set) var shared: BodyUnderWay?
        /// The response that it is of.
        private(set) var sharedResponse: CachedResponse?
        /// The filling of the cache after the client has left; `nil` while there is a client.
        private(set) var filling: CacheFilling?
        /// The stream of the client that has left; `nil` while there is a client.
        private(set) var formerClient: (any DownstreamStream)?
        /// Whether what is being stored will be sent to others in other codings.
        private(set) var dependsOnCoding = false
        /// Why the response is not stored; `nil` if it is, or if there is none.
        private(set) var refusal: NotStoredReason?
        /// When reading was paused so that the disk can catch up, in the loop's milliseconds, or
        /// `nil` if it is not paused.
        private(set) var pausedAt: Int64?
        /// How long it has been paused in all, in milliseconds.
        private(set) var paused: Int64 = 0
        /// The disk did not catch up while it was paused.
        private(set) var diskHasStalled = false

        mutating func begin(_ flight: StoreFlight?) { self.flight = flight }

        /// The store has taken the flight.
        mutating func flightIsTaken() { flight = nil }

        /// Another exchange goes on with it.
        mutating func handOver() -> Storing {
            // Whoever ends a pause knows this exchange only.
            pausedAt = nil
            defer { self = Storing() }
            return self
        }

        mutating func takeFlight() -> StoreFlight? { flight.take() }

        mutating func open(_ ticket: StoreTicket, dependsOnCoding: Bool) {
            self.ticket = ticket
            self.dependsOnCoding = dependsOnCoding
        }

        /// The part of a representation being stored, once that has begun.
        var parts: PartsTicket? { partial?.ticket }

        mutating func open(_ ticket: PartsTicket, _ single: SinglePart? = nil) {
            partial = PartialStoring(ticket: ticket, single: single)
        }

        mutating func announce(_ run: PartsUnderWay) { partial = PartialStoring(run: run) }

        mutating func takePartial() -> PartialStoring? { partial.take() }

        mutating func share(_ body: BodyUnderWay, of response: CachedResponse) {
            shared = body
            sharedResponse = response
        }

        mutating func endSharing() -> BodyUnderWay? {
            sharedResponse = nil
            return shared.take()
        }

        /// The store has ended the ticket.
        mutating func close() { ticket = nil }

        mutating func takeTicket() -> StoreTicket? { ticket.take() }

        /// Whether the response is stored, and if not, why.
        mutating func fill(_ filling: CacheFilling) { self.filling = filling }

        /// More has arrived.
        mutating func filled(_ count: Int) { filling?.received += count }

        mutating func takeFilling() -> CacheFilling? { filling.take() }

        /// The client has left, and the response is received for others.
        mutating func goOn(without client: any DownstreamStream) { formerClient = client }

        mutating func takeFormerClient() -> (any DownstreamStream)? { formerClient.take() }

        mutating func decide(_ refusal: NotStoredReason?) { self.refusal = refusal }

        mutating func pause(at time: Int64) { pausedAt = time }

        /// Reading may continue.
        /// - Parameters:
        ///   - milliseconds: how long it was paused.
        ///   - hasStalled: whether the disk did not catch up.
        mutating func resume(after milliseconds: Int64, hasStalled: Bool) {
            pausedAt = nil
            paused += milliseconds
            if hasStalled { diskHasStalled = true }
        }
    }
}

/// The part of a representation on its way into the store.
final class PartialStoring {
    /// `nil` until the response has begun.
    let ticket: PartsTicket?
    /// Its head, if that is stored when the part is complete.
    let single: SinglePart?
    /// The run that the exchange has to receive, until that has begun.
    let run: PartsUnderWay?

    init(ticket: PartsTicket? = nil, single: SinglePart? = nil, run: PartsUnderWay? = nil) {
        self.ticket = ticket
        self.single = single
        self.run = run
    }
}

extension Exchange {
    /// Why the response is not stored; `nil` if it is, or if there is none.
    package var notStoredReason: NotStoredReason? { storing.refusal }
}
