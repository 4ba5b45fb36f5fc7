import HTTPTypes

// What a session keeps for the origins of its requests.
extension RequestRunner {
    /// A request as it is sent, with what the session adds for its URL. Called before each attempt;
    /// redirects and retries begin with the request that was given.
    func prepared(
        _ request: HTTPRequest, _ content: RequestContent?
    ) async throws(ClientError) -> HTTPRequest {
        request
    }

    /// The head of each response, redirects and challenges included.
    ///
    /// - Parameter request: As it was sent.
    func received(_ response: HTTPResponse, for request: HTTPRequest) async {}

    /// What is asked for after a challenge; nil: the response with the challenge is the task's.
    ///
    /// - Parameter request: As it was sent.
    func answer(
        to challenger: NextStep.Challenger, _ response: HTTPResponse, of request: HTTPRequest,
        _ content: RequestContent?
    ) async throws(ClientError) -> HTTPRequest? {
        nil
    }
}
