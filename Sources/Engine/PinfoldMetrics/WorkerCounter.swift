/// The individual counters of a worker. The metric, labels and help text of each are in
/// `CounterFamily.all`.
public enum WorkerCounter: Int, Sendable, CaseIterable {
    // Clients.
    case clientConnectionsAccepted
    /// Closed immediately: the limit on connections is reached.
    case clientConnectionsRefusedByLimit
    /// Closed immediately: the client has reached its limit.
    case clientConnectionsRefusedByClientLimit
    /// Refused while its head was arriving, for lack of memory for such heads.
    case clientHeadsEvicted
    /// Idle, closed for another connection at the total limit or the limit of its client.
    case clientsEvictedByLimit
    case clientsEvictedByClientLimit
    /// Idle, closed because descriptors had run out.
    case clientsEvictedForDescriptors
    /// Closed for another connection at the total limit: the head did not arrive, or the connection
    /// only waited for the client to close it.
    case slowHeadsEvicted
    case lingeringClientsEvicted
    /// Closed immediately: the client's address is not in the configured networks.
    case clientConnectionsRefusedByAddress
    // PROXY headers, by version.
    case proxyHeadersV1
    case proxyHeadersV2
    /// Sent to servers: for clients, and for the gateway itself.
    case upstreamProxyHeadersClients
    case upstreamProxyHeadersOwn
    /// Connections without a good one, where one is required.
    case proxyHeadersSenderRefused
    case proxyHeadersMissing
    case proxyHeadersMalformed
    case proxyHeadersChecksumWrong
    case proxyHeadersAddressImpossible
    case proxyHeadersTimeout
    case proxyHeadersClosed
    // Clients of SOCKS that were refused before there was a request.
    case socksVersionRefused
    case socksMethodRefused
    case socksMalformed
    case socksCommandRefused
    case socksAddressTypeRefused
    case socksTimeout
    // Connections at transparent listeners, by what they carry.
    case transparentHTTP
    case transparentTLS
    case transparentOther
    case transparentServerFirst
    // Those that were closed before there was a request.
    case transparentDestinationUnknown
    case transparentDirect
    case transparentOwnConnection
    case transparentMalformed
    case transparentSilent
    case transparentTimeout
    /// The address that a client connected to is none of the host's that it named.
    case transparentAddressesForeign
    /// Accepting was paused for lack of descriptors (EMFILE, ENFILE).
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
    // The same, by what was agreed on (ALPN).
    case clientHandshakesHTTP1
    case clientHandshakesHTTP2
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
    /// There is no certificate for the name that the client requests.
    case clientHandshakesNameRefused
    case clientHandshakesTimeout
    case clientHandshakesClosed
    case clientHandshakesProtocolError
    // Requests to listeners that ask who is asking, by the result.
    case authenticationsAccepted
    /// The password was verified for an earlier request.
    case authenticationsRemembered
    case authenticationsMissing
    case authenticationsUnusable
    case authenticationsWrong
    case authenticationsExpired
    case authenticationsRepeated
    case authenticationsBusy
    /// In tunnels.
    case authenticationsEnded
    /// Password checks that waited because of failures before them.
    case authenticationsDelayed
    // Connections of clients with HTTP/2 that ended with an error, by its code.
    case http2EndedNoError
    case http2EndedProtocolError
    case http2EndedInternalError
    case http2EndedFlowControlError
    case http2EndedSettingsTimeout
    case http2EndedStreamClosed
    case http2EndedFrameSizeError
    case http2EndedCompressionError
    case http2EndedEnhanceYourCalm
    /// A client was asked to open no more streams.
    case http2Warned
    // Ends for abuse, by what cost the most.
    case http2AbuseResetsReceived
    case http2AbuseResetsCaused
    case http2AbuseMalformedMessages
    case http2AbuseFieldsRefused
    case http2AbuseStreamsRefused
    case http2AbuseDiscardedFields
    case http2AbuseContinuations
    case http2AbuseEmptyContinuations
    case http2AbuseEmptyData
    case http2AbuseTinyData
    case http2AbusePadding
    case http2AbusePings
    case http2AbuseSettings
    case http2AbusePriorities
    case http2AbuseWindowUpdates
    case http2AbuseTinyWindows
    case http2AbuseUnknownFrames
    case http2AbuseLateFrames
    case http2AbuseGoaways
    case clientBytesReceived
    case clientBytesSent
    /// Exchanges that ended while somebody looked, and were left out of what is shown.
    case flowsLeftOut

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
    /// Refused immediately: the queue is full.
    case poolWaitRefusals
    // Requests sent again, by reason.
    case retriesConnectionDied
    case retriesNotProcessed
    case retriesSuperseded
    case retriesValidationFailed
    case retriesStoredBodyUnreadable
    case retriesOtherServer
    /// Bugs in the program: an exchange made an illegal state transition.
    case illegalTransitions
    /// HTTP/1.1 is spoken for a while with a server that cannot be spoken to in HTTP/2.
    case http2Fallbacks
    case upstreamBytesReceived
    case upstreamBytesSent

    // Names.
    case dnsQueries
    case dnsAnswersFound
    case dnsAnswersNoSuchName
    case dnsAnswersNoData
    case dnsAnswersServerFailure
    case dnsAnswersTimeout
    case dnsAnswersUnreachable
    case dnsAnswersRefused
    case dnsAnswersOther
    case dnsCacheHits

    // TLS to the origins.
    case tlsHandshakesFull
    case tlsHandshakesResumed
    // Those two, by what was agreed on (ALPN).
    case tlsHandshakesHTTP1
    case tlsHandshakesHTTP2
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
    /// Tunnels to intercepted hosts that were nevertheless relayed.
    case tunnelsPassedNotTLS
    case tunnelsPassedServerFirst
    case tunnelsPassedRejected
    // Inspected tunnels, by result and their TLS version.
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
    case cacheSharedHits
    // Of these, those that were not sent in the stored coding.
    case cacheDecodedHits
    case cacheCompressedHits
    case cacheStores
    /// A response that was being stored ended early and was discarded.
    case cacheStoresAborted
    case cacheInvalidations
    /// A response was revalidated in the background while it was served stale.
    case cacheBackgroundRevalidations
    /// A request began to wait for the response to another request for the same resource.
    case cacheCollapseWaits
    /// A response that was received for the cache only came too slowly, and was given up.
    case cacheFillsGivenUp
    /// A response that had broken off was completed by a request for the rest.
    case cacheCompletions
    /// A part of a response was requested in place of what the client asked for.
    case cachePartFetches
}

/// The current quantities of a worker; the scrape adds those of all workers.
public enum WorkerGauge: Int, Sendable, CaseIterable {
    case clientConnectionsOpen
    /// 1 while accepting is paused for lack of descriptors.
    case acceptPaused
    /// Bytes of buffers with incomplete heads.
    case headBufferBytes
    case exchangesInFlight
    case upstreamConnectionsOpen
    case upstreamConnectionsIdle
    /// Exchanges that wait for a connection of the pool.
    case poolWaiting
    case tunnelsOpen
    /// Responses that can be read while they arrive, those that read them, and those of them that
    /// are received although their client has left.
    case cacheBodiesUnderWay
    case cacheBodyReaders
    case cacheFills
}

/// Durations, in microseconds, that a worker records without a route.
public enum WorkerHistogram: Int, Sendable, CaseIterable {
    /// From the query to the answer, excluding answers from the cache.
    case dnsQuery
    /// From the first attempt to the connected socket.
    case upstreamConnect
    /// From the first byte of the handshake to the verdict on the peer.
    case tlsHandshake
    /// How long an exchange waited for a connection of the pool, if it had to: until it got one or
    /// gave up.
    case poolWait
}
