public import HTTPTypes

// Responses into files.
extension SessionManager {
    /// Downloads to a file: what AFNetworking's `downloadTaskWithRequest:` does.
    ///
    ///     let response = try await session.download(
    ///         HTTPRequest(.get, "https://example.com/image.iso"), to: "image.iso")
    ///
    /// The content is written to a partial file, and that gets the destination's name when all of
    /// it is there and on the disk: whoever looks finds the whole file, or none. Content is read
    /// from the server no faster than the disk takes it.
    ///
    /// The request asks for content that is not coded, unless it has an Accept-Encoding of its own.
    ///
    /// - Parameters:
    ///   - request: As for ``response(for:content:options:)``.
    ///   - content: What is sent with it; nil: nothing.
    ///   - destination: Where the file goes.
    ///   - options: How it is written.
    /// - Throws: ``ClientError``, whose ``ClientError/underlying`` is a ``DownloadFailure``. Its
    ///   ``ClientError/resumeData`` is there where the download can go on.
    public func download(
        _ request: HTTPRequest, content: RequestContent? = nil, to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions()
    ) async throws(ClientError) -> DownloadResponse {
        let handle = TaskHandle(request, registry, options.request.progress)
        var download = Download(self, handle, content, to: destination, options)
        return try await download.run()
    }

    /// Goes on with a download that failed or was cancelled.
    ///
    /// The server is asked for the rest on the condition that nothing has changed (If-Range); else
    /// it sends the whole, and the file is written anew. So it is, too, where the partial file or
    /// the resume data beside it is gone.
    ///
    /// - Parameters:
    ///   - data: What the download has left.
    ///   - fields: Fields that the request needs beside those that the resume data keeps, such as
    ///     credentials.
    ///   - destination: As for ``download(_:content:to:options:)``, as is what follows.
    public func download(
        resuming data: ResumeData, fields: HTTPFields = [:], to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions()
    ) async throws(ClientError) -> DownloadResponse {
        let handle = TaskHandle(
            try data.request(with: fields), registry, options.request.progress)
        var download = Download(self, handle, nil, to: destination, options, resuming: data)
        return try await download.run()
    }

    /// A download whose outcome a completion handler is given. It is to be begun:
    /// ``SessionTask/resume()``.
    ///
    /// - Parameters:
    ///   - request: As for ``download(_:content:to:options:)``, as are the following.
    ///   - progress: As for ``dataTask(for:content:options:progress:completion:)``.
    ///   - completion: Called once.
    public func downloadTask(
        _ request: HTTPRequest, content: RequestContent? = nil, to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (TransferProgress.Value) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DownloadResponse, ClientError>) -> Void
    ) -> SessionTask<DownloadResponse> {
        downloadTask(request, content, to: destination, options, nil, progress, completion)
    }

    /// The rest of a download, whose outcome a completion handler is given. See
    /// ``download(resuming:fields:to:options:)``. What was there before counts as received as soon
    /// as the server goes on behind it.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` where fields and resume
    ///   data make no request.
    public func downloadTask(
        resuming data: ResumeData, fields: HTTPFields = [:], to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (TransferProgress.Value) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DownloadResponse, ClientError>) -> Void
    ) throws(ClientError) -> SessionTask<DownloadResponse> {
        downloadTask(
            try data.request(with: fields), nil, to: destination, options, data, progress,
            completion)
    }

    private func downloadTask(
        _ request: HTTPRequest, _ content: RequestContent?, to destination: DownloadDestination,
        _ options: DownloadOptions, _ data: ResumeData?,
        _ told: (@Sendable (TransferProgress.Value) -> Void)?,
        _ completion: @escaping @Sendable (Result<DownloadResponse, ClientError>) -> Void
    ) -> SessionTask<DownloadResponse> {
        var options = options
        let progress = options.request.progress ?? TransferProgress()
        options.request.progress = progress
        if let told { progress.tell(on: callbacks, told) }
        let control = DownloadControl()
        return SessionTask(
            request, progress, registry, callbacks, completion, download: control
        ) { [self, options] handle in
            await Result { () async throws(ClientError) in
                var download = Download(
                    self, handle, content, to: destination, options, resuming: data, control)
                return try await download.run()
            }
        }
    }
}

extension SessionTask where Output == DownloadResponse {
    /// Ends the download, and leaves what is there of it: the completion handler is given an error
    /// with ``ClientError/Reason/cancelled`` and ``ClientError/resumeData``, which is nil where the
    /// server named nothing by which it could go on, or nothing had arrived.
    public func cancelProducingResumeData() {
        download?.produceResumeData()
        cancel()
    }
}

extension ResumeData {
    /// The request that brings the rest.
    func request(with fields: HTTPFields) throws(ClientError) -> HTTPRequest {
        var request = try HTTPRequest(method, url, fields: self.fields)
        for field in fields { request.headerFields[field.name] = nil }
        for field in fields { request.headerFields.append(field) }
        return request
    }
}
