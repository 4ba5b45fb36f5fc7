import CacheStore
import CacheTestSupport
import EventLoop
import Foundation
import Locking
import Logging
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// The thread of purges, in a gateway that shares its cache with others.
@Suite("Purges of a fleet") struct FleetPurgeServiceTests {
    private typealias Confirmation = @Sendable (PurgeResult.Fleet) -> Void

    private let mailbox: Mailbox<EngineMessage>

    init() throws { mailbox = try Mailbox() }

    /// What a worker does with what it is told.
    private func note() {
        for message in mailbox.take() {
            if case .purged(let notice) = message { notice.done() }
        }
    }

    private static let everything = PurgeOrder(scopes: [.everything])
    private static let fleet = PurgeResult.Fleet(
        isRecorded: true, confirmed: ["a"], unconfirmed: ["b"])

    @Test func `do not wait until the ones before them are confirmed`() throws {
        let waiting = Locked<[Confirmation]>([])
        let store = CacheStore(options: .small())
        defer { store.close() }
        let service = try PurgeService(
            store: store, mailboxes: [mailbox],
            confirm: { completion in waiting.withLock { $0.append(completion) } },
            logger: Logger(label: "test"))
        defer { service.close() }
        let fleets = Locked<[PurgeResult.Fleet?]>([])
        for _ in 0..<3 {
            #expect(
                service.submit(Self.everything, for: nil) { outcome in
                    if case .purged(let result) = outcome {
                        fleets.withLock { $0.append(result.fleet) }
                    }
                })
        }
        #expect(
            eventually {
                note()
                return waiting.withLock { $0.count } == 3
            })
        #expect(service.counts.everything == 3)
        #expect(fleets.withLock { $0.isEmpty })
        for confirm in waiting.withLock({ $0 }) { confirm(Self.fleet) }
        #expect(fleets.withLock { $0 } == [Self.fleet, Self.fleet, Self.fleet])
    }

    @Test func `are confirmed by nobody if they were only counted, or not carried out`() throws {
        let confirmed = Locked(0)
        let folder = TemporaryFolder()
        let store = CacheStore(options: .small(folder)).ready()
        let service = try PurgeService(
            store: store, mailboxes: [mailbox],
            confirm: { completion in
                confirmed.withLock { $0 += 1 }
                completion(Self.fleet)
            }, logger: Logger(label: "test"))
        defer { service.close() }
        let outcomes = Locked<[PurgeOutcome]>([])
        func submit(_ order: PurgeOrder) {
            #expect(
                service.submit(order, for: nil) { outcome in
                    outcomes.withLock { $0.append(outcome) }
                })
        }
        submit(PurgeOrder(scopes: [.everything], isDryRun: true))
        #expect(eventually { outcomes.withLock { $0.count } == 1 })
        store.close()
        submit(Self.everything)
        #expect(eventually { outcomes.withLock { $0.count } == 2 })
        guard case .failed? = outcomes.withLock({ $0.last }) else {
            Issue.record("a closed store has purged")
            return
        }
        #expect(confirmed.withLock { $0 } == 0)
        withExtendedLifetime(folder) {}
    }

    @Test func `of other gateways are told to no level, and are complete when workers know`() throws
    {
        let remote = RemoteServer()
        let store = CacheStore(options: .small(), below: [RemoteLevel(remote)])
        defer { store.close() }
        store.put("http://a/", Array("content".utf8))
        store.flushNow()
        #expect(remote.counts.values == 1 && store.inMemory("http://a/").count == 1)
        let confirmed = Locked(0)
        let service = try PurgeService(
            store: store, mailboxes: [mailbox],
            confirm: { completion in
                confirmed.withLock { $0 += 1 }
                completion(Self.fleet)
            }, logger: Logger(label: "test"))
        defer { service.close() }
        let hasEnded = Locked(false)
        service.carryOutOfFleet([Purge(.everything)]) { _ in hasEnded.withLock { $0 = true } }
        #expect(eventually { store.inMemory("http://a/").isEmpty })
        #expect(!hasEnded.withLock { $0 })
        #expect(
            eventually {
                note()
                return hasEnded.withLock { $0 }
            })
        store.flushNow()
        #expect(remote.counts.values == 1)
        #expect(confirmed.withLock { $0 } == 0)
        #expect(service.counts.everything == 0)
    }

    @Test func `of other gateways are carried out once, as far as a broken disk allows`() throws {
        let folder = TemporaryFolder()
        // A file where the folder is to be.
        let path = folder.file("cache")
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        var options = CacheStoreOptions.small(folder)
        options.folder = path
        let store = CacheStore(options: options).ready()
        defer { store.close() }
        let service = try PurgeService(
            store: store, mailboxes: [mailbox], logger: Logger(label: "test"))
        defer { service.close() }
        store.put("http://a/", Array("before".utf8))
        let isDurable = Locked<Bool?>(nil)
        service.carryOutOfFleet([Purge(.everything)]) { durable in
            isDurable.withLock { $0 = durable }
        }
        #expect(
            eventually {
                note()
                return isDurable.withLock { $0 } == false
            })
        #expect(store.inMemory("http://a/").isEmpty)
        store.put("http://a/", Array("after".utf8))
        // Longer than until it would be tried again.
        usleep(1_500_000)
        #expect(store.inMemory("http://a/").count == 1)
    }

    @Test func `of other gateways that fail hold up no order, and are not complete`() throws {
        let folder = TemporaryFolder()
        let store = CacheStore(options: .small(folder)).ready()
        let service = try PurgeService(
            store: store, mailboxes: [mailbox], logger: Logger(label: "test"))
        store.close()
        let hasEnded = Locked(false)
        service.carryOutOfFleet([Purge(.everything)]) { _ in hasEnded.withLock { $0 = true } }
        let isAnswered = Locked(false)
        #expect(
            service.submit(Self.everything, for: nil) { _ in isAnswered.withLock { $0 = true } })
        #expect(eventually { isAnswered.withLock { $0 } })
        note()
        #expect(!hasEnded.withLock { $0 })
        service.close()
        #expect(!hasEnded.withLock { $0 })
        withExtendedLifetime(folder) {}
    }
}
