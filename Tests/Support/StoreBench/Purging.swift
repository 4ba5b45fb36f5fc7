import CLinux
import CacheStore
import CacheTestSupport
import Clocks

/// Nanoseconds of many lookups.
struct Latencies: Sendable {
    private var all: [Int64] = []

    mutating func add(_ nanoseconds: Int64) { all.append(nanoseconds) }

    func part(_ share: Double) -> Int64 {
        let sorted = all.sorted()
        return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }

    var count: Int { all.count }
}

/// Looks up what stays, until it is told to stop.
private func measureHits(_ store: CacheStore, until isOver: () -> Bool) -> Latencies {
    var latencies = Latencies()
    var number = 0
    while !isOver() {
        for _ in 0..<64 {
            let began = Clock.monotonicNanoseconds()
            guard store.inMemory("http://kept.example/\(number % 100)").count == 1 else {
                fatalError("what was not purged is not there")
            }
            latencies.add(Clock.monotonicNanoseconds() - began)
            number += 1
        }
    }
    return latencies
}

/// Purges some of many responses. Prints how long each purge took until it was acknowledged, until
/// it was carried out, and how long lookups took before and meanwhile.
func purge(_ store: CacheStore, _ count: Int, _ bytes: Int) {
    let content = body(bytes)
    for number in 0..<count {
        let url = "http://h\(number % 4).example/p\(number / 4 % 4)/\(number)"
        store.put(url, content, lines: "Cache-Tag: all, t\(number % 16)\r\n")
        if number % 64 == 0 {
            while store.statistics().queueBytes > 8 << 20 { usleep(200) }
        }
    }
    for number in 0..<100 { store.put("http://kept.example/\(number)", content) }
    store.flushNow()
    let deadline = Clock.monotonicNanoseconds() + 1_000_000_000
    let usual = measureHits(store) { Clock.monotonicNanoseconds() >= deadline }
    let scopes: [(String, Purge.Scope)] = [
        ("tag", .tag(Array("t3".utf8))), ("prefix", .prefix(Array("http://h1.example/p2/".utf8))),
        ("host", (try? PurgeHost("h2.example")).map { .host($0) } ?? .everything),
        ("hosts", (try? PurgeHost("*.h3.example")).map { .host($0) } ?? .everything),
    ]
    for (name, scope) in scopes {
        let start = Clock.monotonicNanoseconds()
        guard let receipt = try? store.purge(Purge(scope), now: 1) else { fatalError(name) }
        let acknowledged = seconds(since: start)
        let meanwhile = measureHits(store) {
            store.purgeProgress(receipt.id)?.isComplete ?? true
        }
        guard let progress = store.purgeProgress(receipt.id) else { fatalError(name) }
        show([
            "purge": "\"\(name)\"", "entries": "\(count)",
            "acknowledged": "\(acknowledged)", "complete": "\(seconds(since: start))",
            "memory": "\(progress.memoryEntries)", "disk": "\(progress.diskEntries)",
            "usual50": "\(usual.part(0.5))", "usual99": "\(usual.part(0.99))",
            "p50": "\(meanwhile.part(0.5))", "p99": "\(meanwhile.part(0.99))",
            "lookups": "\(meanwhile.count)",
        ])
    }
}
