/// Everything that a worker counts one by one. The metric, labels and help text of each are in
/// `CounterFamily.all`.
package enum WorkerCounter: Int, Sendable, CaseIterable {
    // Clients.
    case clientConnectionsAccepted
    /// Closed at once: the limit of connections is reached.
    case clientConnectionsRefusedByLimit
    /// Closed at once: the client has as many as one client may have.
    case clientConnectionsRefusedByClientLimit
    /// Refused while its head arrived, for want of memory for such heads.
    case clientHeadsEvicted
    /// Idle, closed for another connection at the limit of all, or of its client.
    case clientsEvictedByLimit
    case clientsEvictedByClientLimit
    /// Idle, closed because descriptors had run out.
    case clientsEvictedForDescriptors
    /// Closed for another connection at the limit of all: the head did not arrive, or only the
    /// client's end was waited for.
    case slowHeadsEvicted
    case lingeringClientsEvicted
    /// Closed at once: the client's address is not in the configured networks.
    case clientConnectionsRefusedByAddress
    /// Accepting was paused for want of descriptors (EMFILE, ENFILE).
    case acceptPauses
    // TLS of clients, by version.
    case clientHandshakesTLS10
    case clientHandshakesTLS11
    case clientHandshakesTLS12
    case clientHandshakesTLS13
    case clientHandshakesTLS10Resumed
    case clientHandshakesTLS11Resumed
    case clientHandshakesTLS12Resumed
    case clientHandshakesTLS13Resumed
    /// Handshakes of clients that failed: clear text, for example a proxy's request.
    case clientHandshakesNotTLS
    case clientHandshakesServerRefused
    case clientHandshakesVersionRefused
    /// The client does not accept the gateway's certificate.
    case clientHandshakesUntrusted
    /// The client has sent another alert.
    case clientHandshakesAlert
    /// The client has no certificate that the gateway accepts.
    case clientHandshakesCertificateRefused
    /// There is no certificate for the name that the client asks for.
    case clientHandshakesNameRefused
    case clientHandshakesTimeout
    case clientHandshakesClosed
    case clientHandshakesProtocolError
    case clientBytesReceived
    case clientBytesSent

    // Upstream connections and their pool.
    case upstreamConnectionsCreated
    case upstreamConnectionsReused
    case upstreamConnectRefused
    case upstreamConnectTimedOut
    case upstreamConnectUnreachable
    case upstreamConnectFailedOtherwise
    /// A pooled connection was closed because the policy under which it was made is gone.
    case upstreamConnectionsOutdated
    case poolWaits
    case poolWaitTimeouts
    /// Refused at once: the wait queue is full.
    case poolWaitRefusals
    // Requests sent another time, by the reason.
    case retriesConnectionDied
    case retriesSuperseded
    case retriesValidationFailed
    case retriesStoredBodyUnreadable
    /// Faults of the program: an exchange took a step that it may not take.
    case illegalTransitions
    case upstreamBytesReceived
    case upstreamBytesSent

    // Names.
    case dnsQueries
    case dnsAnswersFound
    case dnsAnswersNoSuchName
    case dnsAnswersNoData
    case dnsAnswersServerFailure
    case dnsAnswersTimeout
    case dnsAnswersOther
    case dnsCacheHits

    // TLS to the origins.
    case tlsHandshakesFull
    case tlsHandshakesResumed
    case tlsHandshakesUntrusted
    case tlsHandshakesPinMismatch
    case tlsHandshakesProtocolError
    case tlsHandshakesTimeout
    case tlsHandshakesClosed

    // Tunnels and upgrades.
    case tunnelsOpened
    case tunnelBytesToUpstream
    case tunnelBytesToClient
    case upgrades
    /// Tunnels that end in the gateway.
    case tunnelsIntercepted
    /// Tunnels to hosts that are intercepted, relayed all the same.
    case tunnelsPassedNotTLS
    case tunnelsPassedServerFirst
    case tunnelsPassedRejected
    // Tunnels that were inspected, by what came of it and the version of TLS in them.
    case tunnelsVerifiedTLS10
    case tunnelsVerifiedTLS11
    case tunnelsVerifiedTLS12
    case tunnelsResumedTLS10
    case tunnelsResumedTLS11
    case tunnelsResumedTLS12
    case tunnelsProbedTLS13
    case tunnelsInterceptedTLS13
    case tunnelsRefusedBeforeVersion
    case tunnelsRefusedTLS10
    case tunnelsRefusedTLS11
    case tunnelsRefusedTLS12
    case tunnelsRefusedTLS13

    // The cache, as the worker sees it.
    case cacheMemoryHits
    case cacheDiskHits
    case cacheStores
    /// A response that was being stored ended early and was thrown away.
    case cacheStoresAborted
    case cacheInvalidations
    /// The origin was asked about a response that was served stale meanwhile.
    case cacheBackgroundRevalidations
    /// A request began to wait for the response to another one for the same.
    case cacheCollapseWaits
}

/// Everything that a worker has a number of at a time; the scrape adds the workers' numbers.
package enum WorkerGauge: Int, Sendable, CaseIterable {
    case clientConnectionsOpen
    /// 1 while accepting is paused for want of descriptors.
    case acceptPaused
    /// Bytes of buffers with heads that have not arrived whole.
    case headBufferBytes
    case exchangesInFlight
    case upstreamConnectionsOpen
    case upstreamConnectionsIdle
    /// Exchanges that wait for a connection of the pool.
    case poolWaiting
    case tunnelsOpen
}

/// Durations, in microseconds, that a worker records without a route.
package enum WorkerHistogram: Int, Sendable, CaseIterable {
    /// From the question to the answer, questions answered by the cache excluded.
    case dnsQuery
    /// From the first attempt to the connected socket.
    case upstreamConnect
    /// From the first byte of the handshake to the verdict on the peer.
    case tlsHandshake
    /// What an exchange waited for a connection of the pool, when it had to: until it got one or
    /// gave up.
    case poolWait
}
