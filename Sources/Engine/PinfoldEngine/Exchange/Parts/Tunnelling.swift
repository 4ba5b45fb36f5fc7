import PinfoldMetrics

extension Exchange {
    /// The tunnel of a CONNECT or of a switched protocol, from the request to its end.
    package struct Tunnelling {
        /// What a CONNECT is waiting for.
        private(set) var opening: (any TunnelOpening)?
        /// The owner of the connections, once the exchange has left HTTP.
        private(set) var carrier: (any TunnelCarrier)?
        /// Whether it ends in the gateway.
        package private(set) var isIntercepted = false
        /// Why it is relayed although its host is intercepted; `nil` for any other tunnel.
        package private(set) var interceptionPass: InterceptionPass?
        /// The result of inspecting it; `nil` if it was not inspected.
        package private(set) var inspection: TunnelInspection?
        /// Whether a client has asked for it; if not, the server has switched protocols.
        let isRequested: Bool
        /// What has become of it, once that is known.
        private(set) var result: TunnelResult?

        /// - Parameter isRequested: `false` for what a switch of protocols leads into.
        init(isRequested: Bool) { self.isRequested = isRequested }

        /// Whether its bytes are relayed.
        var isRelayed: Bool { carrier is Relay }

        /// It waits for a connection to its destination, or for that server's verification.
        mutating func wait(for opening: any TunnelOpening) { self.opening = opening }

        /// What it waited for has come, or will not.
        mutating func takeOpening() -> (any TunnelOpening)? { opening.take() }

        /// The connections are with their owner.
        mutating func hand(to carrier: any TunnelCarrier) { self.carrier = carrier }

        /// The owner of the connections could not take them.
        mutating func dropCarrier() { carrier = nil }

        /// It ends in the gateway.
        mutating func intercept() { isIntercepted = true }

        /// It is relayed although its host is intercepted.
        mutating func pass(because pass: InterceptionPass) { interceptionPass = pass }

        /// - Parameter result: `nil` if it ended before there was one.
        mutating func inspected(_ result: TunnelInspection?) { inspection = result }

        /// It is known what has become of it.
        mutating func ends(as result: TunnelResult) { self.result = result }
    }
}
