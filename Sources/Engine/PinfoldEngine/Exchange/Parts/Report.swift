import HTTPCore
import PinfoldMetrics
import PinfoldTLS

extension Exchange {
    /// What is reported about an exchange: in replies and logs, and in metrics. What is reported
    /// about few of them is in ``Remarks``.
    package struct Report {
        /// Identifies the exchange in replies and logs.
        package private(set) var id: UInt64 = 0
        /// When it began, in microseconds of the monotonic clock.
        private(set) var began: Int64 = 0
        /// The index of the name of the host entry that applies (`RouteLabels`).
        package private(set) var hostLabel = RouteLabels.noHost
        /// The status of the response that the client was sent; 0 if none.
        package private(set) var status: UInt16 = 0
        /// What the cache had to do with the response.
        package private(set) var cacheResult = CacheResult.none
        /// The address of the server that the request or the tunnel went to.
        package private(set) var server: Endpoint?
        /// Whether the connection to the server was there before it was asked for.
        private var isReused = false
        /// The same; `nil` without a connection.
        package var reusedConnection: Bool? { server == nil ? nil : isReused }
        /// What the connection to the server carries; `nil` if there was none, and for tunnels.
        package private(set) var serverCarrier: HTTPCarrier?
        /// The TLS version spoken with the server, if an access log needs it; `nil` for clear text.
        package private(set) var serverTLS: TLSVersion?
        /// The bytes that a relay moved from and to the client.
        private(set) var relayedBytes: (fromClient: UInt64, toClient: UInt64) = (0, 0)
        /// What the host said that it wants of the exchange when it began.
        package var interest = ExchangeInterest.undecided
        /// Whether the exchange has been reported: its client left before it ended.
        private(set) var isMade = false

        init() {}

        /// The report of an exchange that follows another, whose id remains until it begins.
        @inline(__always)
        init(after former: Report) { id = former.id }

        /// - Parameter time: in microseconds of the monotonic clock.
        @inline(__always)
        mutating func begin(_ id: UInt64, at time: Int64) {
            self.id = id
            began = time
        }

        /// The entry of `hosts` that applies is known.
        mutating func routed(_ label: LabelIndex) { hostLabel = label }

        /// The head of a final response is sent.
        mutating func answered(_ status: UInt16) { self.status = status }

        /// The head that was sent has been withdrawn, and another will follow.
        mutating func headWithdrawn() { status = 0 }

        mutating func used(cache result: CacheResult) { cacheResult = result }

        /// A response that was to be stored is not.
        mutating func notStored() { if cacheResult == .miss { cacheResult = .uncacheable } }

        /// There is a connection to a server.
        /// - Parameter isReused: whether it was there before it was asked for.
        mutating func connected(
            to server: Endpoint, over carrier: HTTPCarrier? = nil, isReused: Bool = false
        ) {
            self.server = server
            serverCarrier = carrier
            self.isReused = isReused
        }

        mutating func spoke(_ version: TLSVersion?) { serverTLS = version }

        mutating func made() { isMade = true }

        mutating func relayed(fromClient: UInt64, toClient: UInt64) {
            relayedBytes = (fromClient, toClient)
        }
    }
}
