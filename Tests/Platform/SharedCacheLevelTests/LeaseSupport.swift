import CachePolicy
import CacheStore
import CacheTestSupport
import Clocks
import Locking
import RedisProtocol
import SharedCache
import SharedCacheLevel
import TestSupport
import Testing

/// What a lookup that would fetch the response was told.
struct Asking {
    private let answer = Handover<LoadResult>()
    private let isAnswered = Locked(false)

    init(
        _ store: CacheStore, _ url: String = "http://a/", trust: UInt64? = nil,
        fetches: Bool = true
    ) {
        let (answer, isAnswered) = (answer, isAnswered)
        let isAccepted = store.key(url) {
            store.load($0, policy: PolicyOptions(), trust: trust, fetches: fetches) { result in
                isAnswered.withLock { $0 = true }
                answer.give(result)
            }
        }
        #expect(isAccepted)
    }

    /// Asks for a fresh response in place of one.
    init(_ store: CacheStore, insteadOf stale: CachedResponse, fetches: Bool = true) {
        let (answer, isAnswered) = (answer, isAnswered)
        let isAccepted = store.loadFresh(
            insteadOf: stale, policy: PolicyOptions(), fetches: fetches
        ) { result in
            isAnswered.withLock { $0 = true }
            answer.give(result)
        }
        #expect(isAccepted)
        store.wakeReaders()
    }

    var isOpen: Bool { isAnswered.withLock { !$0 } }

    /// The lease; `nil` if it was told anything else.
    func lease() -> FetchLease? {
        guard case .lead(let lease)? = answer.take() else { return nil }
        return lease
    }

    func responses() -> [CachedResponse]? {
        guard case .found(let responses, true)? = answer.take() else { return nil }
        return responses
    }

    var isNothing: Bool { if case .nothing? = answer.take() { true } else { false } }
}

/// Tests of gateways that wait for each other.
protocol LeaseTesting {}

extension LeaseTesting {
    /// Two gateways that wait for each other for long.
    func gateways(
        _ engine: EngineProcess, _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> [(store: CacheStore, level: SharedLevel)] {
        try (0..<2).map { _ in
            try engine.gateway {
                $0.waitMilliseconds = 15_000
                $0.leaseMilliseconds = 10_000
                change(&$0)
            }
        }
    }

    func close(_ gateways: [(store: CacheStore, level: SharedLevel)]) {
        for gateway in gateways { gateway.store.close() }
    }

    func leases(_ engine: EngineProcess) -> [[UInt8]] { engine.keys("test:1:l:*") }

    func life(_ name: [UInt8], _ engine: EngineProcess) throws -> Int64 {
        let reply = try engine.ask(RedisCommand([Array("PTTL".utf8), name]))
        return try #require(reply.integer)
    }

    func awaitWaiting(_ count: Int, _ level: SharedLevel) {
        #expect(eventually { level.figures().waitingLookups == count }, "\(level.figures())")
    }

    func leaseName(_ url: String) throws -> [UInt8] {
        let names = try #require(SharedName(prefix: Array("test:".utf8)))
        return names.lease(
            try #require(Array(url.utf8).withUnsafeBytes { SharedName.digest(of: $0) }))
    }

    /// A lease of a gateway that is not there.
    func takeLease(
        _ engine: EngineProcess, _ url: String = "http://a/", milliseconds: Int,
        secret: UInt8 = 7
    ) throws {
        let name = try leaseName(url)
        let keyring = try engine.options(secret: secret).keyring
        let record = try #require(
            SharedLease(SharedToken(random: (1, 2))).record(under: name, by: keyring))
        let words = [Array("SET".utf8), name, record, Array("PX".utf8)]
        try engine.ask(RedisCommand(words + [Array(String(milliseconds).utf8)]))
    }

    /// Stores a response that is received now.
    func putFresh(
        _ store: CacheStore, _ url: String, _ body: [UInt8], vary: VaryKey = .none,
        policy: UInt64 = 0, maximumAge: Int = 3600
    ) throws {
        let now = Clock.wallSeconds()
        let head = Array(
            ("HTTP/1.1 200 OK\r\nDate: Fri, 21 Nov 2025 10:00:00 GMT\r\nETag: \"1\"\r\n"
                + "Cache-Control: max-age=\(maximumAge)\r\n").utf8)
        let times = StoredTimes(requestTime: now, responseTime: now, initialAge: 0)
        let made = StoredMetadata(
            storedHead: head.span, times: times, hasQuery: false, options: PolicyOptions())
        let metadata = try #require(made)
        let ticket = try store.key(url) { key in
            try head.withUnsafeBytes {
                try store.beginStore(
                    key: key, vary: vary, head: $0, metadata: metadata, policy: policy,
                    expectedLength: UInt64(body.count))
            }
        }
        #expect(body.withUnsafeBytes { ticket.append($0) })
        #expect(ticket.finish().refusal == nil)
    }

    /// How often a key was looked up.
    func hashReads(_ engine: EngineProcess) throws -> Int {
        let text = try #require(try engine.ask("INFO", "commandstats").text)
        let line = text.split(whereSeparator: \.isNewline).first {
            $0.hasPrefix("cmdstat_hgetall:")
        }
        let calls = line?.split(separator: "=").dropFirst().first?.prefix { $0.isNumber }
        return try #require(calls.flatMap { Int($0) })
    }

    func settle(_ milliseconds: Int64) {
        let end = Clock.monotonicMilliseconds() + milliseconds
        _ = eventually { Clock.monotonicMilliseconds() >= end }
    }
}

extension [[UInt8]] {
    /// The words of a command about a key.
    func inserting(_ name: [UInt8]) -> [[UInt8]] {
        [self[0], name] + self.dropFirst()
    }
}
