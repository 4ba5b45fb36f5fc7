extension Exchange {
    /// What is done with the request before it can be sent: rules rewrite it, and content that
    /// arrives slowly is collected or has to wait.
    struct Upload {
        /// The request as rewritten by its route's rules; usually `nil`, for unchanged.
        private(set) var rewritten: RewrittenRequest?
        /// Content collected before there was a connection. It may count as unfinished input of its
        /// environment.
        private(set) var gathered: GatheredContent?
        /// The limit in which it counts as an upload that is still arriving.
        private(set) var limit: SharedLimit?
        /// Until when it waits to be counted there, in the loop's milliseconds; 0 if it does not
        /// wait.
        private(set) var waitEnds: Int64 = 0

        /// What the answer of a ``LocalSite`` depends on; `nil` if on no content.
        private(set) var awaited: AwaitedContent?

        /// Content that is collected for a ``LocalSite``.
        struct AwaitedContent {
            /// The most bytes.
            let maximum: Int
            let answer: ([UInt8]) -> LocalAnswer
        }

        mutating func awaitContent(
            of maximum: Int, for answer: @escaping ([UInt8]) -> LocalAnswer
        ) {
            awaited = AwaitedContent(maximum: maximum, answer: answer)
        }

        mutating func takeAwaited() -> AwaitedContent? { awaited.take() }

        mutating func rewrite(as request: RewrittenRequest) { rewritten = request }

        mutating func gather(into content: GatheredContent) { gathered = content }

        mutating func takeGathered() -> GatheredContent? { gathered.take() }

        mutating func count(in limit: SharedLimit) { self.limit = limit }

        mutating func takeLimit() -> SharedLimit? { limit.take() }

        /// It waits for its turn.
        /// - Parameter end: until when, if it does not wait already.
        mutating func wait(until end: Int64) { if waitEnds == 0 { waitEnds = end } }
    }
}
