public import HTTPTypes

// Requests as asynchronous calls.
extension SessionManager {
    /// Sends a request, follows its redirects, and returns when the head of the response has
    /// arrived.
    ///
    /// Read the content by iterating over ``StreamedResponse/content``. If the response is released
    /// unread, it is cancelled. Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: The request. Its scheme, authority and path determine where it is sent.
    ///   - content: The content of the request, or `nil` for none.
    ///   - options: Options for the request.
    /// - Throws: ``ClientError``. No status is an error.
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

    /// The maximum size of collected content.
    func maximumContentBytes(_ options: RequestOptions) -> Int {
        options.maximumContentBytes ?? configuration.maximumContentBytes
    }

    /// Sends a request, and collects the content of its response in memory.
    ///
    /// - Parameters: See ``response(for:content:options:)``.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/contentTooLong`` if the content is
    ///   longer than ``RequestOptions/maximumContentBytes``. The rest is discarded at once.
    public func data(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: RequestOptions = RequestOptions()
    ) async throws(ClientError) -> DataResponse {
        try await runner(request, options).data(content, atMost: maximumContentBytes(options))
    }
}
