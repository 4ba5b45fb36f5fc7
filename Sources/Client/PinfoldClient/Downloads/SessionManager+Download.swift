public import HTTPTypes

// Downloads to files.
extension SessionManager {
    /// Downloads to a file. This corresponds to AFNetworking's `downloadTaskWithRequest:`.
    ///
    ///     let response = try await session.download(
    ///         HTTPRequest(.get, "https://example.com/image.iso"), to: "image.iso")
    ///
    /// The content is written to a partial file, which gets the destination's name once it is
    /// complete and on disk. So the destination is always either the whole file or absent. Content
    /// is read from the server no faster than it can be written.
    ///
    /// The request asks for unencoded content unless it has an Accept-Encoding field.
    ///
    /// - Parameters:
    ///   - request: The request, as for ``response(for:content:options:)``.
    ///   - content: The content of the request, or `nil` for none.
    ///   - destination: The destination of the file.
    ///   - options: The options for the download.
    /// - Throws: ``ClientError``, whose ``ClientError/underlying`` error is a ``DownloadError``.
    ///   If the download can be resumed, ``ClientError/resumeData`` is not `nil`.
    public func download(
        _ request: HTTPRequest, content: RequestContent? = nil, to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions()
    ) async throws(ClientError) -> DownloadResponse {
        let handle = TaskHandle(request, registry, options.request.progress)
        var download = Download(self, handle, content, to: destination, options)
        return try await download.run()
    }

    /// Resumes a download that failed or was cancelled.
    ///
    /// The server is asked for the rest on the condition that nothing has changed (If-Range). If it
    /// has, the server sends the whole content, and the file is written from the beginning. The
    /// same happens if the partial file or the resume data beside it is missing.
    ///
    /// - Parameters:
    ///   - data: The resume data of the earlier download.
    ///   - fields: Additional fields for the request, which the resume data does not contain, such
    ///     as credentials.
    ///   - destination: As for ``download(_:content:to:options:)``, like the following parameters.
    public func download(
        resuming data: ResumeData, fields: HTTPFields = [:], to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions()
    ) async throws(ClientError) -> DownloadResponse {
        let handle = TaskHandle(
            try data.request(with: fields), registry, options.request.progress)
        var download = Download(self, handle, nil, to: destination, options, resuming: data)
        return try await download.run()
    }

    /// Creates a download task with a completion handler. Start it with ``SessionTask/resume()``.
    ///
    /// - Parameters:
    ///   - request: As for ``download(_:content:to:options:)``, like the following parameters.
    ///   - progress: As for ``dataTask(for:content:options:progress:completion:)``.
    ///   - completion: The completion handler, which is called once.
    public func downloadTask(
        _ request: HTTPRequest, content: RequestContent? = nil, to destination: DownloadDestination,
        options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (TransferProgress.Value) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DownloadResponse, ClientError>) -> Void
    ) -> SessionTask<DownloadResponse> {
        downloadTask(request, content, to: destination, options, nil, progress, completion)
    }

    /// Creates a task with a completion handler that resumes a download. See
    /// ``download(resuming:fields:to:options:)``. The bytes that are already there count as
    /// received as soon as the server continues after them.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if fields and resume
    ///   data do not form a valid request.
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
        _ onProgress: (@Sendable (TransferProgress.Value) -> Void)?,
        _ completion: @escaping @Sendable (Result<DownloadResponse, ClientError>) -> Void
    ) -> SessionTask<DownloadResponse> {
        var options = options
        let progress = options.request.progress ?? TransferProgress()
        options.request.progress = progress
        if let onProgress { progress.report(on: callbacks, onProgress) }
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
    /// Cancels the download and keeps what has been downloaded. The completion handler gets an
    /// error with ``ClientError/Reason/cancelled`` and ``ClientError/resumeData``, which is `nil`
    /// if the server provided no validator or nothing had arrived.
    public func cancelProducingResumeData() {
        download?.produceResumeData()
        cancel()
    }
}

extension ResumeData {
    /// Returns the request for the rest.
    func request(with fields: HTTPFields) throws(ClientError) -> HTTPRequest {
        var request = try HTTPRequest(method, url, fields: self.fields)
        for field in fields { request.headerFields[field.name] = nil }
        for field in fields { request.headerFields.append(field) }
        return request
    }
}
