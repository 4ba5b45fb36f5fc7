public import HTTPTypes

/// A request whose outcome a completion handler is given: what `NSURLSessionDataTask` is.
///
/// It is suspended once when it is made, and begins with ``resume()``. The completion handler is
/// called exactly once, where the session's ``SessionConfiguration/callbacks`` say; whatever
/// becomes of the session meanwhile.
public final class SessionTask<Output: Sendable>: Sendable {
    /// What it is doing.
    public typealias State = TaskState

    /// What can be done to it.
    public let handle: TaskHandle
    /// How far it is.
    public let progress: TransferProgress
    /// What is wanted of a download that is cancelled; nil for any other task.
    let download: DownloadControl?

    /// - Parameter work: What it does; it ends by calling ``TaskHandle/complete(_:)``, if it calls
    ///   that at all.
    init(
        _ request: HTTPRequest, _ progress: TransferProgress, _ registry: TaskRegistry,
        _ callbacks: CallbackLine,
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

    /// No other task has it.
    public var identifier: TaskIdentifier { handle.identifier }

    /// What was asked for.
    public var request: HTTPRequest { handle.request }

    /// What it is doing now.
    public var state: TaskState { handle.state }

    /// Begins, or goes on, when it was called as often as ``suspend()``, and once more to begin.
    public func resume() { handle.resume() }

    /// See ``TaskHandle``.
    public func suspend() { handle.suspend() }

    /// Ends it, with ``ClientError/Reason/cancelled`` for the completion handler, whether it had
    /// begun or not. Nothing happens to one that is completed.
    public func cancel() { handle.cancel() }
}

extension SessionManager {
    /// A task that collects the content of the response in memory. It is to be begun:
    /// ``SessionTask/resume()``.
    ///
    /// - Parameters:
    ///   - request: As for ``data(for:content:options:)``, as are the following.
    ///   - progress: Is told how far it is, where completion handlers are called. Of values that
    ///     change faster than they are taken, the latest is told; the last one is the finished one,
    ///     before the completion handler is called.
    ///   - completion: Gets the response or the error.
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

    /// - Parameter read: Makes of the response what the completion handler gets.
    func dataTask<Output: Sendable>(
        _ request: HTTPRequest, _ content: RequestContent?, _ options: RequestOptions,
        _ progress: (@Sendable (TransferProgress.Value) -> Void)?,
        _ completion: @escaping @Sendable (Result<Output, ClientError>) -> Void,
        read: @escaping @Sendable (DataResponse) throws(ClientError) -> Output
    ) -> SessionTask<Output> {
        var options = options
        let own = options.progress ?? TransferProgress()
        options.progress = own
        if let progress { own.tell(on: callbacks, progress) }
        return SessionTask(request, own, registry, callbacks, completion) {
            [self, options] handle in
            await Result { () async throws(ClientError) in
                let runner = RequestRunner(session: self, options: options, handle: handle)
                return try read(
                    try await runner.data(content, atMost: maximumContentBytes(options)))
            }
        }
    }

    /// A task that sends content, a file's for example, and collects the response in memory. See
    /// ``dataTask(for:content:options:progress:completion:)``.
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
    /// What a call that waits returns or throws.
    init(_ work: @Sendable () async throws(ClientError) -> Success) async {
        do throws(ClientError) { self = .success(try await work()) } catch {
            self = .failure(error)
        }
    }
}
