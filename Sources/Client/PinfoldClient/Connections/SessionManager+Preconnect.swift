import HTTPTypes

extension SessionManager {
    /// Connects to a server in advance, so that the next requests need not wait for that: name
    /// resolution, TCP, TLS, and the evaluation of the server by the session's policy and pins.
    ///
    /// Nothing is requested. The connections are kept for the session's requests as after a
    /// request, for up to ``SessionConfiguration/idleConnectionTimeout``. Those that are idle
    /// already count; over HTTP/2, one connection is enough for any number of requests.
    ///
    /// They count as active requests while they are made. There are no more of them than there may
    /// be active requests to the server (``SessionConfiguration/maximumRequestsPerOrigin``,
    /// ``SessionConfiguration/maximumRequests``) beside those that are active now; if there is room
    /// for none, the call has no effect. It has none either if a
    /// ``SessionConfiguration/transport`` answers.
    ///
    ///     try await session.preconnect(to: "https://api.example.com", count: 2)
    ///
    /// - Parameters:
    ///   - url: A URL of the server; its path and query do not matter.
    ///   - count: The number of requests for which there are to be connections.
    ///   - options: ``RequestOptions/timeout``, ``RequestOptions/proxies`` and
    ///     ``RequestOptions/httpVersion`` apply. Connections through other proxies than those of a
    ///     request are of no use to it.
    /// - Throws: ``ClientError``, as for a request: for example, with
    ///   ``ClientError/Reason/secureConnectionFailed`` if no pin matches, or with
    ///   ``ClientError/Reason/timedOut``. Connections that have been made by then are kept. A
    ///   challenge of a proxy is an error, too: only requests answer it.
    public func preconnect(
        to url: String, count: Int = 1, options: RequestOptions = RequestOptions()
    ) async throws(ClientError) {
        let request = try HTTPRequest(.get, url)
        guard let origin = request.origin else {
            throw ClientError(
                .invalidRequest, "expected an http or https URL with a valid authority",
                of: request)
        }
        guard configuration.transport == nil, count > 0 else { return }
        let speaksOnlyHTTP1 = try speaksOnlyHTTP1(request, options)
        let head = try RequestHeadText.make(of: request, framing: .none)
        let proxy = try proxyRoute(of: request, to: origin, options, nil)
        prepareTLS(with: origin, through: proxy)
        let most = max(1, configuration.maximumRequestsPerOrigin)
        let numbers = (0..<min(count, most)).map { _ in runtime.nextNumber() }
        let milliseconds = max(
            1, (options.timeout ?? configuration.requestTimeout).wholeMilliseconds)
        let session = number
        let cancel: @Sendable () -> Void = { [poster = runtime.poster] in
            poster(.cancelPreconnection(session: session, number: numbers[0]))
        }
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let request = PreconnectRequest(
                    session: session, numbers: numbers, origin: origin, head: head, proxy: proxy,
                    speaksOnlyHTTP1: speaksOnlyHTTP1,
                    milliseconds: milliseconds, answer: { waiter.resume(returning: $0) })
                guard runtime.post(.preconnect(request)) else {
                    return waiter.resume(returning: ClientError.sessionInvalidated())
                }
                // The handler below may have come too early.
                if Task.isCancelled { cancel() }
            }
        } onCancel: {
            cancel()
        }
        if let error { throw error.about(request) }
    }
}
