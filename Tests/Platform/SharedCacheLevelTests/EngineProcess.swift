import CLinux
import CacheStore
import CacheTestSupport
import Clocks
import Dispatch
import EventLoop
import Locking
import RedisProtocol
import SharedCache
import SharedCacheLevel
import TestSupport

/// A redis-server of a test's own, on a Unix socket in a folder of its own; ended with the test.
/// Another program that speaks its protocol is used if `PINFOLD_TEST_ENGINE` names it.
final class EngineProcess {
    private let folder = TemporaryFolder()
    private let program: String
    private let arguments: [String]
    private var process: Command?

    var path: String { folder.file("s") }

    struct EngineProcessError: Error { let text: String }

    static let program =
        getenv("PINFOLD_TEST_ENGINE").map { String(cString: $0) } ?? "redis-server"

    /// - Parameters:
    ///   - arguments: besides those that keep it apart from all others.
    ///   - program: what it is; by default the one that the tests are run with.
    init(_ arguments: [String] = [], program: String = EngineProcess.program) throws {
        self.arguments = arguments
        self.program = program
        try start()
    }

    deinit { end() }

    /// Starts it, and waits until it answers.
    func start() throws {
        unlink(path)
        process = try Command(
            program,
            [
                "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
                "--dir", folder.path, "--logfile", folder.file("log"),
            ] + arguments)
        guard eventually({ (try? ask("PING")) != nil }) else {
            throw EngineProcessError(text: "\(program) does not answer")
        }
    }

    /// Kills it, as `kill -9` does.
    func end() {
        guard let ended = process.take() else { return }
        kill(ended.processIdentifier, SIGKILL)
        _ = ended.wait()
    }

    func pause() { signal(SIGSTOP) }
    func goOn() { signal(SIGCONT) }

    private func signal(_ signal: Int32) {
        if let process { kill(process.processIdentifier, signal) }
    }

    /// Asks it something, on a connection for this alone.
    @discardableResult
    func ask(_ words: String...) throws -> RESPValue {
        try ask(RedisCommand(words.map { Array($0.utf8) }))
    }

    @discardableResult
    func ask(_ command: RedisCommand) throws -> RESPValue {
        let descriptor = try UnixSockets.connect(to: path)
        defer { Descriptors.close(descriptor) }
        let bytes = command.bytes
        guard bytes.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == bytes.count
        else { throw EngineProcessError(text: "it takes no command") }
        var reader = RESPReader()
        var memory = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = memory.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw EngineProcessError(text: "it has closed the connection") }
            let received = Array(memory[..<count])
            var position = 0
            if case .reply(let value)? = try reader.next(received.span, at: &position) {
                return value
            }
        }
    }

    /// The names of keys, by a pattern.
    func keys(_ pattern: String) -> [[UInt8]] {
        let reply = try? ask("KEYS", pattern)
        return reply?.elements?.compactMap(\.bytes) ?? []
    }

    /// The hashes of cache keys.
    var hashes: [[UInt8]] { keys("test:1:v:*") }
    /// Chunks of bodies.
    var chunks: [[UInt8]] { keys("test:1:c:*") }

    /// The fields of a hash, with their values.
    func fields(_ hash: [UInt8]) -> [(name: [UInt8], value: [UInt8])] {
        let reply = try? ask(RedisCommand([Array("HGETALL".utf8), hash]))
        return (reply?.entries ?? []).compactMap {
            guard let name = $0.key.bytes, let value = $0.value.bytes else { return nil }
            return (name, value)
        }
    }

    func set(_ hash: [UInt8], _ field: [UInt8], _ value: [UInt8]) throws {
        try ask(RedisCommand([Array("HSET".utf8), hash, field, value]))
    }

    // MARK: Levels

    /// Options that wait for long and come back soon.
    func options(secret: UInt8 = 7) throws -> SharedLevelOptions {
        guard let names = SharedName(prefix: Array("test:".utf8)),
            let secret = SharedSecret([UInt8](repeating: secret, count: 32)),
            let keyring = SharedKeyring([secret])
        else { throw EngineProcessError(text: "no names or no secret") }
        var options = SharedLevelOptions(
            server: .unix(path: path), names: names, keyring: keyring)
        options.timeoutMilliseconds = 10_000
        options.stallMilliseconds = 10_000
        options.holdOffMilliseconds = 10
        options.backoff = ReconnectBackoff(firstMilliseconds: 2, longestMilliseconds: 20)
        options.breaker.openMilliseconds = 10
        options.breaker.longestOpenMilliseconds = 50
        options.pollMilliseconds = 5
        return options
    }

    /// Those of a gateway that has nothing to purge.
    static var duties: FleetDuties { FleetDuties(purge: { $1(true) }, remove: { _ in }) }

    /// A level that is ready.
    /// - Parameter duties: what it has its gateway do: by default that is done at once.
    func level(
        _ duties: FleetDuties = EngineProcess.duties,
        _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> SharedLevel {
        var options = try options()
        change(&options)
        let level = try SharedLevel(options)
        level.begin(duties)
        guard eventually({ level.state == .ready }) else {
            let figures = level.figures()
            level.close()
            throw EngineProcessError(text: "not ready: \(figures.detail)")
        }
        return level
    }

    /// A gateway's store over a level, with memory or without.
    func gateway(
        memoryBytes: Int = 4 << 20, wholeBodyBytes: Int = 1 << 20,
        _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> (store: CacheStore, level: SharedLevel) {
        var options = CacheStoreOptions.small()
        options.memoryBytes = memoryBytes
        options.wholeBodyBytes = wholeBodyBytes
        let owner = StoreOfGateway()
        let level = try level(owner.duties) {
            $0.wholeBodyBytes = UInt64(wholeBodyBytes)
            change(&$0)
        }
        let store = CacheStore(options: options, below: [level]).ready()
        owner.own(store)
        return (store, level)
    }
}

/// The store in which a gateway carries out what others have purged, on a thread of its own as a
/// gateway does.
final class StoreOfGateway: Sendable {
    private struct Reference: Sendable { weak var store: CacheStore? }

    private let reference = Locked(Reference())
    private let queue = DispatchQueue(label: "purges")

    func own(_ store: CacheStore) { reference.withLock { $0.store = store } }

    private var store: CacheStore? { reference.withLock { $0.store } }

    var duties: FleetDuties {
        FleetDuties(
            purge: { [self] purges, completion in
                queue.async { [self] in
                    let now = Clock.wallSeconds()
                    if let store { _ = try? store.purge(purges, now: now, isOfFleet: true) }
                    completion(true)
                }
            },
            remove: { [self] in store?.invalidate(keyBytes: $0) })
    }
}
