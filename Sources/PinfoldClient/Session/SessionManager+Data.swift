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
        do throws(ClientError) {
            return try await RequestRunner(self, options).response(for: request, content)
        } catch {
            options.progress?.finished()
            throw error
        }
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
        let response = try await response(for: request, content: content, options: options)
        let bytes = try await response.content.collect(
            atMost: options.maximumContentBytes ?? configuration.maximumContentBytes)
        return DataResponse(
            head: response.head, content: bytes, request: response.request,
            metrics: response.metrics)
    }
}
