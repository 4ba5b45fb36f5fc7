import ArgumentParser
import CLinux
import HTTPTypes
import Locking
import PinfoldClient

/// Requests URLs, several at a time, and writes the results in the order of the URLs.
struct ClientWork: Sendable {
    var method: HTTPRequest.Method
    var fields: HTTPFields
    var content: RequestContent?
    var session: SessionManager
    var output: OutputOptions
    /// The number of URLs requested at a time.
    var parallel: Int
    var files: FileOptions
    /// Whether to print only response heads, without content.
    var headOnly = false
    /// Whether content is written to files.
    var writesFiles = false
    /// Whether to show the progress of the upload.
    var showsUpload = false
    /// The pins as given on the command line, for errors.
    var pins: [String] = []
    /// What is printed after each response.
    var format: WriteOut?
    /// What the session does, if something is to be written of it.
    var recorder: ExchangeRecorder?

    /// The result for one URL.
    private struct Outcome: Sendable {
        var text: [UInt8] = []
        var failure: ClientCommandError?
        /// Whether `--write-out` has been.
        var isDescribed = false
    }

    /// Requests the URLs.
    ///
    /// - Throws: The exit code of the first URL in the list that failed.
    func run(_ urls: [String]) throws {
        let progress = ProgressDisplay(
            isOn: !output.silent && (writesFiles || showsUpload), upload: showsUpload)
        var work = self
        let sent = output.har == nil ? nil : try collectedContent()
        if let sent { work.content = .bytes(sent) }
        let archive = try output.har.map { try Self.archive($0) }
        let failures = work.failures(of: urls, progress)
        progress.end()
        if let archive { try write(to: archive, sending: sent ?? []) }
        for failure in failures { throw ExitCode(failure.exit.rawValue) }
    }

    private func failures(
        of urls: [String], _ progress: ProgressDisplay
    ) -> [ClientCommandError] {
        Blocking.run {
            let timing = output.timing ? self.timing(progress) : nil
            let events = session.events()
            let failures = await self.outcomes(of: urls, progress)
            session.invalidate()
            await timing?.value
            if output.verbose || output.har != nil {
                for await _ in events {}
                await session.finishCallbacks()
            }
            return failures
        }
    }

    /// The content in memory, where it is the same for every request and for the archive.
    private func collectedContent() throws(ClientCommandError) -> [UInt8]? {
        do { return try content?.collected() } catch {
            throw ClientCommandError(.content, "\(error)")
        }
    }

    private static func archive(_ path: String) throws -> HARFile {
        do throws(HARFile.WriteError) {
            return try HARFile(path, replaces: false, limit: 1 << 40)
        } catch {
            throw ClientCommandError(.file, "--har \(error)")
        }
    }

    private func write(to archive: HARFile, sending content: [UInt8]) throws {
        do throws(HARFile.WriteError) {
            for entry in recorder?.entries(sending: content) ?? [] {
                _ = try archive.add(entry.json.description)
            }
            try archive.finish(dropped: 0)
        } catch {
            throw ClientCommandError(.file, "--har \(error)")
        }
    }

    private func outcomes(
        of urls: [String], _ progress: ProgressDisplay
    ) async -> [ClientCommandError] {
        var outcomes = [Outcome?](repeating: nil, count: urls.count)
        var (begun, written) = (0, 0)
        await withTaskGroup(of: (Int, Outcome).self) { group in
            func begin() {
                guard begun < urls.count else { return }
                let number = begun
                begun += 1
                group.addTask { (number, await outcome(of: urls[number], urls.count, progress)) }
            }
            for _ in 0..<parallel { begin() }
            while let (number, outcome) = await group.next() {
                outcomes[number] = outcome
                while written < urls.count, let next = outcomes[written] {
                    outcomes[written] = Outcome(failure: report(next, of: urls[written], progress))
                    written += 1
                }
                begin()
            }
        }
        return outcomes.compactMap { $0?.failure }
    }

    /// Writes the output and errors of a URL. Returns its first failure, if any.
    private func report(
        _ outcome: Outcome, of url: String, _ progress: ProgressDisplay
    ) -> ClientCommandError? {
        var failures = outcome.failure.map { [$0] } ?? []
        do throws(OutputError) { try progress.output(outcome.text) } catch {
            failures.append(ClientCommandError(.file, "\(url): \(error)"))
        }
        for failure in failures { progress.printLine("Error: \(failure)\n") }
        return failures.first
    }

    /// Prints how long each request took, including failed ones, until the session ends.
    private func timing(_ progress: ProgressDisplay) -> Task<Void, Never> {
        let events = session.events()
        return Task {
            for await event in events {
                guard case .didComplete(let end) = event else { continue }
                for line in TimingLine.lines(end) { progress.printLine(line) }
            }
        }
    }

    private func outcome(
        of url: String, _ count: Int, _ progress: ProgressDisplay
    ) async -> Outcome {
        var outcome = Outcome()
        let moved = TransferProgress()
        do {
            let request = try request(for: url)
            var options = RequestOptions()
            options.progress = moved
            let shown = progress.follow(moved, named: url)
            defer { shown?.cancel() }
            if writesFiles {
                try await download(request, options, &outcome, progress)
            } else if count == 1, !headOnly, output.har == nil {
                try await stream(request, options, &outcome, progress)
            } else {
                try await collect(request, options, &outcome, progress)
            }
        } catch let failure as ClientCommandError {
            outcome.failure = failure
        } catch let error as OutputError {
            outcome.failure = ClientCommandError(.file, "\(url): \(error)")
        } catch let error as ClientError {
            outcome.failure = ClientCommandError(error, pins: pins)
        } catch {
            outcome.failure = ClientCommandError(.other, "\(url): \(error)")
        }
        if format != nil, !outcome.isDescribed {
            await session.finishCallbacks()
            let end = moved.task.flatMap { recorder?.completion(of: $0) }
            writeOut(
                WriteOut.Subject(
                    response: end?.response, method: end?.request.method ?? method,
                    url: end?.request.url ?? url, metrics: end?.metrics), &outcome)
        }
        return outcome
    }

    /// Writes a response once all of it is there.
    private func collect(
        _ request: HTTPRequest, _ options: RequestOptions, _ outcome: inout Outcome,
        _ progress: ProgressDisplay
    ) async throws {
        let response = try await session.data(for: request, content: content, options: options)
        recorder?.keep(response.content, of: response.metrics.task)
        var written: [UInt8] = []
        if headOnly || output.includesHead {
            written += Self.head(response.head, response.metrics)
        }
        if !headOnly, !isLeftOut(response.head) {
            written += printed(response.content, of: response.head)
        }
        if let path = files.streamedPath {
            try ContentOutput(path, progress).write(written)
        } else {
            outcome.text += written
        }
        note(response.head, response.request, &outcome)
        writeOut(response.head, response.request, response.metrics, &outcome)
    }

    private func request(for url: String) throws -> HTTPRequest {
        do throws(ClientError) { return try HTTPRequest(method, url, fields: fields) } catch {
            guard error.url.contains("://***@") else { throw error }
            throw ClientCommandError(
                .url, "\(error.url): credentials in URLs are not supported; expected --user")
        }
    }

    /// Writes content to standard output as it arrives.
    private func stream(
        _ request: HTTPRequest, _ options: RequestOptions, _ outcome: inout Outcome,
        _ progress: ProgressDisplay
    ) async throws {
        let response = try await session.response(for: request, content: content, options: options)
        let target = try ContentOutput(files.streamedPath, progress)
        if output.includesHead { try target.write(Self.head(response.head, response.metrics)) }
        var parts = response.content.makeAsyncIterator()
        // JSON that may still be short enough to be shown as such.
        let isPretty = isPretty && Self.isJSON(response.head)
        var kept: [UInt8]? = isPretty ? [] : nil
        do {
            while !isLeftOut(response.head), let part = try await parts.next() {
                guard var bytes = kept else {
                    try target.write(part)
                    continue
                }
                bytes += part
                let isTooLong = bytes.count > PrettyJSON.maximumBytes
                if isTooLong { try target.write(bytes) }
                kept = isTooLong ? nil : bytes
            }
        } catch {
            if let kept { try target.write(kept) }
            throw error
        }
        if let kept { try target.write(printed(kept, of: response.head)) }
        note(response.head, response.request, &outcome)
        writeOut(response.head, response.request, response.metrics, &outcome)
    }

    /// Whether JSON is shown as such. Where it does not go to the terminal, it has to be asked for.
    private var isPretty: Bool {
        files.streamedPath == nil ? output.pretty.isOn : output.pretty == .always
    }

    /// Whether content is not printed because of its status.
    private func isLeftOut(_ head: HTTPResponse) -> Bool {
        output.fails && head.status.code >= 400
    }

    /// Content as it is printed.
    private func printed(_ content: [UInt8], of head: HTTPResponse) -> [UInt8] {
        // https://no-color.org: it has no effect if it is empty.
        let hasColors = getenv("NO_COLOR").map { $0.pointee == 0 } ?? true
        guard isPretty, Self.isJSON(head),
            let text = PrettyJSON.text(of: content, hasColors: hasColors)
        else { return content }
        return Array(text.utf8)
    }

    private static func isJSON(_ head: HTTPResponse) -> Bool {
        let type = (head.headerFields[values: .contentType].first ?? "").lowercased()
        let essence = type.prefix { $0 != ";" && $0 != " " }
        return essence == "application/json" || essence.hasSuffix("+json")
    }

    private func writeOut(
        _ head: HTTPResponse, _ request: HTTPRequest, _ metrics: TaskMetrics,
        _ outcome: inout Outcome
    ) {
        writeOut(
            WriteOut.Subject(
                response: head, method: request.method, url: request.url, metrics: metrics),
            &outcome)
    }

    private func writeOut(_ subject: WriteOut.Subject, _ outcome: inout Outcome) {
        guard let format else { return }
        outcome.text += format.text(subject).utf8
        outcome.isDescribed = true
    }

    private func download(
        _ request: HTTPRequest, _ options: RequestOptions, _ outcome: inout Outcome,
        _ progress: ProgressDisplay
    ) async throws(ClientError) {
        var saving = DownloadOptions()
        saving.request = options
        saving.replacesExisting = files.replace
        saving.resumes = files.resume
        let folder = files.folder ?? "."
        // Needed to find the partial file before the response gives the name.
        if files.output == nil { saving.partialFileDirectory = folder }
        let destination: DownloadDestination =
            files.output.map { .path($0) }
            ?? .chosen { "\(folder)/\(DownloadResponse.suggestedName(for: $0, $1))" }
        let response = try await session.download(
            request, content: content, to: destination, options: saving)
        if output.includesHead { outcome.text += Self.head(response.head, response.metrics) }
        note(response.head, response.request, &outcome)
        writeOut(response.head, response.request, response.metrics, &outcome)
        let resumed =
            response.resumedBytes > 0 ? ", \(response.resumedBytes) of them kept from before" : ""
        if !output.silent {
            progress.printLine("\(response.path): \(response.length) bytes\(resumed)\n")
        }
    }

    private func note(_ head: HTTPResponse, _ request: HTTPRequest, _ outcome: inout Outcome) {
        guard head.status.code >= 400 else { return }
        outcome.failure = ClientCommandError(
            .status, "\(request.url): status \(head.status.code); expected one below 400")
    }

    /// The head as on the wire, in the version in which it came.
    private static func head(_ head: HTTPResponse, _ metrics: TaskMetrics) -> [UInt8] {
        var text = HTTPVersionText.of(metrics.transactions.last?.protocolName) + " "
        text += "\(head.status.code) \(head.status.reasonPhrase)\r\n"
        for field in head.headerFields { text += "\(field.name.rawName): \(field.value)\r\n" }
        return Array((text + "\r\n").utf8)
    }
}

/// Runs asynchronous work and blocks a command's thread until it is done. That thread is not one
/// of the Swift concurrency thread pool.
enum Blocking {
    static func run<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
        let result = Monitor<Value?>(nil)
        Task {
            let value = await work()
            result.withLock { $0 = value }
            result.signal()
        }
        return result.wait { $0.map { .done($0) } ?? .signal }
    }
}
