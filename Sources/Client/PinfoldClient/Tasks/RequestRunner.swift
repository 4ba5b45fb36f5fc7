import ContentCoding
import HTTPTypes

/// Carries out a task of a session.
///
///     turn ──► prepared ──► transfer ──► head ──► received ──► step ──► finish, fail
///      ▲                                                        │
///      └──── redirect (hook) · authenticate · retry (wait) ◄────┘
///
/// What to do after an attempt is decided by ``AttemptRules``, a value; this class carries it out.
final class RequestRunner: Sendable {
    let session: SessionManager
    let options: RequestOptions
    let handle: TaskHandle
    /// The task's first request.
    let request: HTTPRequest
    /// The part that this request is, or `nil` if it is the task's only request.
    private let part: TaskPart?
    /// Whether other requests of the same task may follow. The caller then reports the end of the
    /// task.
    var isPart: Bool { part != nil }
    /// The task's cookies, or `nil` if it neither sends nor stores any.
    let cookies: TaskCookies?
    /// The interceptors of the request and of the session, in this order.
    let interceptors: [any RequestInterceptor]
    /// How often each of them has had the request sent again, or `nil` if there are none.
    let tally: RetryTally?

    /// The head of a response, whose content may follow.
    private struct Arrival {
        let head: HTTPResponse
        let status: Int
        let marks: FieldMarks
        /// Whether nothing of the request's content was read.
        let hasContentLeft: Bool
        let record: AttemptRecord
    }

    /// - Parameter part: The part of a task that sends several requests, or `nil` for the task's
    ///   only request.
    init(
        session: SessionManager, options: RequestOptions, handle: TaskHandle,
        part: TaskPart? = nil
    ) {
        self.session = session
        self.options = options
        self.handle = handle
        let request = part?.request ?? handle.request
        self.request = request
        self.part = part
        cookies =
            options.handlesCookies
            ? session.configuration.cookies.map { TaskCookies($0, first: request) } : nil
        let interceptors = Self.interceptors(session.configuration, options)
        self.interceptors = interceptors
        tally = interceptors.isEmpty ? nil : RetryTally()
    }

    // MARK: Tasks

    /// Runs up to the head of the response. The task ends when the content has been read or is
    /// released.
    func response(_ content: RequestContent?) async throws(ClientError) -> StreamedResponse {
        try await carryOut(content) { [handle, isPart] (arrival) throws(ClientError) in
            let (head, record) = (arrival.head, arrival.record)
            let decoder = try decoder(arrival)
            let guardian = ResponseGuard(record.channel) { error in
                guard !isPart else { return }
                // For a HEAD request, the response is complete.
                let error = Self.hasContent(arrival.head, to: record.request) ? error : nil
                handle.complete(
                    TaskCompletion(
                        task: handle.identifier, request: record.request, response: head,
                        error: error?.about(record.request),
                        metrics: record.metrics(status: arrival.status)))
            }
            handle.hasResponse(guardian)
            return StreamedResponse(head: head, record, guardian, decoder)
        }
    }

    /// Runs up to the end of the response. An interrupted response counts as none, because nobody
    /// has seen it.
    func data(
        _ content: RequestContent?, atMost maximum: Int
    ) async throws(ClientError) -> DataResponse {
        try await carryOut(content) { [handle] (arrival) throws(ClientError) in
            let response = try await collected(arrival, atMost: maximum)
            handle.complete(
                TaskCompletion(
                    task: handle.identifier, request: response.request, response: response.head,
                    error: nil, metrics: response.metrics))
            return response
        }
    }

    private func collected(
        _ arrival: Arrival, atMost maximum: Int
    ) async throws(ClientError) -> DataResponse {
        let (head, record) = (arrival.head, arrival.record)
        let decoder = try decoder(arrival)
        if decoder == nil, let whole = record.channel.wholePart(atMost: maximum) {
            return DataResponse(
                head: head, content: whole.bytes, request: record.request,
                metrics: record.metrics(status: arrival.status, whole.times),
                trailers: whole.trailers)
        }
        let response = StreamedResponse(head: head, record, ResponseGuard(record.channel), decoder)
        let bytes = try await response.content.collect(atMost: maximum)
        try handle.check()
        return DataResponse(
            head: response.head, content: bytes, request: response.request,
            metrics: response.metrics, trailers: response.trailers)
    }

    /// Returns the decoder of a response, or `nil` if the content is passed on unchanged.
    private func decoder(_ arrival: Arrival) throws(ClientError) -> ContentDecoder? {
        guard arrival.marks.contains(.contentEncoding),
            options.decodesContent ?? session.configuration.decodesContent,
            let codings = ContentDecoding.codings(of: arrival.head, to: arrival.record.request)
        else { return nil }
        do throws(ContentCodingError) { return try ContentDecoder(codings) } catch {
            throw ClientError(error)
        }
    }

    private func carryOut<Output: Sendable>(
        _ content: RequestContent?, _ finish: (Arrival) async throws(ClientError) -> Output
    ) async throws(ClientError) -> Output {
        handle.begin()
        if let tracer = session.configuration.tracer { handle.trace(by: tracer) }
        var (first, content) = (session.completed(request, options), content)
        if let compression = options.compression {
            do throws(ClientError) {
                (first, content) = try compression.applied(to: first, content)
            } catch {
                if !isPart { handle.complete(TaskCompletion(of: handle, error: error)) }
                throw error
            }
        }
        var history = RequestHistory(
            request: first, content: content,
            cause: part?.cause ?? .task, counts: AttemptCounts(retries: part?.retries ?? 0),
            metrics: TaskMetrics(task: handle.identifier))
        if !interceptors.isEmpty { history.unadapted = history.request }
        do throws(ClientError) {
            while true {
                if let output = try await runAttempt(&history, finish) { return output }
            }
        } catch {
            var error = error.about(history.request)
            error.wasNotProcessed = error.isBeforeSending && !history.mayBeProcessed
            guard !isPart else {
                part?.failedMetrics.withLock { $0 = history.metrics }
                throw error
            }
            handle.complete(
                TaskCompletion(
                    task: handle.identifier, request: history.request, response: history.response,
                    error: error, metrics: history.metrics))
            throw error
        }
    }

    /// Makes an attempt and carries out the next step, unless an interceptor has the request sent
    /// again. Returns `nil` if another attempt follows.
    private func runAttempt<Output: Sendable>(
        _ history: inout RequestHistory, _ finish: (Arrival) async throws(ClientError) -> Output
    ) async throws(ClientError) -> Output? {
        var result: Result<Arrival, ClientError>?
        do throws(ClientError) {
            let attempted = try await attempt(&history)
            result = attempted
            return try await conclude(attempted, &history, finish)
        } catch {
            let outcome = RequestOutcome(response: (try? result?.get())?.head, error: error)
            guard let wait = try await delay(dueTo: outcome, nil, &history) else { throw error }
            if case .success(let arrival) = result { leave(arrival, &history) }
            try await handle.turn(after: wait)
            return nil
        }
    }

    /// Carries out the next step. Returns `nil` if that is another attempt.
    private func conclude<Output: Sendable>(
        _ result: Result<Arrival, ClientError>, _ history: inout RequestHistory,
        _ finish: (Arrival) async throws(ClientError) -> Output
    ) async throws(ClientError) -> Output? {
        var isFinal = false
        switch (step(after: result, history), result) {
        case (.fail(let error), _):
            if case .success(let arrival) = result { leave(arrival, &history) }
            throw error
        case (.retry(let wait), _):
            if case .success(let arrival) = result { leave(arrival, &history) }
            try await retry(after: wait, &history)
        case (.resend, _):
            history.counts.resends += 1
            (history.cause, history.needsFreshConnection) = (.resend, true)
        case (.resendUnasked, .success(let arrival)):
            history.counts.refusedExpectations += 1
            history.cause = .expectation
            leave(arrival, &history)
        case (.redirect(let target), .success(let arrival)):
            isFinal = try await !follow(target, arrival, &history)
        case (.authenticate(let challenger), .success(let arrival)):
            isFinal = try await !answer(
                challenger, arrival.head, arrival.record.channel, &history)
            if !isFinal { leave(arrival, &history) }
        case (.authenticate(let challenger), .failure(var error)):
            guard let response = error.proxyResponse,
                try await answer(challenger, response, nil, &history)
            else {
                if let unreadable = error.proxyResponse.flatMap(ChallengeSource.error(ofProxy:)) {
                    error.explanation += "; \(unreadable)"
                }
                throw error
            }
        case (.finish, .success): isFinal = true
        case (_, .failure(let error)): throw error
        }
        guard isFinal, case .success(let arrival) = result else { return nil }
        // A hook may have returned after the end.
        try handle.check()
        if history.unadapted != nil,
            let wait = try await delay(
                dueTo: RequestOutcome(response: arrival.head), arrival.record.channel, &history)
        {
            leave(arrival, &history)
            try await handle.turn(after: wait)
            return nil
        }
        do throws(ClientError) { return try await finish(arrival) } catch {
            leave(arrival, &history)
            report(.failed(error.about(history.request), of: history.request))
            guard case .retry(let wait) = step(after: .failure(error), history) else { throw error }
            try await retry(after: wait, &history)
            return nil
        }
    }

    // MARK: Steps

    private func attempt(
        _ history: inout RequestHistory
    ) async throws(ClientError) -> Result<Arrival, ClientError> {
        var elapsed = Task.isCancelled ? nil : handle.elapsedIfRunning
        if elapsed == nil {
            try await handle.turn()
            elapsed = handle.elapsed
        }
        if history.unadapted != nil {
            try await adapt(&history)
            // It may have taken long, and the task may be suspended.
            try await handle.turn()
            elapsed = handle.elapsed
        }
        let remainingTime = session.configuration.resourceTimeout - (elapsed ?? .zero)
        var sent = prepared(&history)
        if session.configuration.tracer != nil { handle.span?.inject(into: &sent.headerFields) }
        guard remainingTime > .zero else {
            history.isGivenUp = true
            throw .tookLonger(
                than: session.configuration.resourceTimeout, history.request)
        }
        let channel = try session.transfer(
            sent, history.content, options, history.authentication,
            remainingTime: remainingTime,
            fresh: history.needsFreshConnection,
            expecting: history.counts.refusedExpectations == 0)
        handle.attach(channel)
        report(.sent(sent, cause: history.cause))
        let record = AttemptRecord(
            request: history.request, cause: history.cause, channel: channel,
            before: history.metrics)
        let arrived: ReceivedHead
        do throws(ClientError) { arrived = try await channel.head() } catch {
            history.metrics = record.metrics(status: nil)
            report(.failed(error.about(history.request), of: history.request))
            history.mayBeProcessed = history.mayBeProcessed || !error.isBeforeSending
            return .failure(error.about(history.request))
        }
        history.response = arrived.response
        history.mayBeProcessed = true
        // RFC 9110 section 15.5.20: over a different connection.
        history.needsFreshConnection = arrived.status == 421
        received(arrived, for: sent, history.authentication)
        session.registry.report(
            handle.identifier,
            arrivedBy: record.metrics(status: arrived.status, arrived.metrics).transactions.last)
        report(.received(arrived.response, to: history.request))
        return .success(
            Arrival(
                head: arrived.response, status: arrived.status, marks: arrived.marks,
                hasContentLeft: arrived.metrics.withheldContent, record: record))
    }

    /// Returns the request of the next attempt as it is sent.
    private func prepared(_ history: inout RequestHistory) -> HTTPRequest {
        if history.authentication == nil, session.credentials.authenticatesPreemptively {
            history.authentication = authentication(for: history.request)
        }
        return prepared(history.request, history.content, history.authentication)
    }

    private func step(
        after outcome: Result<Arrival, ClientError>, _ history: RequestHistory
    ) -> NextStep {
        // The rules say the same, but most responses do not need them.
        let retries = options.retries ?? session.configuration.retries
        if case .success(let arrival) = outcome, AttemptRules.isFinal(arrival.status, retries) {
            return .finish
        }
        let contentIsLeft = (try? outcome.get())?.hasContentLeft ?? false
        let rules = AttemptRules(session.configuration, options, elapsed: handle.elapsed)
        var generator = SystemRandom()
        return rules.step(
            after: outcome.map(\.head), of: history.request,
            unadapted: history.withoutAdaptedFields,
            hasRepeatableContent: contentIsLeft || history.content?.isRepeatable ?? true,
            history.counts,
            using: &generator)
    }

    private func retry(
        after wait: Duration, _ history: inout RequestHistory
    ) async throws(ClientError) {
        history.counts.retries += 1
        history.cause = .retry
        report(.retried(history.request, after: wait))
        try await handle.turn(after: wait)
    }

    /// Returns `false` if the redirect itself is the response.
    private func follow(
        _ target: RedirectRule.Target, _ arrival: Arrival, _ history: inout RequestHistory
    ) async throws(ClientError) -> Bool {
        var next = target.request
        let rule = options.redirects ?? session.configuration.redirects
        if let hook = rule.hook {
            let proposal = RedirectRule.Proposal(
                request: history.request, response: arrival.head, next: next,
                count: history.counts.redirects + 1)
            let place = ReleasedPlace(of: arrival.record.channel)
            guard let chosen = await handle.call({ await hook(proposal) }) else {
                place.takeBack()
                return false
            }
            next = chosen
        }
        leave(arrival, &history)
        guard next.hasHTTPURL else {
            let url = next.authority == nil ? "\(next.scheme ?? ""):\(next.url)" : next.url
            throw ClientError(
                .redirectRefused,
                "the redirect to \(ClientError.shown(url)) is not to an http or https URL "
                    + "without credentials", of: history.request)
        }
        guard
            !target.keepsContent || arrival.hasContentLeft || history.content?.isRepeatable ?? true
        else {
            throw ClientError(
                .contentNotRepeatable,
                "the redirect requires the content again, which can be read only once",
                of: history.request)
        }
        if !target.keepsContent { history.content = nil }
        history.counts.redirects += 1
        (history.counts.challenges, history.counts.resends) = (0, 0)
        (history.request, history.cause) = (next, .redirect)
        if history.unadapted != nil { history.unadapted = next }
        report(.redirected(to: next, by: arrival.head))
        return true
    }

    /// Returns `false` if the task gets the response with the challenge.
    ///
    /// - Parameter channel: The channel with the rest of the response, or `nil` if there is none.
    private func answer(
        _ challenger: NextStep.Challenger, _ response: HTTPResponse, _ channel: TransferChannel?,
        _ history: inout RequestHistory
    ) async throws(ClientError) -> Bool {
        let authentication = history.authentication ?? authentication(for: history.request)
        history.authentication = authentication
        let (request, content) = (history.request, history.content)
        let place = channel.map { ReleasedPlace(of: $0) }
        let answered = await handle.call { [self] in
            await Result { () async throws(ClientError) in
                try await answer(to: challenger, request, response, content, authentication)
            }
        }
        try handle.check()
        guard let next = try answered.get() else {
            place?.takeBack()
            return false
        }
        history.counts.challenges += 1
        (history.request, history.cause) = (next, .challenge)
        report(.challenged(next, by: response))
        return true
    }

    func report(_ event: @autoclosure () -> RequestEvent) {
        session.registry.report(handle.identifier, event())
    }

    /// Continues without the rest of a response.
    private func leave(_ arrival: Arrival, _ history: inout RequestHistory) {
        history.metrics = arrival.record.metrics(status: arrival.status)
        // A response that arrived in one piece has ended, and its connection is reused. A longer
        // one would occupy a slot for which the next request may be waiting.
        arrival.record.channel.cancel()
    }

    /// Whether content may follow a head (RFC 9110 section 6.4.1).
    private static func hasContent(_ head: HTTPResponse, to request: HTTPRequest) -> Bool {
        request.method != .head && head.status.code != 204 && head.status.code != 304
            && head.contentLength != 0
    }
}
