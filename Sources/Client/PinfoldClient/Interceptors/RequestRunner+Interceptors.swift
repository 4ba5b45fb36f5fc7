import HTTPTypes

// What a task's interceptors do with its requests.
extension RequestRunner {
    /// The interceptors of a request and of its session, in this order.
    static func interceptors(
        _ session: SessionConfiguration, _ options: RequestOptions
    ) -> [any RequestInterceptor] {
        switch (options.interceptor, session.interceptor) {
        case (nil, nil): []
        case (let one?, nil), (nil, let one?): [one]
        case (let own?, let shared?): [own, shared]
        }
    }

    private func intercepted(
        _ history: RequestHistory
    ) -> (attempt: RequestAttempt, by: [any RequestInterceptor]) {
        let origin = history.unadapted?.origin
        let isToOtherOrigin = origin != request.origin && origin != history.adaptedOrigin
        let attempt = RequestAttempt(
            handle.identifier, history.cause, history.counts.interceptorRetries,
            isToOtherOrigin: isToOtherOrigin, tally: tally)
        return (
            attempt, interceptors.filter { !isToOtherOrigin || $0.interceptsOtherOrigins }
        )
    }

    /// Calls interceptors. They are cancelled together with the task, also when its time is over.
    private func call<Answer: Sendable>(
        _ interceptors: @escaping @Sendable () async -> Answer
    ) async -> Answer {
        session.interceptorWatch.begin(handle)
        defer { session.interceptorWatch.end(handle) }
        return await handle.call(interceptors)
    }

    /// Lets the interceptors adapt the next request.
    func adapt(_ history: inout RequestHistory) async throws(ClientError) {
        guard let unadapted = history.unadapted else { return }
        history.request = unadapted
        let (attempt, interceptors) = intercepted(history)
        guard !interceptors.isEmpty else { return }
        let adapted = await call { () -> Result<HTTPRequest, any Error> in
            do {
                var request = unadapted
                for interceptor in interceptors {
                    request = try await interceptor.adapt(request, for: attempt)
                }
                return .success(request)
            } catch {
                return .failure(error)
            }
        }
        try handle.check()
        switch adapted {
        case .success(let adapted):
            history.request = adapted
            if adapted != unadapted { report(.adapted(adapted, from: unadapted)) }
            history.adaptedOrigin = history.adaptedOrigin ?? adapted.origin
        case .failure(let error):
            throw error as? ClientError
                ?? ClientError(
                    .requestAdaptationFailed, "the request could not be adapted: \(error)",
                    of: unadapted, underlying: error)
        }
    }

    /// Asks the interceptors whether a request is sent again. Returns the delay before that, or
    /// `nil` if it is not.
    ///
    /// - Parameter channel: The channel with the rest of the response, or `nil` if there is none.
    func delay(
        dueTo outcome: RequestOutcome, _ channel: TransferChannel?,
        _ history: inout RequestHistory
    ) async throws(ClientError) -> Duration? {
        guard history.unadapted != nil, !history.isGivenUp,
            history.counts.interceptorRetries < RequestAttempt.maximumRetryCount,
            history.content?.isRepeatable ?? true, outcome.error?.endsTask != true
        else { return nil }
        // They are not asked about the end of the task, for example because it took too long.
        try handle.check()
        let (request, (attempt, interceptors)) = (history.request, intercepted(history))
        guard !interceptors.isEmpty else { return nil }
        // A large response that is not a refusal is wanted: it would soon take back its place, and
        // meanwhile another one would have begun.
        let isRefusal = outcome.response.map { 400..<500 ~= $0.status.code } ?? false
        let place = isRefusal ? channel.map { ReleasedPlace(of: $0) } : nil
        let result = await call { () -> RetryResult in
            for interceptor in interceptors {
                let result = await interceptor.retry(request, dueTo: outcome, for: attempt)
                if case .doNotRetry = result { continue }
                return result
            }
            return .doNotRetry
        }
        try handle.check()
        var wait = Duration.zero
        switch result {
        case .retry: break
        case .retryWithDelay(let delay):
            guard delay < session.configuration.resourceTimeout - handle.elapsed else {
                place?.takeBack()
                return nil
            }
            wait = delay
        case .doNotRetry:
            place?.takeBack()
            return nil
        case .doNotRetryWithError(let error):
            history.isGivenUp = true
            throw error as? ClientError
                ?? ClientError(
                    .requestRetryFailed, "the request is not sent again: \(error)", of: request,
                    underlying: error)
        }
        history.counts.interceptorRetries += 1
        history.cause = .retry
        report(.retried(request, after: wait))
        return wait
    }
}

extension ClientError {
    /// Whether the task ends, whatever an interceptor says.
    fileprivate var endsTask: Bool { reason == .cancelled || reason == .sessionInvalidated }
}
