import EventLoop
import HTTPCore
import HTTPTypes
import Locking

/// A download, from its options to the finished file. It sends requests, lets a ``DownloadStep``
/// decide what to do next, and carries that out. Anything that waits for the disk is done by the
/// runtime's writer threads.
struct Download {
    /// The maximum number of requests for one download. Servers may send less than the requested
    /// range.
    static let maximumRequests = 64

    let session: SessionManager
    /// The handle of the task that covers all requests.
    let handle: TaskHandle
    let request: HTTPRequest
    let content: RequestContent?
    let destination: DownloadDestination
    let options: DownloadOptions
    /// The resume data provided by the caller.
    let given: ResumeData?
    let control: DownloadControl?

    /// The destination, once it is known.
    private var path: String?
    var file: PartialFile?
    private var hasSteppedBack = false
    private var head: HTTPResponse?
    /// The last request, after redirects.
    private var last: HTTPRequest?
    private var metrics: TaskMetrics?
    /// The offset at which the first response was written, or `nil` if none was.
    var resumedBytes: Int64?
    /// How many requests were repeated after a failure, and whether the next one is a repetition.
    private var retries = 0
    private var isRetry = false

    init(
        _ session: SessionManager, _ handle: TaskHandle, _ content: RequestContent?,
        to destination: DownloadDestination, _ options: DownloadOptions,
        resuming given: ResumeData? = nil, _ control: DownloadControl? = nil
    ) {
        self.session = session
        self.handle = handle
        self.content = content
        self.destination = destination
        self.given = given
        self.control = control
        var (request, options) = (handle.request, options)
        // A range of encoded content cannot be verified to belong to the same content.
        if !request.headerFields.contains(.acceptEncoding) {
            request.headerFields[.acceptEncoding] = "identity"
        }
        // The file contains the server's bytes, which Content-Range and resume data refer to.
        options.request.decodesContent = false
        options.partialFileDirectory = options.partialFileDirectory.map { FilePaths.absolute($0) }
        self.request = request
        self.options = options
    }

    /// Why the download stops.
    enum StopError: Error {
        case reason(DownloadError.Reason)
        /// The request failed.
        case request(ClientError)
        /// The response's content was interrupted. What had arrived is written.
        case content(ClientError)
    }

    mutating func run() async throws(ClientError) -> DownloadResponse {
        handle.begin()
        do throws(StopError) {
            let response = try await download()
            await close()
            complete(nil)
            return response
        } catch {
            let data = await leave(after: error)
            let error =
                switch error {
                case .reason(let reason): ClientError(reason, of: request, head, data)
                case .request(let error), .content(let error): error.failing(head, data)
                }
            complete(error)
            throw error
        }
    }

    private func complete(_ error: ClientError?) {
        handle.complete(
            TaskCompletion(
                task: handle.identifier, request: last ?? request, response: head, error: error,
                metrics: metrics ?? TaskMetrics(task: handle.identifier)))
    }

    private mutating func download() async throws(StopError) -> DownloadResponse {
        try await begin()
        var asked = 0
        while asked < Self.maximumRequests {
            do throws(StopError) {
                if let response = try await ask() { return response }
                asked += 1
            } catch {
                guard case .content(let failure) = error else { throw error }
                try await retry(after: failure)
            }
        }
        throw .reason(.range("too little: more than \(Self.maximumRequests) requests"))
    }

    // MARK: Files

    /// Opens the file if that is possible before there is a response.
    private mutating func begin() async throws(StopError) {
        let hasOwnRange = request.headerFields.contains(.range)
        if options.resumes || given != nil, hasOwnRange {
            throw .reason(
                .options("the request has a Range field, and the download is to be resumed"))
        }
        switch destination {
        case .path(let path):
            try await setDestination(path)
        case .chosen:
            if let given {
                try await open(given.partialFile)
            } else if let folder = options.partialFileDirectory {
                // Named after the URL, so that it can be found again before the destination is
                // known.
                let name = SuggestedName.name(disposition: nil, path: request.path ?? "/")
                try await open("\(folder)/\(name)-\(Self.digest(of: request.url))")
            } else if options.resumes {
                throw .reason(
                    .options(
                        "to resume when the response chooses the destination, set "
                            + "partialFileDirectory"))
            }
        }
    }

    /// Continues once the destination is known.
    private mutating func setDestination(_ path: String) async throws(StopError) {
        let path = FilePaths.absolute(path)
        self.path = path
        let (replaces, folder) = (options.replacesExisting, options.partialFileDirectory)
        let partialFolder = given.map { FilePaths.folder(of: $0.partialFile) } ?? folder
        try await perform { () throws(DownloadError.Reason) in
            try FilePaths.check(destination: path, replaces: replaces, partialIn: partialFolder)
        }
        guard file == nil else { return }
        if let given {
            try await open(given.partialFile)
        } else if let folder {
            let digest = Self.digest(of: FilePaths.resolved(path))
            try await open("\(folder)/\(FilePaths.name(of: path))-\(digest)")
        } else {
            try await open(path)
        }
    }

    /// - Parameter base: The path of the partial file, without its suffix if it has none.
    private mutating func open(_ base: String) async throws(StopError) {
        let path =
            base.hasSuffix(PartialFile.suffix) && given != nil
            ? base : base + PartialFile.suffix
        let asked = session.completed(request, options.request)
        let (mayResume, given) = (options.resumes || given != nil, given)
        // The caller's resume data is evidence that the file is a partial download, too.
        let replaces = options.replacesExisting || given != nil
        file = try await perform { () throws(DownloadError.Reason) in
            try PartialFile(path, replaces: replaces) { data in
                mayResume && data.matches(asked)
                    && given.map { $0.url == data.url && $0.validator == data.validator } ?? true
            }
        }
    }

    /// A hash of a text, in digits, for use in file names: the same in every version.
    static func digest(of text: String) -> String {
        String(hexadecimal: FNV1a.hash(text), digits: 16)
    }

    private func perform<Value: Sendable>(
        _ work: @escaping @Sendable () throws(DownloadError.Reason) -> Value
    ) async throws(StopError) -> Value {
        let result = await session.runtime.writers.perform {
            Result { () throws(DownloadError.Reason) in try work() }
        }
        do throws(DownloadError.Reason) { return try result.get() } catch { throw .reason(error) }
    }

    /// Performs an operation on the partial file.
    mutating func change(
        _ work: @escaping @Sendable (inout PartialFile) throws(DownloadError.Reason) -> Void
    ) async throws(StopError) {
        guard let file else { return }
        let (changed, result) = await session.runtime.writers.perform {
            var file = file
            let result = Result { () throws(DownloadError.Reason) in try work(&file) }
            return (file, result)
        }
        self.file = changed
        do throws(DownloadError.Reason) { try result.get() } catch { throw .reason(error) }
    }

    private mutating func close() async {
        guard let file = file.take() else { return }
        await session.runtime.writers.perform { file.close() }
    }

    /// Stops the download. Returns the resume data, if it can be resumed.
    private mutating func leave(after stop: StopError) async -> ResumeData? {
        guard let file = file.take() else { return nil }
        var keeps = options.resumes || given != nil || control?.producesResumeData ?? false
        switch stop {
        case .request(let error) where error.reason == .cancelled: break
        case .content(let error) where error.reason == .cancelled: break
        default: keeps = keeps || options.keepsPartialFile
        }
        let data = await session.runtime.writers.perform { [keeps] in
            var file = file
            let data = file.leave(keeping: keeps)
            file.close()
            return data
        }
        // Resuming would only lead to the same error.
        if case .reason(.range) = stop { return nil }
        return data
    }

    // MARK: Requests

    /// Sends a request and writes its response. Returns `nil` if another request is needed.
    private mutating func ask() async throws(StopError) -> DownloadResponse? {
        var request = request
        var asked = DownloadStep.RangeRequest(
            hasOwnRange: request.headerFields.contains(.range), resume: file?.resume,
            hasSteppedBack: hasSteppedBack, acceptedStatusCodes: options.acceptedStatusCodes)
        if let resume = file?.resume, let length = file?.length, length > 0 {
            // If all bytes are there, requests the last one again, so that the server confirms that
            // they are valid.
            let isWhole = hasSteppedBack || length == resume.expectedBytes
            let offset = isWhole ? length - 1 : length
            asked.offset = offset
            request.headerFields[.range] = "bytes=\(offset)-"
            request.headerFields[.ifRange] = resume.validator.ifRange
        }
        options.request.progress?.resumes(at: asked.offset ?? 0)
        let response: StreamedResponse
        let part = TaskPart(
            request: request, retries: retries, cause: isRetry ? .retry : .task)
        let runner = RequestRunner(
            session: session, options: options.request, handle: handle, part: part)
        do throws(ClientError) { response = try await runner.response(content) } catch {
            if let metrics = part.failedMetrics.withLock({ $0 }) { add(metrics) }
            throw .request(error)
        }
        (head, last) = (response.head, response.request)
        retries += response.metrics.retries - (isRetry ? 1 : 0)
        isRetry = false
        let step = DownloadStep(asked, response.head, from: response.request.url)
        do {
            defer { add(response.metrics) }
            switch step {
            case .refuse(let reason): throw .reason(reason)
            case .restart: file?.forget()
            case .stepBack:
                hasSteppedBack = true
                file?.isWhole()
            case .take(let offset, let count, let total):
                let isPart = asked.offset != nil && response.head.status.code == 206
                try await take(response, from: isPart ? offset : nil, count, of: total)
            }
        }
        guard case .take(_, _, let total) = step, let file else { return nil }
        // If no complete length is given, it is unknown whether this range was the last one.
        if asked.offset != nil, response.head.status.code == 206,
            total.map({ file.length < $0 }) ?? true
        {
            return nil
        }
        if let total, file.length != total {
            throw .reason(.length(expected: total, found: file.length))
        }
        return try await finish(response)
    }

    /// Asks the session's retry policy whether to request the rest after a failure, and waits.
    private mutating func retry(after failure: ClientError) async throws(StopError) {
        guard let file, file.resume != nil, file.length > 0 else { throw .content(failure) }
        let rules = AttemptRules(
            session.configuration, options.request, elapsed: handle.elapsed)
        var generator = SystemRandom()
        let step = rules.step(
            after: .failure(failure), of: request,
            hasRepeatableContent: content?.isRepeatable ?? true, AttemptCounts(retries: retries),
            using: &generator)
        guard case .retry(let wait) = step else { throw .content(failure) }
        retries += 1
        isRetry = true
        do throws(ClientError) { try await handle.turn(after: wait) } catch {
            throw .request(error)
        }
    }

    /// Chooses the destination and opens the file, if that depends on the response.
    mutating func choose(_ response: StreamedResponse) async throws(StopError) {
        guard path == nil, case .chosen(let choose) = destination else { return }
        let chosen: String
        do { chosen = try choose(response.head, response.request) } catch {
            throw .reason(.choosing("\(error)"))
        }
        try await setDestination(chosen)
    }

    /// Adds up the metrics: all requests of a download belong to one task.
    private mutating func add(_ more: TaskMetrics) {
        guard metrics != nil else {
            metrics = more
            return
        }
        metrics?.transactions += more.transactions
    }

    private mutating func finish(_ response: StreamedResponse) async throws(StopError)
        -> DownloadResponse
    {
        guard let path, let length = file?.length else {
            throw .reason(.destinationInvalid("", expected: "a path"))
        }
        let replaces = options.replacesExisting
        do throws(StopError) {
            try await change { file throws(DownloadError.Reason) in
                try file.finish(at: path, replaces: replaces)
            }
        } catch {
            if case .reason(let reason) = error {
                let error = ClientError(reason, of: request, head, nil)
                session.registry.post(
                    .downloadFailedToMove(handle.identifier, to: path, error: error))
            }
            throw error
        }
        session.registry.post(.downloadMoved(handle.identifier, to: path))
        return DownloadResponse(
            head: response.head, request: response.request, path: path, length: length,
            resumedBytes: resumedBytes ?? 0, metrics: metrics ?? response.metrics)
    }
}

/// What the caller wants to keep of a download when it is cancelled.
final class DownloadControl: Sendable {
    private let produces = Locked(false)

    var producesResumeData: Bool { produces.withLock { $0 } }

    func produceResumeData() { produces.withLock { $0 = true } }
}
