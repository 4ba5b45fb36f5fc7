import CachePolicy

/// What an exchange without a client asks for in place of what a client asked for.
final class SubstituteRequest {
    let rest: RestOfResponse?
    let part: PartRequest?
    /// Bytes at the beginning of the response that are not wanted.
    var known: UInt64 = 0

    init(rest: RestOfResponse? = nil, part: PartRequest? = nil) {
        self.rest = rest
        self.part = part
    }
}

extension Exchange {
    /// The way to the server, and how far the request has come on it.
    package struct Forwarding {
        /// Where the request goes.
        package private(set) var origin: Origin?
        /// The rules under which the request began, if a reload has changed them since; `nil` if
        /// not.
        private var rulesBeforeReload: RouteTransformation??
        /// The client whose exchanges in progress it is counted with.
        private(set) var account: ClientAccount?
        /// Whether a connection is needed that has not carried a request.
        private(set) var needsFreshConnection = false
        /// When the request's head was last sent to the server, in microseconds of the monotonic
        /// clock; 0 if it never was.
        private(set) var sentAt: Int64 = 0
        /// The same in seconds since 1970 (RFC 9111 §4.2.3: `request_time`).
        private(set) var requestTime: Int64 = 0
        /// When the attempt began that is under way, or that was the last one; 0 if there is none,
        /// or if what it took is counted already.
        private(set) var askedAt: Int64 = 0
        /// When its final head arrived; 0 if it has not.
        private(set) var answeredAt: Int64 = 0
        /// How long the head of the response took, in microseconds; `nil` if there was none.
        private(set) var firstByteMicroseconds: UInt64?
        /// Interim responses to the request that was last sent.
        private(set) var interimCount = 0
        /// Whether the connection had carried requests before and ended without a byte of a
        /// response.
        package private(set) var wasLeftUnanswered = false
        private(set) var isEventStream = false
        /// What is asked for in place of what the client asks for; `nil` usually.
        private var substitute: SubstituteRequest?
        /// Whether the response had no length and was collected until its connection ended.
        private(set) var wasGatheredToTheEnd = false

        /// Whether the server may have read the request, on this connection or on one that has
        /// since died.
        @inline(__always)
        package var wasSent: Bool { sentAt != 0 }

        /// The rules that apply to the messages until they end; `nil` if there are none.
        @inline(__always)
        var rules: RouteTransformation? { rulesBeforeReload ?? origin?.transformation }

        // MARK: The origin

        @inline(__always)
        mutating func go(to origin: Origin) { self.origin = origin }

        /// After a reload. The head, and perhaps the content, were rewritten by the previous rules,
        /// which therefore go on to apply.
        mutating func go(on to: Origin, after former: Origin) {
            if rulesBeforeReload == nil, to.transformation !== former.transformation {
                rulesBeforeReload = .some(former.transformation)
            }
            origin = to
        }

        mutating func needFreshConnection() { needsFreshConnection = true }

        // MARK: Its client's share

        mutating func count(for account: ClientAccount) { self.account = account }

        mutating func takeAccount() -> ClientAccount? { account.take() }

        // MARK: The request

        /// The request is about to be sent, perhaps again.
        /// - Parameters:
        ///   - time: in microseconds of the monotonic clock.
        ///   - wallTime: in seconds since 1970.
        @inline(__always)
        mutating func begin(at time: Int64, wallTime: Int64) {
            sentAt = time
            askedAt = time
            answeredAt = 0
            requestTime = wallTime
            interimCount = 0
        }

        /// It could not be sent after all.
        /// - Parameter time: `sentAt` before ``begin(at:wallTime:)``.
        mutating func undoSending(_ time: Int64) {
            sentAt = time
            askedAt = 0
        }

        /// The attempt is over, and is counted now. Returns when what is not counted yet began;
        /// `nil` if there is nothing.
        mutating func takeAttempt() -> Int64? {
            let begun = askedAt != 0 ? askedAt : answeredAt
            (askedAt, answeredAt) = (0, 0)
            return begun == 0 ? nil : begun
        }

        // MARK: The response

        /// A head has arrived.
        /// - Parameters:
        ///   - time: in microseconds of the monotonic clock.
        ///   - isFinal: whether no other one follows.
        @inline(__always)
        mutating func headArrived(at time: Int64, isFinal: Bool) {
            if firstByteMicroseconds == nil {
                firstByteMicroseconds = UInt64(max(0, time - sentAt))
            }
            if isFinal { answeredAt = time }
        }

        /// An interim response has arrived. Returns how many it is.
        mutating func interimArrived() -> Int {
            interimCount += 1
            return interimCount
        }

        /// The final head is passed on.
        mutating func responds(asEventStream isEventStream: Bool) {
            self.isEventStream = isEventStream
        }

        /// What the request asks for, if it completes a response that broke off.
        @inline(__always)
        var rest: RestOfResponse? { substitute?.rest }

        /// The part that is asked for.
        @inline(__always)
        var part: PartRequest? { substitute?.part }

        /// Something else is asked for.
        mutating func ask(for substitute: SubstituteRequest) { self.substitute = substitute }

        /// The response begins with bytes that are there already, or not wanted.
        mutating func skip(_ count: UInt64) { substitute?.known = count }

        /// Whether some of the content that arrives is there already.
        @inline(__always)
        var knowsBeginning: Bool { substitute.map { $0.known > 0 } ?? false }

        /// Of content that has arrived, how many bytes at its beginning are there already.
        mutating func takeKnown(of count: Int) -> Int {
            guard let substitute else { return 0 }
            let skipped = min(UInt64(count), substitute.known)
            substitute.known -= skipped
            return Int(skipped)
        }

        mutating func wasGathered(toTheEnd: Bool) { wasGatheredToTheEnd = toTheEnd }

        /// The connection is lost.
        /// - Parameter silently: it had carried requests before, and ended without a byte.
        mutating func lost(silently: Bool) {
            wasLeftUnanswered = silently && firstByteMicroseconds == nil
        }
    }
}

extension Exchange {
    @inline(__always)
    var origin: Origin? { forwarding.origin }

    @inline(__always)
    var rules: RouteTransformation? { forwarding.rules }
}
