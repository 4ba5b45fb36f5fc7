import Glibc
import PinfoldClient

/// Makes one call, as its plan says.
struct Call: Sendable {
    let plan: Plan
    let around: Surroundings
    let folder: Folder

    /// How the call ends, and what its error says. It is cancelled and suspended meanwhile if the
    /// plan says so.
    func end(_ session: SessionManager) async -> (kind: Kind, text: String) {
        let progress = TransferProgress()
        let steered = steers(progress)
        // Some run on the thread of the session's loop.
        let executor = plan.number % 4 == 0 ? session.runtime.taskExecutor : nil
        let work = Task(executorPreference: executor) {
            await made(session, steered ? progress : nil)
        }
        var steering: [Task<Void, Never>] = []
        if let cancellation = plan.cancellation {
            let cancel: @Sendable () -> Void = {
                if cancellation.byTask { work.cancel() } else { progress.cancel() }
            }
            if let after = cancellation.after {
                steering.append(
                    Task {
                        try? await Task.sleep(for: .microseconds(after))
                        if !Task.isCancelled { cancel() }
                    })
            } else {
                cancel()
            }
        }
        if let pause = plan.pause {
            steering.append(
                Task {
                    try? await Task.sleep(for: .milliseconds(pause.after))
                    progress.pause()
                    try? await Task.sleep(for: .milliseconds(pause.milliseconds))
                    progress.resume()
                })
        }
        let end = await work.value
        for task in steering {
            task.cancel()
            await task.value
        }
        return end
    }

    private func steers(_ progress: TransferProgress) -> Bool {
        plan.pause != nil || plan.cancellation.map { !$0.byTask } ?? (plan.number % 5 == 0)
    }

    private func made(
        _ session: SessionManager, _ progress: TransferProgress?
    ) async -> (kind: Kind, text: String) {
        do {
            let content = try plan.content(folder)
            var options = RequestOptions()
            options.progress = progress
            options.retries = plan.fault.retries
            options.maximumContentBytes = plan.fault.most
            options.timeout = plan.fault.timeout.map { .milliseconds($0) }
            if plan.fault.expects { options.continueTimeout = .seconds(5) }
            if plan.number % 3 == 0 {
                let witness = Witness()
                options.redirects = .follow { proposal in
                    _ = witness
                    return proposal.next
                }
            }
            let request = try HTTPRequest(plan.fault.method, plan.url(around.servers))
            return (try await sent(request, content, options, session), "")
        } catch let error as ClientError {
            return (.failed(error.reason), "\(error)")
        } catch {
            return (.wrong("\(error)"), "")
        }
    }

    private func sent(
        _ request: HTTPRequest, _ content: (content: RequestContent, size: Int)?,
        _ options: RequestOptions, _ session: SessionManager
    ) async throws -> Kind {
        switch plan.way {
        case .data:
            let response = try await session.data(
                for: request, content: content?.content, options: options)
            return kind(response.head, response.content, content?.size)
        case .task:
            let response = try await answer(request, content?.content, options, session)
            return kind(response.head, response.content, content?.size)
        case .whole:
            let response = try await session.response(
                for: request, content: content?.content, options: options)
            var bytes: [UInt8] = []
            for try await part in response.content { bytes += part }
            return kind(response.head, bytes, content?.size)
        case .part:
            let response = try await session.response(
                for: request, content: content?.content, options: options)
            for try await _ in response.content { break }
            return left(response.head)
        case .unread:
            let response = try await session.response(
                for: request, content: content?.content, options: options)
            return left(response.head)
        case .file:
            return try await downloaded(request, content, options, session)
        }
    }

    /// The response that a task's handler gets, which is called once.
    private func answer(
        _ request: HTTPRequest, _ content: RequestContent?, _ options: RequestOptions,
        _ session: SessionManager
    ) async throws -> DataResponse {
        let (witness, calls) = (Witness(), Count())
        let made = Locked<SessionTask<DataResponse>?>(nil)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let task = session.dataTask(for: request, content: content, options: options) {
                    _ = witness
                    guard calls.next() == 1 else { fatalError("\(plan.text): a second answer") }
                    continuation.resume(with: $0)
                }
                made.withLock { $0 = task }
                task.resume()
                // It may have been cancelled before there was a task.
                if Task.isCancelled { task.cancel() }
            }
        } onCancel: {
            made.withLock { $0 }?.cancel()
        }
    }

    private func downloaded(
        _ request: HTTPRequest, _ content: (content: RequestContent, size: Int)?,
        _ options: RequestOptions, _ session: SessionManager
    ) async throws -> Kind {
        var download = DownloadOptions()
        (download.request, download.keepsPartialFile) = (options, false)
        let path = folder.download(plan.number)
        defer { unlink(path) }
        let response = try await session.download(
            request, content: content?.content, to: .path(path), options: download)
        guard content == nil, plan.fault.uploads.isEmpty else { return .right }
        return response.length == plan.size || plan.session == .mock
            ? .right : .wrong("a file of \(response.length) bytes instead of \(plan.size)")
    }

    /// What a response is that was read to its end.
    private func kind(_ head: HTTPResponse, _ bytes: [UInt8], _ sent: Int?) -> Kind {
        let status = head.status.code
        guard 200..<300 ~= status else { return .status(status) }
        if plan.session == .mock {
            return bytes.allSatisfy { $0 == UInt8(plan.number % 251) }
                ? .right : .wrong("other content")
        }
        if let sent {
            let text = String(decoding: bytes, as: UTF8.self)
            return text == "\(sent)" ? .right : .wrong("\(text) bytes arrived of \(sent)")
        }
        let isEmpty = plan.fault.method == .head || status == 204
        let size = isEmpty ? 0 : plan.size
        guard bytes.count == size else { return .wrong("\(bytes.count) bytes instead of \(size)") }
        let byte = UInt8(plan.path % 251)
        return bytes.allSatisfy { $0 == byte } ? .right : .wrong("other content")
    }

    /// What a response is that was not.
    private func left(_ head: HTTPResponse) -> Kind {
        200..<300 ~= head.status.code ? .left : .status(head.status.code)
    }
}

extension Plan {
    func url(_ servers: [Ports]) -> String {
        if session == .mock { return "https://api.example.com/mock/\(number)" }
        let ports = servers[server]
        var path = "\(fault.path)/\(self.path)?size=\(size)"
        if fault.times > 0 {
            let times = 1 + number % fault.times
            path += fault.path == "redirect" ? "&hops=\(times)" : "&fails=\(times)"
        }
        switch fault.target {
        case nil: break
        case .port(let role, let target, let status):
            let url = ports.url(role, "\(target)/\(number)?size=\(size)")
            path += "&status=\(status)&to=\(url.replacing("&", with: "%26"))"
        case .url(let url): path += "&to=\(url)"
        }
        return ports.url(role, path, host: name, wrong: fault.isSchemeWrong)
    }
}
