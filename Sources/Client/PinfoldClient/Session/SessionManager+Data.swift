public import HTTPTypes

// Requests as calls that wait.
extension SessionManager {
    /// Sends a request, follows its redirects, and returns when the head of the response is there.
    ///
    /// What comes after the head is read by whoever iterates over ``StreamedResponse/content``; a
    /// response that is let go of unread is cancelled. Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: Its scheme, authority and path say where it goes.
    ///   - content: What is sent with it; nil: nothing.
    ///   - options: What is special about it.
    /// - Throws: ``ClientError``. Any status is a response, and no error.
    public func response(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: RequestOptions = RequestOptions()
    ) async throws(ClientError) -> StreamedResponse {
        try await runner(request, options).response(content)
    }

    private func runner(_ request: HTTPRequest, _ options: RequestOptions) -> RequestRunner {
        RequestRunner(
            session: self, options: options,
            handle: TaskHandle(request, registry, options.progress))
    }

    /// How much content of a response is collected.
    func maximumContentBytes(_ options: RequestOptions) -> Int {
        options.maximumContentBytes ?? configuration.maximumContentBytes
    }

    /// Sends a request, and collects the content of its response in memory.
    ///
    /// - Parameters: as for ``response(for:content:options:)``.
    /// - Throws: ``ClientError``; ``ClientError/Reason/contentTooLong`` where the content is longer
    ///   than ``RequestOptions/maximumContentBytes``: what there is of it is let go of at once.
    public func data(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: RequestOptions = RequestOptions()
    ) async throws(ClientError) -> DataResponse {
        try await runner(request, options).data(content, atMost: maximumContentBytes(options))
    }
}
