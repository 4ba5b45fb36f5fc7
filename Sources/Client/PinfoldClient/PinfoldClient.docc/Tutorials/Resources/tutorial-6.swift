import PinfoldClient

let session = try SessionManager()
let request = try HTTPRequest(.get, "https://files.example.com/tutorial.bin")

var options = DownloadOptions()
options.replacesExisting = true
let progress = TransferProgress()
options.request.progress = progress

// Read a first part, then cancel.
let (results, tell) = AsyncStream.makeStream(of: Result<DownloadResponse, ClientError>.self)
let task = session.downloadTask(request, to: "tutorial.bin", options: options) { result in
    tell.yield(result)
}
task.resume()
for await value in progress.updates() where value.received > 1 << 20 { break }
task.cancelProducingResumeData()

// Read the rest: now, or in another process that has the text of the resume data.
options.request.progress = nil
for await result in results {
    switch result {
    case .success(let file): print(file.length, "bytes")
    case .failure(let error):
        guard let rest = error.resumeData else { throw error }
        let file = try await session.download(
            resuming: rest, to: "tutorial.bin", options: options)
        print(file.length, "bytes,", file.resumedBytes, "of them from before")
    }
    break
}
