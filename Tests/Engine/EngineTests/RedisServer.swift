import CLinux
import EventLoop
import RedisProtocol
import TestSupport
import Testing

@testable import PinfoldEngine

/// A server of the test's own, on a Unix socket in a folder of its own, and a loop for its clients.
final class RedisServer {
    let loop: EventLoop
    private let folder = TemporaryFolder()
    private let arguments: [String]
    private var process: Command?

    /// Starts it. Clients try until it listens.
    init(_ arguments: String...) throws {
        loop = try EventLoop()
        self.arguments = arguments
        try start()
    }

    deinit { kill() }

    func start() throws {
        process = try Command(
            "redis-server",
            [
                "--port", "0", "--unixsocket", folder.file("socket"), "--save", "",
                "--appendonly", "no", "--dir", folder.path,
            ] + arguments)
    }

    /// Ends it, with what it has.
    func kill() {
        guard let process = process.take() else { return }
        signal(SIGKILL, to: process)
        _ = process.wait()
    }

    func signal(_ number: Int32) {
        if let process { signal(number, to: process) }
    }

    private func signal(_ number: Int32, to process: Command) {
        CLinux.kill(process.processIdentifier, number)
    }

    /// A client that has been started.
    func client(
        _ session: RedisSession = RedisSession(),
        _ change: (inout RedisConnection.Options) -> Void = { _ in }
    ) throws -> RedisClient {
        var options = RedisConnection.Options()
        options.backoff = ReconnectBackoff(firstMilliseconds: 5, longestMilliseconds: 50)
        change(&options)
        let client = RedisClient(
            loop: loop, address: .unix(folder.file("socket")), session: session,
            options: options)
        try client.start()
        return client
    }

    /// Runs the loop until something is so.
    func run(until isSo: () -> Bool) throws {
        for _ in 0..<2000 where !isSo() { loop.turn(waitingAtMost: 10) }
        try #require(isSo())
    }

    /// Sends a command and waits for what becomes of it.
    func outcome(
        _ client: RedisClient, _ command: RedisCommand, within milliseconds: Int64 = 20_000
    ) throws -> RedisOutcome {
        var outcome: RedisOutcome?
        client.send(command, within: milliseconds) { outcome = $0 }
        try run { outcome != nil }
        return try #require(outcome)
    }

    func reply(_ client: RedisClient, _ words: String...) throws -> RESPValue {
        let command = RedisCommand(words.map { Array($0.utf8) })
        guard case .reply(let value) = try outcome(client, command) else {
            throw RedisTestError.noReply
        }
        return value
    }
}

enum RedisTestError: Error {
    case noReply
}
