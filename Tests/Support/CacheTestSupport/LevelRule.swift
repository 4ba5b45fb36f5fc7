import CachePolicy
import CacheStore
import Locking
import Testing

/// The contract of `CacheLevel`, rule by rule, as what a store with the level does. Each is checked
/// with stores of a `LevelBench`.
package enum LevelRule: String, CaseIterable, CustomTestStringConvertible {
    case findsWholeResponses =
        "what was stored is found whole"
    case replacesOneVariant =
        "a store replaces the variant with its Vary key, and no other"
    case replacesStreamedBodies =
        "a streamed body replaces what was there, and is replaced"
    case invalidatesKeys =
        "an invalidated key is found in no variant, and others stay"
    case removesOneResponse =
        "removing one response leaves its key's other variants"
    case keepsSuccessors =
        "removing a response that was replaced does not bring it back, nor remove its successor"
    case purges =
        "a purge leaves nothing, and what is stored after it stays"
    case refusesOutdatedStores =
        "a store whose request was sent before an invalidation or a purge is refused"
    case forgetsUnfinishedBodies =
        "a body that was cut off or given up is never found, and leaves nothing"
    case freshens =
        "a 304 gives a body a new head and another Vary key, everywhere"
    case freshensNothingOutdated =
        "a 304 for what was removed or replaced meanwhile restores nothing"
    case outlastsTheProcess =
        "what was stored is found by the next process"
    case catchesWhatLeavesMemory =
        "what memory has no room for any more is found below it"
    case keepsBodiesThatAreRead =
        "a body that is being read outlasts its entry"
    case looksWithoutKeeping =
        "a look finds whole responses, keeps nothing of them, and counts nothing"
    case survivesClosing =
        "after close nothing hangs, and memory still answers"
    case survivesItsLastReference =
        "the last reference to the store may be dropped by a completion"

    package var testDescription: String { rawValue }

    /// Those that a cache keeps which has nothing below memory.
    package static let ofMemoryAlone = allCases.filter {
        ![
            .outlastsTheProcess, .catchesWhatLeavesMemory, .keepsBodiesThatAreRead,
            // Memory has no thread of its own: its completions are called by its callers.
            .survivesItsLastReference,
        ].contains($0)
    }

    package func check(_ bench: LevelBench) throws {
        switch self {
        case .findsWholeResponses: try bench.findsWholeResponses()
        case .replacesOneVariant: try bench.replacesOneVariant()
        case .replacesStreamedBodies: try bench.replacesStreamedBodies()
        case .invalidatesKeys: try bench.invalidatesKeys()
        case .removesOneResponse: try bench.removesOneResponse()
        case .keepsSuccessors: try bench.keepsSuccessors()
        case .purges: try bench.purges()
        case .refusesOutdatedStores: try bench.refusesOutdatedStores()
        case .forgetsUnfinishedBodies: try bench.forgetsUnfinishedBodies()
        case .freshens: try bench.freshens()
        case .freshensNothingOutdated: try bench.freshensNothingOutdated()
        case .outlastsTheProcess: try bench.outlastsTheProcess()
        case .catchesWhatLeavesMemory: try bench.catchesWhatLeavesMemory()
        case .keepsBodiesThatAreRead: try bench.keepsBodiesThatAreRead()
        case .looksWithoutKeeping: try bench.looksWithoutKeeping()
        case .survivesClosing: try bench.survivesClosing()
        case .survivesItsLastReference: try bench.survivesItsLastReference()
        }
    }
}

extension LevelBench {
    fileprivate func findsWholeResponses() throws {
        let store = open()
        for count in [0, 1, 1000, 40_000, 300_000, 2_000_000] {
            for isAnnounced in [true, false] {
                let (url, content) = ("http://a/\(count)\(isAnnounced)?q", body(count))
                let outcome = store.put(
                    url, content, vary: vary("de"), announced: isAnnounced, piece: 30_000,
                    policy: 7)
                if !isPermanent, count == 2_000_000 {
                    #expect(outcome.refusal == .tooLarge)
                    continue
                }
                #expect(outcome.refusal == nil)
                let response = try #require(store.found(url, vary: "de").first)
                #expect(store.bytes(response) == content)
                #expect([UInt8](response.head) == head())
                #expect(response.varyKey == vary("de"))
                #expect(response.policy == 7)
                #expect(response.metadata.times == testTimes)
                #expect(response.metadata.bodyBytes == UInt64(count))
            }
        }
        #expect(store.found("http://a/other").isEmpty)
        store.close()
    }

    fileprivate func replacesOneVariant() throws {
        let store = open()
        for number in 0..<4 {
            store.put("http://a/", body(100, seed: number), vary: vary("\(number)"))
        }
        for size in [200, 100_000, 300_000] {
            store.put("http://a/", body(size), vary: vary("2"))
            #expect(store.foundBodies("http://a/", vary: "2") == [body(size)])
        }
        for number in [0, 1, 3] {
            #expect(
                store.foundBodies("http://a/", vary: "\(number)") == [body(100, seed: number)])
        }
        #expect(store.found("http://a/", vary: "4").isEmpty)
        store.close()
    }

    fileprivate func replacesStreamedBodies() throws {
        let store = open { $0.wholeBodyBytes = 100_000 }
        for (number, size) in [10, 400_000, 400_000, 10].enumerated() {
            store.put("http://a/", body(size, seed: number), piece: 50_000)
            #expect(store.foundBodies("http://a/") == [body(size, seed: number)])
        }
        store.close()
    }

    fileprivate func invalidatesKeys() throws {
        let store = open()
        store.put("http://a/", body(10), vary: vary("de"))
        store.put("http://a/", body(300_000), vary: vary("fr"))
        store.put("http://b/", body(20))
        for isWritten in [false, true] {
            if isWritten { store.flushNow() }
            store.drop("http://a/")
            #expect(store.found("http://a/", vary: "de").isEmpty)
            #expect(store.found("http://a/", vary: "fr").isEmpty)
            store.put("http://a/", body(11), vary: vary("de"))
            #expect(store.foundBodies("http://a/", vary: "de") == [body(11)])
        }
        #expect(store.foundBodies("http://b/") == [body(20)])
        store.close()
    }

    fileprivate func removesOneResponse() throws {
        let store = open()
        store.put("http://a/", body(10), vary: vary("de"))
        store.put("http://a/", body(11), vary: vary("fr"))
        let response = try #require(store.found("http://a/", vary: "fr").first)
        store.remove(response)
        #expect(store.found("http://a/", vary: "fr").isEmpty)
        #expect(store.foundBodies("http://a/", vary: "de") == [body(10)])
        store.close()
    }

    fileprivate func keepsSuccessors() throws {
        let store = open { $0.wholeBodyBytes = 200_000 }
        for (size, isWritten) in [(10, false), (10, true), (400_000, false), (400_000, true)] {
            store.put("http://a/", body(size, seed: 1), vary: vary("de"))
            if isWritten { store.flushNow() }
            let old = try #require(store.found("http://a/", vary: "de").first)
            store.put("http://a/", body(size, seed: 2), vary: vary("de"))
            if isWritten { store.flushNow() }
            store.remove(old)
            let found = store.foundBodies("http://a/", vary: "de")
            // What cannot be told apart may both be gone.
            #expect(found == [body(size, seed: 2)] || (found.isEmpty && !knowsItsEntries))
        }
        store.close()
    }

    fileprivate func purges() throws {
        var store = open()
        for number in 0..<20 { store.put("http://a/\(number)", body(1000 * number)) }
        store.put("http://a/large", body(400_000))
        store.purgeAll()
        #expect((0..<20).allSatisfy { store.found("http://a/\($0)").isEmpty })
        #expect(store.found("http://a/large").isEmpty)
        store.put("http://a/3", body(77))
        #expect(store.foundBodies("http://a/3") == [body(77)])
        store.close()
        guard isPermanent else { return }
        store = open()
        #expect(store.foundBodies("http://a/3") == [body(77)])
        #expect(store.found("http://a/4").isEmpty)
        store.close()
    }

    fileprivate func refusesOutdatedStores() throws {
        let store = open { $0.wholeBodyBytes = 200_000 }
        for size in [10, 100_000, 400_000] {
            for isPurge in [false, true] {
                let ticket = try store.begin("http://a/", length: UInt64(size))
                #expect(body(size).withUnsafeBytes { ticket.append($0) })
                if isPurge { store.purgeAll() } else { store.drop("http://a/") }
                #expect(ticket.finish().refusal == .invalidated)
                #expect(store.found("http://a/").isEmpty)
            }
        }
        store.flushNow()
        #expect(store.statistics().flights == 0)
        #expect(store.statistics().queueBytes == 0)
        store.close()
    }

    fileprivate func forgetsUnfinishedBodies() throws {
        var store = open { $0.wholeBodyBytes = 100_000 }
        for (number, announced) in [300_000, 50_000].enumerated() {
            let part = body(announced - 10_000)
            let short = try store.begin("http://a/\(number)", length: UInt64(announced))
            #expect(part.withUnsafeBytes { short.append($0) })
            #expect(short.finish().refusal == .lengthMismatch)
            let abandoned = try store.begin("http://b/\(number)", length: UInt64(announced))
            #expect(part.withUnsafeBytes { abandoned.append($0) })
            abandoned.abandon()
            #expect(store.found("http://a/\(number)").isEmpty)
            #expect(store.found("http://b/\(number)").isEmpty)
        }
        store.flushNow()
        let figures = store.statistics()
        #expect(figures.gatheringBytes + figures.stagingBytes + figures.queueBytes == 0)
        #expect(eventually { bodiesApart() == 0 })
        // One that ends with the process.
        let last = try store.begin("http://c/", length: 300_000)
        #expect(body(290_000).withUnsafeBytes { last.append($0) })
        store.flushNow()
        store.close()
        last.abandon()
        store = open()
        for host in ["a", "b", "c"] { #expect(store.found("http://\(host)/0").isEmpty) }
        #expect(store.found("http://c/").isEmpty)
        #expect(eventually { bodiesApart() == 0 })
        store.close()
    }

    fileprivate func freshens() throws {
        for size in [10, 40_000, 100_000, 400_000] {
            let url = "http://a/\(size)"
            var store = open { $0.wholeBodyBytes = 200_000 }
            store.put(url, body(size), vary: vary("de"))
            // From one variant to the next, before and after it has been written.
            for (old, new) in [("de", "it"), ("it", "fr")] {
                let confirmed = try #require(store.found(url, vary: old).first)
                do throws(StoreRefusalReason) {
                    let current = try store.confirm(confirmed, vary: vary(new), policy: 5)
                    #expect(store.bytes(current) == body(size))
                } catch {
                    #expect(error == .superseded && !knowsItsEntries)
                    store.put(url, body(size), vary: vary(new), policy: 5)
                    store.remove(confirmed)
                }
                // What was replaced can be confirmed no more.
                #expect(throws: StoreRefusalReason.superseded) {
                    _ = try store.confirm(confirmed)
                }
                store.flushNow()
            }
            for isNext in [false, true] {
                if isNext {
                    store.close()
                    guard isPermanent else { continue }
                    store = open()
                }
                #expect(store.found(url, vary: "de").isEmpty)
                #expect(store.found(url, vary: "it").isEmpty)
                #expect(store.foundBodies(url, vary: "fr") == [body(size)])
                #expect(store.found(url, vary: "fr").map(\.policy) == [5])
            }
            store.close()
        }
    }

    fileprivate func freshensNothingOutdated() throws {
        let store = open { $0.wholeBodyBytes = 200_000 }
        for size in [10, 400_000] {
            store.put("http://a/", body(size))
            let removed = try #require(store.found("http://a/").first)
            store.drop("http://a/")
            #expect(throws: StoreRefusalReason.superseded) { _ = try store.confirm(removed) }
            #expect(store.found("http://a/").isEmpty)
            store.put("http://a/", body(size))
            let replaced = try #require(store.found("http://a/").first)
            store.put("http://a/", body(20, seed: 2))
            #expect(throws: StoreRefusalReason.superseded) { _ = try store.confirm(replaced) }
            #expect(store.foundBodies("http://a/") == [body(20, seed: 2)])
        }
        store.close()
    }

    fileprivate func outlastsTheProcess() throws {
        let sizes = [10, 40_000, 100_000, 400_000]
        do {
            let store = open { $0.wholeBodyBytes = 200_000 }
            for size in sizes { store.put("http://a/\(size)", body(size)) }
            store.close()
        }
        let store = open()
        for size in sizes { #expect(store.foundBodies("http://a/\(size)") == [body(size)]) }
        // What is small is in memory from now on.
        #expect(store.inMemory("http://a/10").count == (hasMemory ? 1 : 0))
        #expect(store.statistics().levels.reduce(0) { $0 + $1.hits } == UInt64(sizes.count))
        store.close()
    }

    fileprivate func catchesWhatLeavesMemory() throws {
        // A level that is behind does not take what memory keeps.
        let store = open {
            if hasMemory { $0.memoryBytes = 200_000 }
            $0.queueBytes = 40_000
            $0.batchMilliseconds = 60_000
        }
        for number in 0..<10 {
            store.put("http://a/\(number)", body(12_000, seed: number))
            if !hasMemory { store.flushNow() }
        }
        store.flushNow()
        #expect(store.statistics().memoryEvictions == 0)
        for number in 10..<40 {
            store.put("http://a/\(number)", body(12_000, seed: number))
            store.flushNow()
        }
        #expect(store.statistics().memoryEvictions > 20 || !hasMemory)
        for number in 0..<40 {
            #expect(store.foundBodies("http://a/\(number)") == [body(12_000, seed: number)])
        }
        store.close()
    }

    fileprivate func keepsBodiesThatAreRead() throws {
        do {
            let store = open { $0.wholeBodyBytes = 100_000 }
            store.put("http://a/", body(400_000))
            store.close()
        }
        let store = open {
            $0.wholeBodyBytes = 100_000
            $0.memoryBytes = 0
        }
        var old = store.found("http://a/").first
        #expect(old?.isOnDiskOnly == true)
        store.put("http://a/", body(10))
        store.flushNow()
        #expect(old.flatMap { store.bytes($0) } == body(400_000))
        old = nil
        store.flushNow()
        store.close()
    }

    fileprivate func looksWithoutKeeping() throws {
        let sizes = [10, 40_000, 100_000, 400_000]
        do {
            let store = open { $0.wholeBodyBytes = 200_000 }
            for size in sizes {
                store.put("http://a/\(size)", body(size), vary: vary("de"))
                store.put("http://a/\(size)", body(size + 1), vary: vary("fr"))
            }
            store.close()
        }
        let store = open { $0.wholeBodyBytes = 200_000 }
        let before = store.statistics()
        for size in sizes {
            let seen = store.seen("http://a/\(size)")
            let bodies = seen.map { store.bytes($0.response) ?? [] }
            let expected = isPermanent ? [body(size), body(size + 1)] : []
            let isWhole = bodies.sorted { $0.count < $1.count } == expected
            #expect(isWhole, "\(size)")
            #expect(seen.allSatisfy { !$0.isInMemory })
        }
        #expect(store.seen("http://a/other").isEmpty)
        let after = store.statistics()
        #expect(after.memoryEntries == 0 && after.memoryBytes == before.memoryBytes)
        #expect(after.levels == before.levels)
        // What memory has is found there.
        store.put("http://b/", body(10))
        #expect(store.seen("http://b/").map(\.isInMemory) == [hasMemory])
        store.close()
    }

    fileprivate func survivesClosing() throws {
        let store = open()
        store.put("http://a/", body(10))
        // Too large for memory.
        store.put("http://large/", body(600_000))
        store.flushNow()
        #expect(store.foundBodies("http://large/") == (isPermanent ? [body(600_000)] : []))
        store.close()
        store.close()
        #expect(store.inMemory("http://a/").count == (hasMemory ? 1 : 0))
        #expect(store.found("http://large/").isEmpty)
        #expect((store.put("http://b/", body(10)).refusal == nil) == hasMemory)
        #expect(!store.key("http://a/") { store.load($0, policy: PolicyOptions()) { _ in } })
        store.drop("http://a/")
        #expect(store.found("http://a/").isEmpty)
        store.purgeAll()
        store.flushNow()
        #expect(store.statistics().levels.allSatisfy { $0.state == .off })
    }

    fileprivate func survivesItsLastReference() throws {
        let isReleased = Handover<Bool>()
        let wasLast = Handover<Bool>()
        let holder: Locked<CacheStore?>
        do {
            let store = open()
            store.put("http://a/", body(10))
            holder = Locked(store)
            store.flush {
                _ = isReleased.take()
                holder.withLock { store in
                    wasLast.give(isKnownUniquelyReferenced(&store))
                    store = nil
                }
            }
        }
        isReleased.give(true)
        #expect(wasLast.take() == true)
        #expect(eventually { holder.withLock { $0 == nil } })
    }
}
