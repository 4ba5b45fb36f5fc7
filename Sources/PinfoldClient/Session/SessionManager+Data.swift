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
            return try await follow(request, content, options)
        } catch {
            options.progress?.finished()
            throw error
        }
    }

    private func follow(
        _ first: HTTPRequest, _ firstContent: RequestContent?, _ options: RequestOptions
    ) async throws(ClientError) -> StreamedResponse {
        let rule = options.redirects ?? configuration.redirects
        var (request, content) = (completed(first, options), firstContent)
        var metrics = TaskMetrics()
        for count in 1... {
            if Task.isCancelled { throw ClientError.cancelled().about(request) }
            let channel = try transfer(request, content, options)
            let head: ReceivedHead
            do throws(ClientError) { head = try await channel.head() } catch {
                throw error.about(request)
            }
            let guardian = ChannelGuard(channel)
            guard
                let next = try await rule.proposed(
                    after: request, content, head.response, count: count)
            else {
                return StreamedResponse(
                    head: head.response, request: request, guardian, head.metrics, metrics,
                    options.progress)
            }
            metrics.transactions.append(
                .init(head.metrics, url: request.url, status: head.response.status.code))
            // What has come in one piece has ended, and its connection is used again. Anything
            // longer would hold a place that the next request may be waiting for.
            channel.cancel()
            guardian.isDone()
            (request, content) = next
        }
        throw ClientError(.tooManyRedirects, "too many redirects", of: request)
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

extension RedirectRule {
    /// What follows on a response; nil: it is the one that was asked for.
    func proposed(
        after request: HTTPRequest, _ content: RequestContent?, _ response: HTTPResponse,
        count: Int
    ) async throws(ClientError) -> (HTTPRequest, RequestContent?)? {
        guard followsAny, let (proposed, keepsContent) = try Self.next(after: request, response)
        else {
            return nil
        }
        var next = proposed
        if let hook {
            let proposal = Proposal(
                request: request, response: response, next: proposed, count: count)
            guard let chosen = await hook(proposal) else { return nil }
            next = chosen
        }
        guard count <= maximum else {
            throw ClientError(
                .tooManyRedirects, "more than \(maximum) redirects", of: request)
        }
        guard keepsContent, let content else { return (next, nil) }
        guard content.isRepeatable else {
            throw ClientError(
                .contentNotRepeatable,
                "the redirect asks for the content again, which can be read only once",
                of: request)
        }
        return (next, content)
    }
}
