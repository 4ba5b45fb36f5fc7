public import HTTPTypes
import Locking

/// A request whose outcome a completion handler is given: what `NSURLSessionDataTask` is.
///
/// It begins with ``resume()``. The completion handler is called exactly once, where the session's
/// ``SessionConfiguration/callbacks`` say; whatever becomes of the session meanwhile.
public final class SessionTask<Output: Sendable>: Sendable {
    public enum State: Sendable, Hashable { case ready, running, completed }

    private enum Phase {
        case ready(@Sendable () async -> Result<Output, ClientError>)
        case running(Task<Void, Never>)
        case completed
    }

    /// What was asked for.
    public let request: HTTPRequest
    /// How far it is.
    public let progress: TransferProgress
    private let phase: Locked<Phase>
    private let callbacks: CallbackLine
    private let completion: @Sendable (Result<Output, ClientError>) -> Void
    /// What is wanted of a download that is cancelled; nil for any other task.
    let download: DownloadControl?

    init(
        _ request: HTTPRequest, _ progress: TransferProgress, _ callbacks: CallbackLine,
        _ completion: @escaping @Sendable (Result<Output, ClientError>) -> Void,
        download: DownloadControl? = nil,
        work: @escaping @Sendable () async -> Result<Output, ClientError>
    ) {
        self.request = request
        self.progress = progress
        self.callbacks = callbacks
        self.completion = completion
        self.download = download
        phase = Locked(.ready(work))
    }

    public var state: State {
        phase.withLock { phase in
            switch phase {
            case .ready: .ready
            case .running: .running
            case .completed: .completed
            }
        }
    }

    /// Begins; once.
    public func resume() {
        phase.withLock { phase in
            guard case .ready(let work) = phase else { return }
            phase = .running(Task { [self] in complete(await work()) })
        }
    }

    /// Ends it, with ``ClientError/Reason/cancelled`` for the completion handler, whether it had
    /// begun or not. Nothing happens to one that is completed.
    public func cancel() {
        let (task, wasReady) = phase.withLock { phase -> (Task<Void, Never>?, Bool) in
            switch phase {
            case .ready:
                // At once, so that it is not begun in between.
                phase = .completed
                return (nil, true)
            case .running(let task): return (task, false)
            case .completed: return (nil, false)
            }
        }
        task?.cancel()
        if wasReady { tell(.failure(ClientError.cancelled().about(request))) }
    }

    private func complete(_ result: Result<Output, ClientError>) {
        let isFirst = phase.withLock { phase in
            if case .completed = phase { return false }
            phase = .completed
            return true
        }
        if isFirst { tell(result) }
    }

    private func tell(_ result: Result<Output, ClientError>) {
        progress.finished()
        callbacks.run { [completion] in completion(result) }
    }
}

extension SessionManager {
    /// A task that collects the content of the response in memory. It is to be begun:
    /// ``SessionTask/resume()``.
    ///
    /// - Parameters:
    ///   - request: As for ``data(for:content:options:)``, as are the following.
    ///   - completion: Gets the response or the error.
    public func dataTask(
        for request: HTTPRequest, content: RequestContent? = nil,
        options: RequestOptions = RequestOptions(),
        completion: @escaping @Sendable (Result<DataResponse, ClientError>) -> Void
    ) -> SessionTask<DataResponse> {
        var options = options
        let progress = options.progress ?? TransferProgress()
        options.progress = progress
        return SessionTask(request, progress, callbacks, completion) { [self, options] in
            await Result { () async throws(ClientError) in
                try await data(for: request, content: content, options: options)
            }
        }
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
