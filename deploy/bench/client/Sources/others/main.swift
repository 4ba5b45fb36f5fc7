// ahc-requests URL COUNT WIDTH [PEM]: so many GETs, so many at a time, with one event loop, from a
// server with a certificate of a file.
import AsyncHTTPClient
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

let begun = Atomic(0)

func requests(_ url: String, _ count: Int, _ width: Int, _ trusted: String?) async throws {
    var configuration = HTTPClient.Configuration()
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = width
    if let trusted {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(trusted)
        configuration.tlsConfiguration = tls
    }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<width {
            group.addTask {
                while begun.add(1, ordering: .relaxed).newValue <= count {
                    let response = try await client.execute(
                        HTTPClientRequest(url: url), timeout: .seconds(60))
                    let content = try await response.body.collect(upTo: 1 << 20)
                    precondition(response.status == .ok && content.readableBytes == 1024)
                }
            }
        }
        try await group.waitForAll()
    }
    try await client.shutdown()
}

let words = CommandLine.arguments
guard 4...5 ~= words.count, let count = Int(words[2]), let width = Int(words[3]) else {
    print("usage: \(words[0]) URL COUNT WIDTH [PEM]")
    exit(2)
}
Task.detached {
    do {
        try await requests(words[1], count, width, words.count > 4 ? words[4] : nil)
        exit(0)
    } catch {
        print("error: \(error)")
        exit(1)
    }
}
while true { pause() }
