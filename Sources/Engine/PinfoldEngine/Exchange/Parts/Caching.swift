import CachePolicy
import CacheStore

extension Exchange {
    /// What the cache has to do with the request: its key, and what is stored for it.
    struct Caching {
        /// The key, if it is needed beyond the lookup in memory.
        private(set) var key: CacheKey?
        /// Why the request is sent to the server.
        private(set) var forwardReason: ForwardReason?
        /// The stored response for the request: one that is validated, or that may be served in
        /// place of an error.
        private(set) var stored: CachedResponse?
        /// How the stored response is validated, until the server has answered; `nil` if it is not.
        private(set) var validation: ValidationRequest?
        /// The response to send once the origin's 304 has been read completely.
        private(set) var confirmed: ConfirmedResponse?
        /// A stored response that is outdated if the current response arrives completely.
        private(set) var outdated: CachedResponse?
        /// Whether other gateways were asked for a fresh response in place of a stale one.
        private var askForFresh = AskForFresh.notAsked
        /// Content read only to see whether the response arrives completely, in bytes.
        private(set) var bytesReadInVain: UInt64 = 0
        /// The stored response that is being revalidated in the background; `nil` in an exchange of
        /// a client.
        private(set) var revalidated: CachedResponse?

        /// How far that has come: it is done once.
        private enum AskForFresh {
            case notAsked
            case asking(insteadOf: CachedResponse)
            case asked
        }

        var hasAskedForFresh: Bool { if case .notAsked = askForFresh { false } else { true } }

        mutating func asksForFresh(insteadOf stale: CachedResponse) {
            askForFresh = .asking(insteadOf: stale)
        }

        /// What was asked for a fresh response in place of, if that is so; the answer is there.
        mutating func takeAskedFor() -> CachedResponse? {
            guard case .asking(let stale) = askForFresh else { return nil }
            askForFresh = .asked
            return stale
        }

        // MARK: The key

        mutating func identify(by key: CacheKey?) { self.key = key }

        /// Nothing is stored under the key any more, nor will the response be.
        mutating func forgetKey() { key = nil }

        // MARK: Looking up

        /// The request is sent to the server.
        mutating func forward(because reason: ForwardReason) { forwardReason = reason }

        /// A stored response cannot be used as it is.
        mutating func found(_ response: CachedResponse) { stored = response }

        /// The stored response is usable if the server confirms it.
        mutating func validate(_ response: CachedResponse, by validation: ValidationRequest) {
            stored = response
            self.validation = validation
        }

        /// Nothing is stored that could be used.
        mutating func forgetStored() {
            stored = nil
            validation = nil
        }

        /// A stored response is to be revalidated in the background.
        /// - Parameter validation: how; `nil` to request it anew.
        mutating func revalidate(
            _ response: CachedResponse, _ key: CacheKey, by validation: ValidationRequest?
        ) {
            self.key = key
            revalidated = response
            stored = response
            self.validation = validation
            forwardReason = .stale
        }

        // MARK: The server's answer

        /// The server has answered, or is not waited for any longer.
        mutating func endValidation() { validation = nil }

        /// What is stored is outdated if the response arrives completely.
        mutating func outdateStored() { outdated = stored }

        /// A response of this variant has been stored, and has replaced the one there was in every
        /// level of the cache. Removing that one might remove its successor, where a level cannot
        /// tell them apart.
        mutating func isReplaced(by varyKey: VaryKey) {
            if outdated?.varyKey == varyKey { outdated = nil }
        }

        mutating func takeOutdated() -> CachedResponse? { outdated.take() }

        /// More of a response has been read to see whether it is complete. Returns how much in all.
        mutating func readInVain(_ count: Int) -> UInt64 {
            bytesReadInVain += UInt64(count)
            return bytesReadInVain
        }

        /// What is stored has no more to do with the request.
        mutating func dropStored() { stored = nil }

        mutating func confirm(_ response: ConfirmedResponse) { confirmed = response }

        mutating func takeConfirmed() -> ConfirmedResponse? { confirmed.take() }
    }

    /// A stored response confirmed by the origin, in the form that the client needs.
    final class ConfirmedResponse {
        let stored: CachedResponse
        let freshened: FreshenedResponse
        let hit: CacheHit
        let cacheStatus: CacheStatus

        init(
            stored: CachedResponse, freshened: FreshenedResponse, hit: CacheHit,
            cacheStatus: CacheStatus
        ) {
            self.stored = stored
            self.freshened = freshened
            self.hit = hit
            self.cacheStatus = cacheStatus
        }
    }
}
