import CachePolicy
import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCache
import Testing

@testable import SharedCacheLevel

/// The parts of the level that need no engine.
@Suite("The parts of a level on an engine")
struct LevelPartsTests {
    private func key(_ text: String) -> SharedKey {
        SharedKey(bytes: Array(text.utf8), hash: UInt64(text.utf8.count))
    }

    @Test func `remember what is invalid, up to a limit`() {
        var lost = LostChanges(.init(replaced: 9, invalid: 2, bytes: 10))
        #expect(lost.isEmpty && !lost.concernsOthers)
        for text in ["a", "a", "bb"] { lost.note(key(text), isInvalid: true) }
        #expect(lost.keys.count == 2 && lost.concernsOthers && !lost.isEverything)
        var taken = lost.take()
        #expect(taken.keys.count == 2)
        #expect(lost.isEmpty)
        taken.note(key("c"), isInvalid: true)
        #expect(taken.isEverything && taken.keys.isEmpty && !taken.isEmpty)
        // Nothing is added to everything.
        taken.note(key("d"), isInvalid: true)
        #expect(taken.keys.isEmpty)
        // Bytes count as well, anew after what was taken.
        lost.note(key("12345"), isInvalid: true)
        #expect(!lost.isEverything)
        lost.note(key("123456"), isInvalid: true)
        #expect(lost.isEverything)
    }

    @Test func `forget what was only replaced, which concerns nobody else`() {
        var lost = LostChanges(.init(replaced: 2, invalid: 2, bytes: 100))
        lost.note(key("a"), isInvalid: true)
        for text in ["a", "bb", "ccc"] { lost.note(key(text), isInvalid: false) }
        #expect(lost.keys.count == 3 && !lost.hasForgotten)
        lost.note(key("dddd"), isInvalid: false)
        #expect(lost.hasForgotten && !lost.isEverything)
        #expect(lost.keys == [Array("a".utf8): .init(hash: 1, isInvalid: true)])
        // What is invalid is remembered nevertheless.
        lost.note(key("eeeee"), isInvalid: false)
        lost.note(key("bb"), isInvalid: true)
        #expect(lost.keys.count == 2)
        let taken = (lost.takeKeys(1), lost.takeKeys())
        #expect(taken.0.count == 1 && taken.1.count == 1)
        #expect(lost.keys.isEmpty && !lost.concernsOthers && !lost.isEmpty)
        let hasForgotten = lost.takeForgotten()
        #expect(hasForgotten && lost.isEmpty)
        lost.note(key("a"), isInvalid: false)
        lost.note(key("a"), isInvalid: true)
        lost.note(key("bb"), isInvalid: false)
        lost.dropReplaced()
        #expect(lost.keys.count == 1 && lost.concernsOthers && !lost.hasForgotten)
    }

    @Test func `tell all of a URI at once if it is stored, and otherwise now and then`() {
        var uris = RemovedURIs()
        let (uri, key) = (Array("http://a/".utf8), Array("upgraded:http://a/".utf8))
        func decide(
            _ removal: UInt64, at now: Int64, isStored: Bool = false
        ) -> RemovedURIs.Decision {
            uris.removed(uri, key, isStored: isStored, removal: removal, now: now)
        }
        func due(at now: Int64) -> [[UInt8]] { uris.timePassed(now).map(\.key) }

        #expect(decide(1, at: 0) == .tell)
        uris.tells(uri, key, after: 36, now: 0)
        // The same request's other keys were sent before that.
        #expect(decide(36, at: 1) == .wait)
        #expect(due(at: 1).isEmpty)
        // Another one's are told once for all.
        for removal: UInt64 in 37...90 { #expect(decide(removal, at: 9) == .wait) }
        #expect(decide(91, at: 9, isStored: true) == .tell)
        #expect(due(at: 499).isEmpty)
        #expect(due(at: 560) == [key])
        uris.tells(uri, key, after: 91, now: 560)
        // What could not be told is told again, whatever was sent meanwhile.
        uris.failed(uri, key, now: 570)
        #expect(due(at: 1200) == [key])
        uris.tells(uri, key, after: 92, now: 1200)
        #expect(due(at: 2000).isEmpty)
        #expect(uris.next == nil)
        #expect(decide(93, at: 2000) == .tell)
        uris.tells(uri, key, after: 93, now: 2000)
        #expect(decide(94, at: 2001) == .wait)
        let waiting = (uris.takeWaiting(), uris.takeWaiting())
        #expect(waiting.0.map(\.uri) == [uri] && waiting.1.isEmpty)
    }

    @Test func `write commands as the engine reads them, in pieces`() {
        var output = CommandOutput()
        output.begin(4)
        output.add("SET")
        output.add([1, 2])
        output.add([3], [4, 5])
        output.add(-17)
        let expected = RedisCommand([Array("SET".utf8), [1, 2], [3, 4, 5], Array("-17".utf8)])
        #expect(output.withUnsent { [UInt8]($0) } == expected.bytes)
        #expect(output.total == UInt64(expected.byteCount))
        output.took(5)
        #expect(output.withUnsent { [UInt8]($0) } == Array(expected.bytes[5...]))
        output.add(command: [9])
        output.took(output.unsentCount)
        #expect(output.unsentCount == 0)
        #expect(output.total == UInt64(expected.byteCount) + 1)
    }

    @Test func `keep no more of what was sent than they must`() {
        var output = CommandOutput()
        var reference: [UInt8] = []
        var most = 0
        // More is added than is sent, and it is never empty.
        for number in 0..<4000 {
            let command = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1024)
            output.add(command: command)
            reference += command
            guard number >= 100 else { continue }
            let sent = 1000
            #expect(output.withUnsent { $0.starts(with: reference.prefix(sent)) })
            output.took(sent)
            reference.removeFirst(sent)
            #expect(output.unsentCount == reference.count)
            most = max(most, output.byteCount)
        }
        #expect(output.withUnsent { [UInt8]($0) } == reference)
        // Besides what waits, half as much again and what is kept anyway.
        #expect(most < 2 * reference.count + (600 << 10))
    }

    @Test func `use no number for what was queued before it was learned`() throws {
        let names = try #require(SharedName(prefix: []))
        let secret = try #require(SharedSecret.none)
        let keyring = try #require(SharedKeyring([secret]))
        var engine = Engine(
            SharedLevelOptions(server: .unix(path: "/"), names: names, keyring: keyring))
        func news(_ number: SharedToken?, after removals: UInt64 = 0) -> SharedToken? {
            engine.read(number, of: 1, after: removals)
        }
        #expect(engine.wasKnown(1, at: 0))
        let (first, second) = (SharedToken.drawn(), SharedToken.drawn())
        #expect(news(nil) == nil)
        #expect(news(first) == first)
        engine.learn(first, of: 1, as: 7)
        #expect(!engine.wasKnown(1, at: 6) && engine.wasKnown(1, at: 7))
        // It is no news again, but another one is.
        #expect(news(first) == nil)
        #expect(news(second) == second)
        // An own one holds for all that follows, and against lookups from before.
        let own = engine.remove(1)
        #expect(engine.number(of: 1) == own && engine.wasKnown(1, at: 0))
        #expect(news(second) == nil)
        #expect(news(second, after: 1) == second)
    }

    @Test func `know an alert of TLS from a reply`() {
        for (bytes, isTLS) in [
            ([0x15, 0x03, 0x03, 0x00], true), ([0x15], false), ([], false),
            (Array("+OK".utf8), false), (Array("-ERR".utf8), false),
        ] as [([UInt8], Bool)] {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
            defer { memory.deallocate() }
            memory.copyBytes(from: bytes)
            #expect(ClearText.isTLS(memory[..<bytes.count]) == isTLS)
        }
    }

    @Test func `read the text about a body's chunks, and nothing else as one`() throws {
        let token = SharedToken.drawn()
        let chunks = try #require(
            SharedChunks(body: token, chunkBytes: 65_536, count: 400_000))
        let text = Engine.chunksText(chunks)
        let read = try #require(Engine.chunks(text))
        #expect(read.token == token && read.count == 7)
        for wrong in [[], Array(text.dropLast()), text + [0x41], token.bytes + Array("70000".utf8)]
        {
            #expect(Engine.chunks(wrong) == nil)
        }
    }

    @Test func `give each generation and each number of a key an instance of its own`() {
        let all = (0..<4).map { _ in SharedToken.drawn() }
        let instances = [
            Engine.instance(all[0], nil), Engine.instance(all[1], nil),
            Engine.instance(all[0], all[2]), Engine.instance(all[0], all[3]),
            Engine.instance(all[1], all[2]),
        ]
        #expect(Set(instances).count == 5)
        #expect(instances[0] == all[0])
        #expect(instances[2] == Engine.instance(all[0], all[2]))
    }

    @Test func `heed no reply about a key that is older than its own removal`() throws {
        let names = try #require(SharedName(prefix: []))
        let secret = try #require(SharedSecret.none)
        let keyring = try #require(SharedKeyring([secret]))
        var engine = Engine(
            SharedLevelOptions(server: .unix(path: "/"), names: names, keyring: keyring))
        let others = SharedToken.drawn()
        #expect(engine.number(of: 1) == nil)
        let news = engine.read(others, of: 1, after: engine.removals)
        #expect(news == others && engine.number(of: 1) == nil)
        engine.learn(others, of: 1, as: 1)
        #expect(engine.number(of: 1) == others)
        let before = engine.removals
        let own = engine.remove(1)
        let old = engine.read(others, of: 1, after: before)
        #expect(old == nil && engine.number(of: 1) == own)
        _ = engine.read(nil, of: 1, after: before)
        #expect(engine.number(of: 1) == own)
        _ = engine.read(nil, of: 1, after: engine.removals)
        #expect(engine.number(of: 1) == nil)
    }

    @Test func `keep a body as long as somebody needs it`() throws {
        var bodies = KnownBodies()
        let body = SharedBody(digest: [1], token: .drawn())
        let chunks = try #require(
            SharedChunks(body: body.token, chunkBytes: 65_536, count: 100_000))
        // It is given up while it arrives.
        let first = bodies.begin(body)
        #expect(bodies.abandon(first) == nil && bodies.count == 0)
        let second = bodies.begin(body)
        bodies.send(second)
        guard case .dropBody(body, chunks: 1, wasPublished: false)? = bodies.abandon(second) else {
            Issue.record("not dropped")
            return
        }
        // It is complete, but nobody wants it.
        let third = bodies.begin(body)
        bodies.send(third)
        bodies.send(third)
        bodies.finish(third, chunks)
        #expect(bodies.abandon(third) == nil)
        #expect(bodies.place(third)?.chunks == chunks)
        guard case .dropBody(body, chunks: 2, wasPublished: false)? = bodies.release(third) else {
            Issue.record("not dropped")
            return
        }
        // What was only read here stays.
        let fourth = bodies.read(body, chunks)
        #expect(bodies.read(body, chunks) == fourth)
        #expect(bodies.release(fourth) == nil && bodies.count == 1)
        #expect(bodies.release(fourth) == nil && bodies.count == 0)
        // All that arrives ends with the process.
        bodies.send(bodies.begin(body))
        #expect(bodies.abandonAll().count == 1 && bodies.count == 0)
    }

    @Test func `have a reason for each error of the engine`() {
        let texts: [(String, SharedLevelReason)] = [
            ("READONLY You can't write", .readOnly), ("OOM command", .outOfMemory),
            ("LOADING Redis is", .loading), ("NOAUTH Authentication", .passwordRequired),
            ("WRONGPASS invalid", .wrongPassword), ("MOVED 1 1.2.3.4:5", .moved),
            ("NOPERM this user", .notPermitted), ("MISCONF Errors", .writesRefused),
            ("WRONGTYPE Operation", .foreign), ("ERR syntax", .refused),
            ("CLUSTERDOWN", .loading), ("MASTERDOWN", .readOnly),
        ]
        for (text, reason) in texts {
            #expect(SharedLevelReason(RedisReplyError(Array(text.utf8)).code) == reason)
        }
        for (error, reason) in [
            (RedisConnectionError.connectTimeout, SharedLevelReason.connectTimeout),
            (.transport(""), .unreachable), (.stalled, .stalled), (.handshakeTimeout, .stalled),
            (.closedByServer, .closedByServer), (.unexpectedReply, .protocolError),
            (.handshake(.isReplica), .readOnly), (.handshake(.isSentinel), .sentinel),
            (.handshake(.wrongPassword), .wrongPassword),
        ] {
            #expect(SharedLevelReason(error) == reason)
        }
        for (error, reason) in [
            (SharedRecordError.notOurs, SharedLevelReason.foreign), (.otherKey, .foreign),
            (.unknownMajor(2), .otherVersion), (.unsupportedField(0x8000), .otherVersion),
            (.unknownSecret(1), .otherSecret), (.wrongCode, .damaged), (.malformed, .damaged),
        ] {
            #expect(SharedLevelReason(error) == reason)
        }
        let tokens = Set(SharedLevelReason.allCases.map(\.rawValue))
        #expect(tokens.count == SharedLevelReason.allCases.count)
        #expect(
            tokens.allSatisfy { $0.allSatisfy { $0 == "_" || ("a"..."z").contains($0) } })
    }

    @Test func `count by reason, and by time`() {
        var statistics = SharedLevelStatistics()
        for reason in SharedLevelReason.allCases { #expect(statistics[reason] == 0) }
        statistics[.timeout] += 2
        #expect(statistics[.timeout] == 2 && statistics[.damaged] == 0)
        for milliseconds: Int64 in [0, 1, 2, 3, 32, 33, 5000] { statistics.took(milliseconds) }
        #expect(statistics.latencies == [2, 1, 1, 0, 0, 1, 2])
    }
}
