import CachePolicy
import CacheStore
import CacheTestSupport
import Clocks
import EventLoop
import Locking
import RedisProtocol
import SharedCache
import SharedCacheLevel
import Synchronization
import Testing
import Threads

/// A thread that runs a loop, as a worker does, and carries out on it what it is given.
private final class TestWorker: Sendable {
    private let mailbox: Mailbox<@Sendable (EventLoop) -> Void>
    private let thread: Thread

    init() throws {
        let mailbox = try Mailbox<@Sendable (EventLoop) -> Void>()
        self.mailbox = mailbox
        thread = try Thread(name: "test-worker") {
            guard let loop = try? EventLoop() else { return }
            let receiver = MailboxReceiver(mailbox) { $0(loop) }
            do {
                try loop.add(
                    receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
            } catch {
                return
            }
            loop.run()
            for handler in loop.handlers { loop.remove(handler) }
            loop.forgetDeferred()
        }
    }

    func run(_ work: @escaping @Sendable (EventLoop) -> Void) { mailbox.post(work) }

    func end() {
        run { $0.stop() }
        thread.join()
    }

    /// Waits until it has sent what it was given until now.
    func settle() {
        let isSettled = Handover<Bool>()
        run { loop in loop.afterTurn { isSettled.give(true) } }
        _ = isSettled.take()
    }

    /// Asks for a key on its thread.
    func ask(_ store: CacheStore, _ url: String) -> Handover<LoadResult> {
        let answer = Handover<LoadResult>()
        run { _ in
            let isAccepted = store.key(url) {
                store.load($0, policy: PolicyOptions()) { answer.give($0) }
            }
            if !isAccepted { answer.give(.nothing) }
        }
        return answer
    }

    /// What is found on its thread; `nil` for nothing.
    func body(_ store: CacheStore, _ url: String) -> [UInt8]? {
        guard case .found(let responses, true)? = ask(store, url).take() else { return nil }
        return responses.first.flatMap { store.bytes($0) }
    }

    /// Looks until it is looked for on its own connection.
    func awaitLink(_ store: CacheStore, _ level: SharedLevel, _ url: String) -> Bool {
        let before = level.figures().workerHits
        return eventually {
            _ = body(store, url)
            return level.figures().workerHits > before
        }
    }
}

@Suite("A worker's own connection to the engine", .serialized)
struct LookupLinkTests {
    /// A store with an entry, and a worker that has found it.
    private struct Place {
        let engine: EngineProcess
        let store: CacheStore
        let level: SharedLevel
        let worker: TestWorker

        init(_ change: (inout SharedLevelOptions) -> Void = { _ in }) throws {
            engine = try EngineProcess()
            (store, level) = try engine.gateway(memoryBytes: 0, change)
            worker = try TestWorker()
            store.put("http://a/", body(1000))
            store.flushNow()
            #expect(worker.awaitLink(store, level, "http://a/"))
        }

        var workerHits: UInt64 { level.figures().workerHits }

        func end() {
            worker.end()
            store.close()
        }
    }

    @Test(arguments: [0, 1, 1000, 60_000])
    func `finds what is stored with its body`(size: Int) throws {
        let place = try Place()
        place.store.put("http://b/", body(size, seed: 3))
        place.store.flushNow()
        let before = place.workerHits
        for _ in 0..<20 {
            #expect(place.worker.body(place.store, "http://b/") == body(size, seed: 3))
        }
        #expect(place.workerHits == before + 20)
        #expect(place.level.figures().connections == 2)
        place.end()
    }

    @Test func `asks for many keys at once`() throws {
        let place = try Place()
        for number in 0..<500 { place.store.put("http://a/\(number)", body(100, seed: number)) }
        place.store.flushNow()
        let before = place.workerHits
        let answers = (0..<500).map { place.worker.ask(place.store, "http://a/\($0)") }
        for (number, answer) in answers.enumerated() {
            guard case .found(let responses, _)? = answer.take() else {
                Issue.record("\(number) was not found")
                continue
            }
            #expect(responses.map { place.store.bytes($0) } == [body(100, seed: number)])
        }
        #expect(place.workerHits == before + 500)
        place.end()
    }

    @Test func `goes on for as long as its lookups are answered`() throws {
        let place = try Place { $0.timeoutMilliseconds = 60_000 }
        let before = place.workerHits
        for _ in 0..<50 {
            let answers = (0..<100).map { _ in place.worker.ask(place.store, "http://a/") }
            for answer in answers { #expect(answer.take()?.isNothing == false) }
        }
        #expect(place.workerHits == before + 5000)
        place.end()
    }

    @Test(arguments: [0, 200_000, 2_000_000])
    func `leaves what is not in one reply to the level's thread`(size: Int) throws {
        let place = try Place()
        let before = place.workerHits
        if size > 0 {
            place.store.put("http://b/", body(size))
            place.store.flushNow()
        }
        #expect(place.worker.body(place.store, "http://b/") == (size > 0 ? body(size) : nil))
        #expect(place.workerHits == before)
        place.end()
    }

    @Test func `finds what was stored after its key was removed`() throws {
        let place = try Place()
        place.store.drop("http://a/")
        #expect(place.worker.body(place.store, "http://a/") == nil)
        place.store.put("http://a/", body(20, seed: 9))
        place.store.flushNow()
        let before = place.workerHits
        #expect(place.worker.body(place.store, "http://a/") == body(20, seed: 9))
        #expect(place.workerHits == before + 1)
        place.end()
    }

    @Test func `does not overtake a change that is on its way`() throws {
        let place = try Place()
        let before = place.workerHits
        place.engine.pause()
        place.store.drop("http://a/")
        let dropped = place.worker.ask(place.store, "http://a/")
        place.worker.settle()
        place.store.put("http://a/", body(10, seed: 7))
        let replaced = place.worker.ask(place.store, "http://a/")
        place.worker.settle()
        place.engine.goOn()
        #expect(dropped.take()?.isNothing == true)
        guard case .found(let responses, _)? = replaced.take() else {
            Issue.record("it was not found")
            return
        }
        #expect(responses.map { place.store.bytes($0) } == [body(10, seed: 7)])
        #expect(place.workerHits == before)
        place.end()
    }

    @Test func `publishes nothing that was changed since it asked`() throws {
        let place = try Place()
        place.engine.pause()
        let asked = place.worker.ask(place.store, "http://a/")
        place.worker.settle()
        place.store.drop("http://a/")
        place.engine.goOn()
        #expect(asked.take()?.isNothing == true)
        place.end()
    }

    @Test func `finds nothing that was purged here or by another gateway`() throws {
        let place = try Place()
        let (other, _) = try place.engine.gateway()
        for purger in [place.store, other] {
            place.store.put("http://a/", body(10))
            place.store.put("http://b/", body(10))
            place.store.flushNow()
            #expect(place.worker.awaitLink(place.store, place.level, "http://a/"))
            _ = try purger.purge(Purge(.host(try PurgeHost("a"))), now: Clock.wallSeconds())
            if purger === other {
                #expect(eventually { place.worker.body(place.store, "http://a/") == nil })
            } else {
                #expect(place.worker.body(place.store, "http://a/") == nil)
            }
            #expect(place.worker.awaitLink(place.store, place.level, "http://b/"))
            #expect(place.worker.body(place.store, "http://a/") == nil)
        }
        other.close()
        place.end()
    }

    @Test func `never finds what was replaced or removed before it was asked`() throws {
        let place = try Place()
        let (store, worker) = (place.store, place.worker)
        let urls = (0..<4).map { "http://a/\($0)" }
        // The oldest version of each that may be found.
        let oldest = urls.map { _ in Locked(0) }
        let wrong = Locked<[String]>([])
        let isOver = Locked(false)
        let looker = try Thread(name: "looker") {
            var number = 0
            while !isOver.withLock({ $0 }) {
                number += 1
                let place = number % urls.count
                let before = oldest[place].withLock { $0 }
                guard let found = worker.body(store, urls[place]) else { continue }
                let version = found.count
                if version < before {
                    wrong.withLock { $0.append("\(version) instead of \(before)") }
                }
            }
        }
        for version in 1...1500 {
            let place = version % urls.count
            if version % 7 == 0 {
                store.drop(urls[place])
            } else {
                store.put(urls[place], body(version))
            }
            oldest[place].withLock { $0 = version % 7 == 0 ? version + 1 : version }
            if version % 10 == 0 { store.flushNow() }
        }
        isOver.withLock { $0 = true }
        looker.join()
        #expect(wrong.withLock { $0 } == [])
        #expect(place.workerHits > 1)
        place.end()
    }

    @Test func `is made again when the engine was started again, and finds nothing old`() throws {
        let place = try Place()
        place.engine.end()
        #expect(place.worker.body(place.store, "http://a/") == nil)
        try place.engine.start()
        #expect(eventually { place.level.state == .ready })
        #expect(place.worker.body(place.store, "http://a/") == nil)
        place.store.put("http://a/", body(10, seed: 2))
        place.store.flushNow()
        #expect(place.worker.awaitLink(place.store, place.level, "http://a/"))
        #expect(place.worker.body(place.store, "http://a/") == body(10, seed: 2))
        place.end()
    }

    @Test func `answers with nothing when a reply is late, and tells the breaker`() throws {
        let place = try Place { $0.timeoutMilliseconds = 100 }
        place.engine.pause()
        let answers = (0..<20).map { _ in place.worker.ask(place.store, "http://a/") }
        for answer in answers { #expect(answer.take()?.isNothing == true) }
        #expect(eventually { place.level.state == .off })
        #expect(place.level.figures()[.timeout] >= 5)
        place.engine.goOn()
        #expect(eventually { place.level.state == .ready })
        #expect(place.worker.awaitLink(place.store, place.level, "http://a/"))
        place.end()
    }

    @Test func `has a limit of time for each lookup, also after one that was late`() throws {
        let place = try Place {
            $0.timeoutMilliseconds = 100
            $0.breaker.failures = 1000
        }
        place.engine.pause()
        for _ in 0..<4 {
            let began = Clock.monotonicMilliseconds()
            #expect(place.worker.ask(place.store, "http://a/").take()?.isNothing == true)
            // The level's own limit for a silent engine is ten seconds.
            #expect(Clock.monotonicMilliseconds() - began < 5000)
        }
        place.engine.goOn()
        #expect(eventually { place.worker.body(place.store, "http://a/") != nil })
        place.end()
    }

    @Test func `leaves what is damaged to be deleted`() throws {
        let place = try Place()
        let hash = try #require(place.engine.hashes.first)
        let field = try #require(place.engine.fields(hash).first { $0.name.count == 16 })
        var damaged = field.value
        damaged[damaged.count - 1] ^= 1
        try place.engine.set(hash, field.name, damaged)
        #expect(place.worker.body(place.store, "http://a/") == nil)
        place.store.flushNow()
        #expect(place.engine.fields(hash).contains { $0.name == field.name } == false)
        place.end()
    }

    @Test(arguments: [false, true])
    func `answers what waits when the level is closed or its loop ends`(loopEnds: Bool) throws {
        let place = try Place()
        place.engine.pause()
        let answers = (0..<5).map { _ in place.worker.ask(place.store, "http://a/") }
        place.worker.settle()
        if loopEnds { place.worker.end() }
        place.engine.end()
        place.store.close()
        for answer in answers { #expect(answer.take()?.isNothing == true) }
        if !loopEnds { place.worker.end() }
    }

    @Test func `is closed with the level, and its loop goes on`() throws {
        let place = try Place()
        place.store.close()
        let left = Handover<Int>()
        #expect(
            eventually {
                place.worker.run { left.give($0.attachments.count + $0.handlerCount) }
                // What the test's own messages come by.
                return left.take() == 1
            })
        place.worker.end()
    }
}

extension LoadResult {
    fileprivate var isNothing: Bool { if case .nothing = self { true } else { false } }
}
