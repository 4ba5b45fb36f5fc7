// pinfold-requests URL COUNT WIDTH: so many GETs, so many at a time, over one session.
import Glibc
import PinfoldClient
import Synchronization

let begun = Atomic(0)

func requests(_ url: String, _ count: Int, _ width: Int) async throws {
    var configuration = SessionConfiguration()
    configuration.maximumRequests = width
    configuration.maximumRequestsPerOrigin = width
    let session = try SessionManager(configuration: configuration)
    let request = try HTTPRequest(.get, url)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<width {
            group.addTask {
                while begun.add(1, ordering: .relaxed).newValue <= count {
                    let response = try await session.data(for: request)
                    precondition(response.head.status == .ok && response.content.count == 1024)
                }
            }
        }
        try await group.waitForAll()
    }
}

let words = CommandLine.arguments
guard words.count == 4, let count = Int(words[2]), let width = Int(words[3]) else {
    print("usage: \(words[0]) URL COUNT WIDTH")
    exit(2)
}
Task.detached {
    do {
        try await requests(words[1], count, width)
        exit(0)
    } catch {
        print("error: \(error)")
        exit(1)
    }
}
while true { pause() }
