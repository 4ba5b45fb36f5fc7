import HTTPTypes

// Cookies and credentials for a task's requests.
extension RequestRunner {
    /// Returns a request as it is sent, including what the session adds for its URL. Called before
    /// each attempt; redirects and retries start from the original request.
    func prepared(
        _ request: HTTPRequest, _ content: RequestContent?, _ authentication: TaskAuthentication?
    ) -> HTTPRequest {
        let prepared = authentication?.prepared(request, content) ?? request
        return cookies?.prepared(prepared) ?? prepared
    }

    /// Processes the head of each response, including redirects and challenges.
    ///
    /// - Parameter request: The request as it was sent.
    func received(
        _ head: ReceivedHead, for request: HTTPRequest, _ authentication: TaskAuthentication?
    ) {
        if head.marks.contains(.authenticationInfo) { authentication?.received(head.response) }
        if head.marks.contains(.setCookie) {
            cookies?.received(head.response, for: request, cache: head.metrics.cache)
        }
    }

    /// Returns the authentication state of this task.
    ///
    /// - Parameter request: The current request.
    func authentication(for request: HTTPRequest) -> TaskAuthentication {
        TaskAuthentication(
            session.credentials, hook: session.configuration.challenges,
            answersOrigin: session.configuration.answersOrigin, task: handle.identifier,
            asking: request)
    }

    /// Returns the request that follows a challenge, or `nil` if the task gets the response.
    func answer(
        to challenger: NextStep.Challenger, _ request: HTTPRequest, _ response: HTTPResponse,
        _ content: RequestContent?, _ authentication: TaskAuthentication
    ) async throws(ClientError) -> HTTPRequest? {
        switch challenger {
        case .server: return try await authentication.answer(to: response, content, proxy: nil)
        case .proxy(let isTunnel):
            guard
                let proxy = try session.challengingProxy(of: request, forTunnel: isTunnel, options)
            else { return nil }
            return try await authentication.answer(to: response, content, proxy: proxy)
        }
    }
}
