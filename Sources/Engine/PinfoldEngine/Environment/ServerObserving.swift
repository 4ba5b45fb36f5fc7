import HTTPCore
import PinfoldTLS
import Trust

/// Remembers the keys that trusted servers show (`pins: observe`).
package protocol ServerObserving: Sendable {
    /// A server passed its verification on a new connection, in a full handshake.
    ///
    /// Called on the loop that verified the server: it must not block, and is called for every such
    /// handshake.
    func observed(_ server: ObservedServer)
}

/// A server that has passed.
package struct ObservedServer: Sendable {
    package let host: String
    package let port: UInt16
    /// The address that it was connected to; `nil` if it is unknown.
    package let endpoint: Endpoint?
    /// What it presented.
    package let shown: ShownChain
    /// Whether it passed only because a pinset reports instead of refusing.
    package let isReported: Bool
    /// Whether its host has pins.
    package let isPinned: Bool
    /// For whom it was connected to; `nil` for nobody.
    package let client: IPNetwork?
    /// The environment on whose loop this is.
    package let environment: Int
    /// Seconds since 1970.
    package let wallSeconds: Int64
    /// Milliseconds of the monotonic clock.
    package let now: Int64

    package init(
        host: String, port: UInt16, endpoint: Endpoint?, shown: ShownChain, isReported: Bool,
        isPinned: Bool, client: IPNetwork?, environment: Int, wallSeconds: Int64, now: Int64
    ) {
        self.host = host
        self.port = port
        self.endpoint = endpoint
        self.shown = shown
        self.isReported = isReported
        self.isPinned = isPinned
        self.client = client
        self.environment = environment
        self.wallSeconds = wallSeconds
        self.now = now
    }
}

extension Environment {
    /// Passes on what a trusted server has shown, if it is observed.
    ///
    /// - Parameter shown: the chain that it presented.
    func observe(_ server: EvaluatedServer, _ facts: TrustFacts, _ shown: () -> ShownChain) {
        guard server.isObserved, let observer = shared.serverObserver else { return }
        observer.observed(
            ObservedServer(
                host: server.host, port: server.port, endpoint: server.endpoint, shown: shown(),
                isReported: facts.isReported, isPinned: server.isPinned, client: server.client,
                environment: index, wallSeconds: wallSeconds, now: loop.monotonicNow / 1000))
    }
}
