import PinfoldClient

let session = try SessionManager()
let request = try HTTPRequest(.get, "https://httpbin.org/range/100000")

var options = DownloadOptions()
options.replacesExisting = true
let progress = TransferProgress()
options.request.progress = progress

let updates = progress.updates()
let following = Task {
    for await value in updates { print("received", value.received) }
}
let file = try await session.download(request, to: "tutorial.txt", options: options)
await following.value
print(file.length, "bytes")
