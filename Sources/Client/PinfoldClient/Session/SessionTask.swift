public import HTTPTypes

/// A request with a completion handler. This corresponds to `NSURLSessionDataTask`.
///
/// A new task is suspended, and starts with ``resume()``. The completion handler is called exactly
/// once, where the session's ``SessionConfiguration/callbacks`` says, whatever happens to the
/// session in the meantime.
public final class SessionTask<Output: Sendable>: Sendable {
    /// The state of a task.
    public typealias State = TaskState

    /// Controls the task.
    public let handle: TaskHandle
    /// The progress of the transfer.
    public let progress: TransferProgress
    /// What to keep of a cancelled download, or `nil` for any other task.
    let download: DownloadControl?

    /// - Parameter work: The task's work. It ends by calling ``TaskHandle/complete(_:)``, if at
    ///   all.
    init(
        _ request: HTTPRequest, _ progress: TransferProgress, _ registry: TaskRegistry,
        _ callbacks: CallbackQueue,
        _ completion: @escaping @Sendable (Result<Output, ClientError>) -> Void,
        download: DownloadControl? = nil,
        work: @escaping @Sendable (TaskHandle) async -> Result<Output, ClientError>
    ) {
        self.progress = progress
        self.download = download
        handle = TaskHandle(
            request, registry, progress,
            work: TaskHandle.Work { handle in
                let result = await work(handle)
                callbacks.run { completion(result) }
            } refuse: { error in
                callbacks.run { completion(.failure(error)) }
            })
    }

    /// The unique identifier of the task.
    public var identifier: TaskIdentifier { handle.identifier }

    /// The task's first request.
    public var request: HTTPRequest { handle.request }

    /// The current state.
    public var state: TaskState { handle.state }

    /// Starts or continues the task. It must be called once to start the task, and once for each
    /// call of ``suspend()``.
    public func resume() { handle.resume() }

    /// Suspends the task. See ``TaskHandle``.
    public func suspend() { handle.suspend() }

    /// Cancels the task, whether or not it has started. Its completion handler receives
    /// ``ClientError/Reason/cancelled``. Has no effect on a completed task.
    public func cancel() { handle.cancel() }
}

extension SessionManager {
    /// Creates a task that collects the content of the response in memory. Start it with
    /// ``SessionTask/resume()``.
    ///
    /// - Parameters:
    ///   - request: The request; see ``data(for:content:options:)``, as for the next two
    ///     parameters.
    ///   - progress: Receives the progress, where completion handlers are called. If values change
    ///     faster than they can be delivered, only the latest one is. The last value is the
    ///     finished one, before the completion handler is called.
    ///   - completion: Receives the response or the error.
    public func dataTask(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: RequestOptions = RequestOptions(),
        progress: (@Sendable (TransferProgress.Value) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DataResponse, ClientError>) -> Void
    ) -> SessionTask<DataResponse> {
        dataTask(request, content, options, progress, completion) {
            (response) throws(ClientError) in response
        }
    }

    /// - Parameter read: Converts the response to the completion handler's argument.
    func dataTask<Output: Sendable>(
        _ request: HTTPRequest, _ content: RequestContent?, _ options: RequestOptions,
        _ progress: (@Sendable (TransferProgress.Value) -> Void)?,
        _ completion: @escaping @Sendable (Result<Output, ClientError>) -> Void,
        read: @escaping @Sendable (DataResponse) throws(ClientError) -> Output
    ) -> SessionTask<Output> {
        var options = options
        let own = options.progress ?? TransferProgress()
        options.progress = own
        if let progress { own.report(on: callbacks, progress) }
        return SessionTask(request, own, registry, callbacks, completion) {
            [self, options] handle in
            await Result { () async throws(ClientError) in
                let runner = RequestRunner(session: self, options: options, handle: handle)
                return try read(
                    try await runner.data(content, atMost: maximumContentBytes(options)))
            }
        }
    }

    /// Creates a task that sends content, for example of a file, and collects the response in
    /// memory. See ``dataTask(for:content:options:progress:completion:)``.
    public func uploadTask(
        for request: HTTPRequest, content: RequestContent,
        options: RequestOptions = RequestOptions(),
        progress: (@Sendable (TransferProgress.Value) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DataResponse, ClientError>) -> Void
    ) -> SessionTask<DataResponse> {
        dataTask(
            for: request, content: content, options: options, progress: progress,
            completion: completion)
    }
}

extension Result where Failure == ClientError, Success: Sendable {
    /// Captures what an asynchronous call returns or throws.
    package init(_ work: @Sendable () async throws(ClientError) -> Success) async {
        do throws(ClientError) { self = .success(try await work()) } catch {
            self = .failure(error)
        }
    }
}
