import Clocks

// Writes a response's content to the partial file.
extension Download {
    /// The number of bytes that are collected before they are written.
    private static let writtenBytes = 256 << 10
    /// The number of milliseconds after which fewer bytes are written.
    private static let writtenMilliseconds: Int64 = 1000

    /// Writes a response's content.
    ///
    /// - Parameters:
    ///   - offset: The offset at which the content belongs, or `nil` to start at the beginning of
    ///     an empty file.
    ///   - count: The length of the content, if it is known.
    mutating func take(
        _ response: StreamedResponse, from offset: Int64?, _ count: Int64?, of total: Int64?
    ) async throws(StopError) {
        try await choose(response)
        if let offset {
            // What this call has downloaded itself does not count as resumed.
            resumedBytes = resumedBytes ?? offset
            try await change { file throws(DownloadError.Reason) in
                try file.continueWriting(from: offset, of: total)
            }
        } else {
            resumedBytes = 0
            let partialPath = file?.path ?? ""
            let data = ResumeData(
                of: session.completed(request, options.request), response.head,
                from: response.request.url, in: partialPath, boot: FilePaths.boot,
                isStored: response.isStored)
            try await change { file throws(DownloadError.Reason) in try file.reset(data) }
        }
        var batch: [[UInt8]] = []
        var (waiting, arrived, written) = (0, Int64(0), Clock.monotonicMilliseconds())
        var iterator = response.content.makeAsyncIterator()
        while true {
            let part: [UInt8]?
            do throws(ClientError) { part = try await iterator.next() } catch {
                try await write(batch)
                throw .content(error)
            }
            guard let part else { break }
            arrived += Int64(part.count)
            if let count, arrived > count {
                throw .reason(.length(expected: count, found: arrived))
            }
            batch.append(part)
            waiting += part.count
            let now = Clock.monotonicMilliseconds()
            guard waiting >= Self.writtenBytes || now - written >= Self.writtenMilliseconds else {
                continue
            }
            try await write(batch)
            (batch, waiting, written) = ([], 0, now)
        }
        if let count, arrived != count {
            try await write(batch)
            throw .reason(.length(expected: count, found: arrived))
        }
        try await write(batch, isLast: offset == nil && (count == total || total == nil))
    }

    private mutating func write(
        _ batch: [[UInt8]], isLast: Bool = false
    ) async throws(StopError) {
        guard !batch.isEmpty else { return }
        try await change { file throws(DownloadError.Reason) in
            try file.write(batch, isLast: isLast)
        }
    }
}
