import HTTPCore
import Testing
import Trust

@testable import PinfoldTLS

@Suite("The session cache")
struct SessionCacheTests {
    typealias Key = TLSSessionCache.Key
    typealias Session = TLSSessionCache.Session

    func key(_ host: String, context: UInt64 = 1, port: UInt16 = 443) -> Key {
        Key(context: context, host: host, port: port)
    }

    func session(_ name: UInt8, expires: Int64 = 1000, isSingleUse: Bool = true) -> Session {
        Session(
            stored: StoredSession(bytes: [name]), expires: expires, isSingleUse: isSingleUse,
            facts: TrustFacts(expires: expires))
    }

    func limits(_ sessions: Int, perServer: Int = 4) -> TLSSessionLimits {
        var limits = TLSSessionLimits()
        limits.sessions = sessions
        limits.sessionsPerServer = perServer
        return limits
    }

    @Test func `the newest comes first, and a single-use one once`() {
        let cache = TLSSessionCache()
        for name: UInt8 in 1...3 { cache.insert(session(name), for: key("a")) }
        #expect(cache.count == 3)
        #expect(
            (0..<4).map { _ in cache.take(for: key("a"), now: 0)?.stored.bytes } == [
                [3], [2], [1], nil,
            ])
        #expect(cache.count == 0)
        cache.insert(session(9, isSingleUse: false), for: key("a"))
        #expect(cache.take(for: key("a"), now: 0)?.stored.bytes == [9])
        #expect(cache.take(for: key("a"), now: 0)?.stored.bytes == [9])
        #expect(cache.count == 1)
    }

    @Test func `context, host and port each make another key`() {
        let cache = TLSSessionCache()
        cache.insert(session(1), for: key("a"))
        #expect(cache.take(for: key("b"), now: 0) == nil)
        #expect(cache.take(for: key("a", context: 2), now: 0) == nil)
        #expect(cache.take(for: key("a", port: 444), now: 0) == nil)
        #expect(cache.take(for: key("a"), now: 0)?.stored.bytes == [1])
    }

    @Test func `a session serves until the second before it expires`() {
        let cache = TLSSessionCache()
        cache.insert(session(1, expires: 10, isSingleUse: false), for: key("a"))
        cache.insert(session(2, expires: 20, isSingleUse: false), for: key("a"))
        #expect(cache.take(for: key("a"), now: 9)?.stored.bytes == [2])
        #expect(cache.count == 2)
        #expect(cache.take(for: key("a"), now: 10)?.stored.bytes == [2])
        #expect(cache.count == 1)
        #expect(cache.take(for: key("a"), now: 20) == nil)
        #expect(cache.count == 0)
    }

    @Test func `a server's sessions are limited; one more drops the oldest`() {
        let cache = TLSSessionCache(limits: limits(100, perServer: 2))
        for name: UInt8 in 1...2 { cache.insert(session(name), for: key("a")) }
        #expect(cache.count == 2)
        cache.insert(session(3), for: key("a"))
        #expect(cache.count == 2)
        #expect(
            (0..<3).map { _ in cache.take(for: key("a"), now: 0)?.stored.bytes } == [[3], [2], nil])
    }

    @Test func `all sessions are limited; one more drops the least recently used servers`() {
        let cache = TLSSessionCache(limits: limits(8))
        for name: UInt8 in 1...8 {
            cache.insert(session(name, isSingleUse: false), for: key("\(name)"))
        }
        #expect(cache.count == 8)
        // Just used, so that the second is the oldest.
        #expect(cache.take(for: key("1"), now: 0) != nil)
        cache.insert(session(9, isSingleUse: false), for: key("9"))
        #expect(cache.count == 8)
        let held = (1...9).filter { cache.take(for: key("\($0)"), now: 0) != nil }
        #expect(held == [1, 3, 4, 5, 6, 7, 8, 9])
    }

    @Test func `one client's servers do not drop another's sessions`() {
        let cache = TLSSessionCache(limits: limits(8))
        let clients = [1, 2].map { IPNetwork(.v4($0)) }
        cache.insert(session(1), for: key("a"), of: clients[0])
        cache.insert(session(2), for: key("a"), of: clients[0])
        for name: UInt8 in 3...100 {
            cache.insert(session(name), for: key("\(name)"), of: clients[1])
        }
        #expect(cache.count == 8)
        #expect(cache.take(for: key("a"), now: 0)?.stored.bytes == [2])
        #expect(cache.take(for: key("100"), now: 0)?.stored.bytes == [100])
    }

    @Test func `a cache without room keeps nothing`() {
        for limits in [limits(0), limits(8, perServer: 0)] {
            let cache = TLSSessionCache(limits: limits)
            cache.insert(session(1), for: key("a"))
            #expect(cache.count == 0)
        }
    }

    @Test func `the sessions of one context can be dropped`() {
        let cache = TLSSessionCache()
        cache.insert(session(1), for: key("a", context: 1))
        cache.insert(session(2), for: key("a", context: 2))
        cache.insert(session(3), for: key("b", context: 1))
        cache.removeSessions(ofContext: 1)
        #expect(cache.count == 1)
        #expect(cache.take(for: key("a", context: 2), now: 0)?.stored.bytes == [2])
    }

    @Test func `threads that insert and take at once leave the count right`() async {
        let cache = TLSSessionCache(limits: limits(64))
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for step in 0..<2_000 {
                        let key = key("\((task + step) % 40)")
                        cache.insert(session(1), for: key)
                        if step.isMultiple(of: 3) { _ = cache.take(for: key, now: 0) }
                    }
                }
            }
        }
        #expect(cache.count <= 64)
        var held = 0
        for host in 0..<40 {
            while cache.take(for: key("\(host)"), now: 0) != nil { held += 1 }
        }
        #expect(held > 0)
        #expect(cache.count == 0)
    }
}
