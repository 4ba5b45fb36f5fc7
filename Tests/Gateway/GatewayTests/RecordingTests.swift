import Documents
import HTTPCore
import Locking
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A recording")
struct RecordingTests {
    private func recording(limit: Int = Recording.waitingBytes) throws -> Recording {
        var recording = Recording(try .all(), limit: limit, at: 0)
        recording.begin()
        return recording
    }

    /// What its reader gets now; `nil` if nothing is due.
    private func next(_ recording: inout Recording, at moment: Int64 = 0) -> RecordingPiece? {
        guard recording.wait({ _ in }), recording.isDue() else { return nil }
        return recording.takePiece(at: moment)?.piece
    }

    private func flow(_ number: UInt64, client: UInt32 = 1, bytes: Int = 0) -> RecordedFlow {
        RecordedFlow(
            HeldFlow(client: client, exchange: number),
            .of(response: [UInt8](repeating: 0x61, count: bytes)))
    }

    private func numbers(_ piece: RecordingPiece?) -> [UInt64]? {
        piece?.flows.map(\.flow.record.exchange)
    }

    @Test func `begins when all workers record, and then says so`() throws {
        var recording = Recording(try .all(), at: 0)
        let none = next(&recording)
        #expect(none?.flows.count == nil)
        recording.begin()
        let isDue = recording.isDue()
        #expect(isDue)
        let first = recording.takePiece(at: 0)?.piece
        #expect(first?.isFirst == true)
        let nothing = next(&recording)
        #expect(nothing?.flows.count == nil, "there is nothing more to say")
    }

    @Test func `sends what has ended, the oldest first, when its reader is there`() throws {
        var recording = try recording()
        _ = next(&recording)
        recording.add(flow(1))
        recording.add(flow(2))
        let isDue = recording.isDue()
        #expect(!isDue, "nobody waits")
        let both = numbers(next(&recording))
        #expect(both == [1, 2])
        let none = next(&recording)
        #expect(none?.flows.count == nil)
    }

    @Test func `sends much in several pieces`() throws {
        var recording = try recording()
        for number in 1...100 { recording.add(flow(UInt64(number))) }
        let first = numbers(next(&recording)) ?? []
        let second = numbers(next(&recording)) ?? []
        #expect(first.count < 100)
        #expect(first + second == Array(1...100))
        for number in 1...3 { recording.add(flow(UInt64(number), bytes: 1 << 20)) }
        let large = numbers(next(&recording))
        #expect(large == [1], "a piece has no more than fits")
    }

    @Test(arguments: [false, true])
    func `counts a body with codings as what it may become`(isCoded: Bool) throws {
        var recording = try recording()
        let fields = isCoded ? "CONTENT-encoding: gzip\r\n" : "X-Content-Encoding: gzip\r\n"
        for number in UInt64(1)...3 {
            let held = HeldFlow(
                exchange: number,
                extra: HeldFlow.Extra(responseHead: Array("HTTP/1.1 200 OK\r\n\(fields)".utf8)))
            recording.add(RecordedFlow(held, .of(response: [0x61])))
        }
        let sent = numbers(next(&recording))
        #expect(sent == (isCoded ? [1] : [1, 2, 3]))
        let rest = numbers(next(&recording))
        #expect(rest == (isCoded ? [2] : nil))
    }

    @Test func `drops what a slow reader does not take, of whom the most waits, and counts it`()
        throws
    {
        var recording = try recording(limit: 10 * flow(30, bytes: 1000).bytes)
        recording.add(flow(1, client: 7, bytes: 1000))
        for number in 2...30 { recording.add(flow(UInt64(number), client: 8, bytes: 1000)) }
        let piece = next(&recording)
        #expect(piece?.dropped == 20)
        #expect(numbers(piece) == [1] + Array(22...30))
        let text = piece?.text(HAREntryTests.names) ?? ""
        #expect(text.contains("{\"type\":\"dropped\",\"count\":20}\n"))
    }

    @Test func `finds what waits behind many that were dropped`() throws {
        var recording = try recording(limit: 4 * flow(1, bytes: 1000).bytes)
        recording.add(flow(1, client: 7))
        for number in 2...25_000 { recording.add(flow(UInt64(number), client: 8, bytes: 1000)) }
        var found: [UInt64] = []
        var pieces = 0
        while found.last != 25_000, pieces < 10, let piece = next(&recording) {
            found += numbers(piece) ?? []
            pieces += 1
        }
        #expect(found.first == 1)
        #expect(found.dropFirst().elementsEqual((25_002 - UInt64(found.count))...25_000))
        let nothing = next(&recording)
        #expect(nothing?.flows.count == nil)
    }

    @Test func `sends what waits before it ends, and nothing more`() throws {
        var recording = try recording()
        recording.add(flow(1))
        recording.stop(because: .bye)
        recording.add(flow(2))
        let last = next(&recording)
        #expect(numbers(last) == [1])
        #expect(last?.end == .bye)
        let waits = recording.wait { _ in }
        #expect(!waits, "it has everything")
    }

    @Test func `sends an empty line after a silence`() throws {
        var recording = try recording()
        _ = next(&recording)
        recording.tick(at: Recording.silenceMilliseconds - 1)
        let none = next(&recording)
        #expect(none?.flows.count == nil)
        recording.tick(at: Recording.silenceMilliseconds)
        let isDue = recording.isDue()
        #expect(isDue)
        let text = recording.takePiece(at: 0)?.piece.text(HAREntryTests.names)
        #expect(text == "\n")
    }

    // MARK: Options

    private func options(
        _ query: String, isFull: Bool = true, allowsSecrets: Bool = false
    ) -> String {
        do throws(AdminError) {
            let options = try RecordingOptions(
                AdminQuery(target: "/api/v1/record?" + query), isFull: isFull,
                allowsSecrets: allowsSecrets)
            return "\(options.bodyBytes) \(options.hasSecrets)"
        } catch {
            return "\(error.status) \(error.kind)"
        }
    }

    @Test func `has secrets only where the configuration allows it, for those who have proof`() {
        #expect(options("secrets=true") == "403 secrets-not-allowed")
        #expect(options("secrets=true", allowsSecrets: true) == "0 true")
        #expect(options("secrets=true", isFull: false, allowsSecrets: true) == "403 token-needed")
    }

    @Test func `has bodies only for those who have proof`() {
        #expect(options("bodies=65536") == "65536 false")
        #expect(options("bodies=1", isFull: false) == "403 token-needed")
        #expect(options("", isFull: false) == "0 false")
    }

    @Test(arguments: ["bodies=-1", "bodies=4194305", "bodies=x", "secrets=1", "limit=1", "x=1"])
    func `refuses what it does not know`(query: String) {
        #expect(options(query, allowsSecrets: true) == "400 invalid-query")
    }

    // MARK: Room

    @Test func `gives a client network half of the room for bodies`() {
        let room = ContentRoom(limit: 100)
        let (one, other) = (IPNetwork(client: .v4(1)), IPNetwork(client: .v4(2)))
        var lease: (any ContentLease)? = room.lease(for: one)
        #expect(lease?.take(50) == true)
        #expect(lease?.take(1) == false)
        let second = room.lease(for: other)
        #expect(second.take(50))
        #expect(!room.lease(for: IPNetwork(client: .v4(3))).take(1))
        #expect(room.taken == 100)
        lease = nil
        #expect(room.taken == 50)
        _ = second
    }

    @Test func `keeps nothing behind what there was no room for`() {
        let lease = ContentRoom(limit: 8).lease(for: IPNetwork(client: .v4(1)))
        let contents = KeptContents(limit: 100, lease: lease)
        func send(_ text: String) { Array(text.utf8).withUnsafeBytes { contents.sent($0) } }
        send("abc")
        send("defg")
        send("h")
        #expect(contents.response.bytes == Array("abc".utf8))
        #expect(contents.response.isCut)
    }
}

@Suite("Recordings: all of them")
struct RecordingsTests {
    private func begun(_ recordings: Recordings, _ options: RecordingOptions) -> LocalPieces? {
        if case .records(let pieces) = recordings.begin(options) { pieces } else { nil }
    }

    @Test func `there are only so many, and nothing is left of one whose reader is gone`() throws {
        let recordings = Recordings(labels: RouteLabels())
        var pieces: [LocalPieces] = []
        for _ in 0..<Recordings.limit {
            pieces.append(try #require(begun(recordings, try .all())))
        }
        #expect(begun(recordings, try .all()) == nil)
        #expect(recordings.isActive)
        #expect(recordings.wantsContents)
        pieces = []
        #expect(recordings.isEmpty)
        #expect(!recordings.isActive)
        #expect(!recordings.wantsContents)
        recordings.close()
    }

    @Test func `readers are sent something when there is no place`() throws {
        let recordings = Recordings(labels: RouteLabels())
        let sent = Locked<[Int: Int]>([:])
        let pieces = try (0..<Recordings.limit).map { _ in
            try #require(begun(recordings, try .all()))
        }
        func read(_ number: Int) {
            let read = pieces[number]
            read { _ in sent.withLock { $0[number, default: 0] += 1 } }
        }
        for number in pieces.indices { read(number) }
        eventually("they are greeted") { sent.withLock { $0.count == Recordings.limit } }
        for number in pieces.indices { read(number) }
        guard case .tooMany = recordings.begin(try .all()) else {
            Issue.record("it was taken")
            return
        }
        eventually("they are asked") { sent.withLock { $0.values.allSatisfy { $0 == 2 } } }
        recordings.close()
    }

    @Test func `bodies are kept for an exchange that one of them may want`() throws {
        let recordings = Recordings(labels: RouteLabels())
        #expect(recordings.contents(of: HeldFlow()) == nil)
        let filter = try FlowFilter(AdminQuery(target: "/?host=a.test"), isFull: true)
        let pieces = begun(
            recordings, RecordingOptions(filter, isFull: true, bodyBytes: 10))
        #expect(recordings.contents(of: HeldFlow()) == nil)
        let wanted = HeldFlow("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        #expect(recordings.contents(of: wanted)?.limit == 10)
        _ = pieces
        recordings.close()
    }

    @Test func `no others are taken while the gateway ends`() throws {
        let recordings = Recordings(labels: RouteLabels())
        recordings.end(because: .bye, isLast: true)
        guard case .ending = recordings.begin(try .all()) else {
            Issue.record("it was taken")
            return
        }
        recordings.takeReaders()
        #expect(begun(recordings, try .all()) != nil)
        recordings.close()
    }

    @Test func `a worker that hangs is waited for, but not forever`() throws {
        let rounds = Locked<[RecordingRound]>([])
        let recordings = Recordings(labels: RouteLabels(), workers: 1) { round in
            rounds.withLock { $0.append(round) }
        }
        let pieces = try #require(begun(recordings, try .all()))
        let got = Locked<[String]>([])
        pieces { piece in
            if case .bytes(let bytes) = piece {
                got.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
            }
        }
        #expect(recordings.tick(at: 0))
        #expect(got.withLock { $0.isEmpty })
        #expect(recordings.tick(at: .max))
        eventually("it begins without it") { got.withLock { $0.count == 1 } }
        #expect(got.withLock { $0.first?.contains("\"hello\"") ?? false })
        recordings.close()
    }
}
