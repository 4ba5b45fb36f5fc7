import HTTPCore
import PinfoldMetrics

extension Exchange {
    /// What is reported about an exchange: in replies and logs, and in metrics.
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
        /// Why the request was not served, or the response was cut off; `nil` if neither.
        package private(set) var fault: ExchangeError?
        /// The addresses tried if no connection could be made; usually `nil`.
        package private(set) var failedAttempts: FailedAttempts?
        /// The address of the server that the request or the tunnel went to.
        package private(set) var server: Endpoint?
        /// The TLS version spoken with the server, if an access log needs it.
        package private(set) var serverTLS = UpstreamTLSVersion.none
        /// The bytes that a relay moved from and to the client.
        private(set) var relayedBytes: (fromClient: UInt64, toClient: UInt64) = (0, 0)
        /// What its route's rules changed in the messages; usually `nil`, for nothing.
        package private(set) var transformed: TransformationRecord?

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

        mutating func failed(_ fault: ExchangeError) { self.fault = fault }

        /// - Parameter attempts: the addresses that could not be connected to, if that is the
        ///   reason of a failure.
        mutating func tried(_ attempts: FailedAttempts?) { failedAttempts = attempts }

        /// There is a connection to a server.
        mutating func connected(to server: Endpoint) { self.server = server }

        mutating func spoke(_ version: UpstreamTLSVersion) { serverTLS = version }

        mutating func relayed(fromClient: UInt64, toClient: UInt64) {
            relayedBytes = (fromClient, toClient)
        }

        /// What the rules have done with the content of the request.
        mutating func changed(request change: TransformationRecord.Change) {
            record.request = change
        }

        /// What the rules have done with the content of the response.
        mutating func changed(response change: TransformationRecord.Change) {
            record.response = change
        }

        private var record: TransformationRecord {
            mutating get {
                if let transformed { return transformed }
                let made = TransformationRecord()
                transformed = made
                return made
            }
        }
    }
}
