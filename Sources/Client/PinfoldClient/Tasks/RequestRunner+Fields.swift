import HTTPTypes

// What a session keeps for the origins of its requests.
extension RequestRunner {
    /// A request as it is sent, with what the session adds for its URL. Called before each attempt;
    /// redirects and retries begin with the request that was given.
    func prepared(
        _ request: HTTPRequest, _ content: RequestContent?, _ authentication: TaskAuthentication?
    ) -> HTTPRequest {
        let prepared = authentication?.prepared(request, content) ?? request
        return cookies?.prepared(prepared) ?? prepared
    }

    /// The head of each response, redirects and challenges included.
    ///
    /// - Parameter request: As it was sent.
    func received(
        _ head: ReceivedHead, for request: HTTPRequest, _ authentication: TaskAuthentication?
    ) {
        if head.marks.contains(.authenticationInfo) { authentication?.received(head.response) }
        if head.marks.contains(.setCookie) {
            cookies?.received(head.response, for: request, cache: head.metrics.cache)
        }
    }

    /// What answers the challenges of this task.
    ///
    /// - Parameter request: What is asked for now.
    func authentication(for request: HTTPRequest) -> TaskAuthentication {
        TaskAuthentication(
            session.credentials, hook: session.configuration.challenges,
            answersOrigin: session.configuration.answersOrigin, task: handle.identifier,
            asking: request)
    }

    /// What is asked for after a challenge; nil: the response with the challenge is the task's.
    func answer(
        to challenger: NextStep.Challenger, _ request: HTTPRequest, _ response: HTTPResponse,
        _ content: RequestContent?, _ authentication: TaskAuthentication
    ) async throws(ClientError) -> HTTPRequest? {
        switch challenger {
        case .server: return try await authentication.answer(to: response, content, proxy: nil)
        case .proxy(let isTunnel):
            guard let proxy = try session.askingProxy(of: request, forTunnel: isTunnel, options)
            else { return nil }
            return try await authentication.answer(to: response, content, proxy: proxy)
        }
    }
}
