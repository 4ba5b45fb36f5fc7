import Clocks
import HTTPTypes
import Retries

/// Carries out one task of a session, from the first request to the head of the last response.
///
///     prepared ──► transfer ──► head ──► received ──► step ──► finish, fail
///        ▲                                              │
///        └── redirect (hook) · authenticate · retry ◄───┘
///
/// What follows on an attempt is decided by ``AttemptRules``, a value; this carries it out.
struct RequestRunner: Sendable {
    let session: SessionManager
    let options: RequestOptions
    let task: TaskIdentifier
    /// Answers its challenges.
    let authentication: TaskAuthentication
    /// Nil: it neither sends nor keeps any.
    let cookies: TaskCookies?
    /// When it began, in milliseconds of the monotonic clock.
    private let begun = Clock.monotonicMilliseconds()

    /// What is asked for now, and how it came to that.
    private struct Course {
        var request: HTTPRequest
        var content: RequestContent?
        var counts = AttemptCounts()
        var metrics: TaskMetrics
    }

    /// The head of a response, whose content may follow.
    private struct Arrival {
        let head: ReceivedHead
        /// The request as it was sent.
        let sent: HTTPRequest
        let guardian: ChannelGuard
    }

    /// A task that begins now.
    init(_ session: SessionManager, _ options: RequestOptions) {
        self.session = session
        self.options = options
        task = .next()
        authentication = TaskAuthentication(
            session.credentials, hook: session.configuration.challenges)
        cookies = options.handlesCookies ? session.configuration.cookies.map(TaskCookies.init) : nil
    }

    /// Sends requests until there is the response that the task is for.
    func response(
        for request: HTTPRequest, _ content: RequestContent?
    ) async throws(ClientError) -> StreamedResponse {
        var course = Course(
            request: session.completed(request, options), content: content,
            metrics: TaskMetrics(task: task))
        while true {
            let result = try await attempt(course)
            switch (step(after: result.map(\.head.response), course), result) {
            case (.fail(let error), _): throw error
            case (.retry(let wait), _):
                if case .success(let arrival) = result { leave(arrival, &course) }
                course.counts.retries += 1
                try await pause(wait, course.request)
            case (.redirect(let target), .success(let arrival)):
                guard let next = try await accepted(target, arrival, course) else {
                    return response(arrival, course)
                }
                leave(arrival, &course)
                course.counts.redirects += 1
                course.counts.challenges = 0
                course.request = next
                if !target.keepsContent { course.content = nil }
            case (.authenticate(let challenger), .success(let arrival)):
                let answer = try await answer(
                    to: challenger, arrival.head.response, course.content)
                guard let answer else { return response(arrival, course) }
                leave(arrival, &course)
                course.counts.challenges += 1
                course.request = answer
            case (.finish, .success(let arrival)): return response(arrival, course)
            case (_, .failure(let error)): throw error
            }
        }
    }

    // MARK: Steps

    private func attempt(
        _ course: Course
    ) async throws(ClientError) -> Result<Arrival, ClientError> {
        if Task.isCancelled { throw ClientError.cancelled().about(course.request) }
        let sent = try await prepared(course.request, course.content)
        let left = left
        guard left > .zero else { throw tookTooLong(course.request) }
        let channel = try session.transfer(sent, course.content, options, left: left)
        let head: ReceivedHead
        do throws(ClientError) { head = try await channel.head() } catch {
            return .failure(error.about(course.request))
        }
        received(head, for: sent)
        return .success(Arrival(head: head, sent: sent, guardian: ChannelGuard(channel)))
    }

    private func step(
        after outcome: Result<HTTPResponse, ClientError>, _ course: Course
    ) -> NextStep {
        let rules = AttemptRules(
            redirects: options.redirects ?? session.configuration.redirects,
            retries: options.retries ?? session.configuration.retries, left: left,
            elapsed: elapsed, now: Clock.coarseWallSeconds())
        var generator = SystemRandom()
        return rules.step(
            after: outcome, of: course.request,
            hasRepeatableContent: course.content?.isRepeatable ?? true, course.counts,
            using: &generator)
    }

    /// What is asked for after a redirect; nil: the redirect is the response.
    private func accepted(
        _ target: RedirectRule.Target, _ arrival: Arrival, _ course: Course
    ) async throws(ClientError) -> HTTPRequest? {
        var next = target.request
        let rule = options.redirects ?? session.configuration.redirects
        if let hook = rule.hook {
            let proposal = RedirectRule.Proposal(
                request: course.request, response: arrival.head.response, next: next,
                count: course.counts.redirects + 1)
            guard let chosen = await hook(proposal) else { return nil }
            next = chosen
        }
        guard next.canBeAsked else {
            throw ClientError(
                .redirectRefused,
                "the redirect to \(URIReference.withoutCredentials(next.url)) leads to no http or "
                    + "https URL without credentials", of: course.request)
        }
        guard !target.keepsContent || course.content?.isRepeatable ?? true else {
            throw ClientError(
                .contentNotRepeatable,
                "the redirect asks for the content again, which can be read only once",
                of: course.request)
        }
        return next
    }

    /// Goes on without the rest of a response.
    private func leave(_ arrival: Arrival, _ course: inout Course) {
        course.metrics.transactions.append(
            .init(
                arrival.head.metrics, url: course.request.url,
                status: arrival.head.response.status.code))
        // What has come in one piece has ended, and its connection is used again. Anything
        // longer would hold a place that the next request may be waiting for.
        arrival.guardian.channel.cancel()
        arrival.guardian.isDone()
    }

    private func response(_ arrival: Arrival, _ course: Course) -> StreamedResponse {
        StreamedResponse(
            head: arrival.head.response, request: course.request, arrival.guardian,
            arrival.head.metrics, course.metrics, options.progress)
    }

    // MARK: Time

    /// Since the task began.
    private var elapsed: Duration { .milliseconds(Clock.monotonicMilliseconds() - begun) }

    /// How long the task may still take.
    private var left: Duration { session.configuration.resourceTimeout - elapsed }

    private func tookTooLong(_ request: HTTPRequest) -> ClientError {
        ClientError(
            .timedOut,
            "it took longer than \(session.configuration.resourceTimeout.wholeMilliseconds) ms",
            of: request)
    }

    private func pause(_ wait: Duration, _ request: HTTPRequest) async throws(ClientError) {
        do { try await Task.sleep(for: wait) } catch {
            throw ClientError.cancelled().about(request)
        }
    }
}
