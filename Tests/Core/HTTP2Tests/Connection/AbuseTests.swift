import HTTP2
import TestSupport
import Testing

/// Attacks, on what they cost: how many requests get through, how much is answered, and when it
/// ends. No time passes, so nothing is refilled by it.
@Suite("RFC 9113 §10.5, what a connection puts up with,")
struct AbuseTests {
    /// Repeats frames until the connection ends, or this many times.
    ///
    /// - Returns: the number of repetitions that it took.
    @discardableResult
    private static func repeated(
        _ connection: TestConnection, _ most: Int = 20_000,
        _ frames: (UInt32) -> [WireFrame]
    ) -> Int {
        for index in 0..<most {
            connection.receive(frames(UInt32(index) * 2 + 1))
            if connection.hasFailed { return index + 1 }
        }
        return most
    }

    private static func requests(_ connection: TestConnection) -> Int {
        connection.seen.count { if case .headers = $0 { true } else { false } }
    }

    private static func expectCalm(
        _ connection: TestConnection, _ token: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(connection.seen.contains(.warned), sourceLocation: sourceLocation)
        #expect(connection.failure == .abuse, sourceLocation: sourceLocation)
        #expect(
            connection.goaways.map(\.code) == [.noError, .enhanceYourCalm],
            sourceLocation: sourceLocation)
        #expect(
            connection.goaways.last?.text.contains(token + " ") == true,
            "\(connection.goaways.last?.text ?? "")", sourceLocation: sourceLocation)
        let budget = connection.machine.budget
        #expect("\(budget.chiefCause.token)" == token, sourceLocation: sourceLocation)
        #expect(budget.text.contains(token + " "), sourceLocation: sourceLocation)
    }

    @Test(arguments: [true, false])
    func `ends Rapid Reset before more requests than streams get through`(isReleased: Bool) {
        let connection = TestConnection()
        Self.repeated(connection) { id in
            if isReleased, id > 1 { connection.release(id - 2) }
            return [.headers(id), .reset(id)]
        }
        Self.expectCalm(connection, "resets-received")
        #expect(Self.requests(connection) <= 100)
    }

    @Test(
        arguments: [
            { [.headers($0), .data($0, count: 1)] },
            { [.headers($0), .windowUpdate($0, 0)] },
            { [.headers($0), .windowUpdate($0, 0x7FFF_FFFF)] },
            { [.headers($0), .priority($0, dependingOn: $0)] },
            { [.headers($0), WireFrame(type: .priority, stream: $0, payload: [0])] },
            { [.headers($0), .headers($0)] },
            { [.headers($0, ends: false), .headers($0, ends: false)] },
        ] as [@Sendable (UInt32) -> [WireFrame]])
    func `ends streams that this side is made to reset`(
        frames: @Sendable (UInt32) -> [WireFrame]
    ) {
        let connection = TestConnection()
        Self.repeated(connection) { id in
            if id > 1 { connection.release(id - 2) }
            return frames(id)
        }
        Self.expectCalm(connection, "resets-caused")
        #expect(Self.requests(connection) <= 100)
    }

    @Test func `ends a flood of malformed heads`() {
        let connection = TestConnection()
        Self.repeated(connection) { id in
            if id > 1 {
                connection.machine.count(.malformedMessage, now: connection.now)
                connection.reset(id - 2, .protocolError)
                connection.release(id - 2)
            }
            return [.headers(id)]
        }
        Self.expectCalm(connection, "malformed-messages")
        #expect(Self.requests(connection) <= 101)
    }

    @Test func `ends a flood of heads that are refused for their size, though all are answered`() {
        let connection = TestConnection()
        Self.repeated(connection) { id in
            if id > 1 {
                connection.machine.count(.fieldsRefused, now: connection.now)
                _ = connection.sendHead(id - 2, ends: true)
                connection.release(id - 2)
            }
            return [.headers(id)]
        }
        Self.expectCalm(connection, "fields-refused")
        #expect(Self.requests(connection) <= 401)
    }

    @Test(
        arguments: [
            ("pings", 402, [.ping()]),
            ("pings", 401, [.ping(ack: true)]),
            ("settings", 201, [.settings([(.initialWindowSize, 1000)])]),
            ("settings", 201, [.settingsAcknowledgment]),
            ("priorities", 801, [.priority(1, dependingOn: 3)]),
            ("priorities", 801, [.priorityUpdate(1, "u=1")]),
            ("unknown-frames", 801, [WireFrame(type: FrameType(rawValue: 77))]),
            ("window-updates", 6401, [.windowUpdate(0, 1)]),
            ("goaways", 201, [.goaway(0)]),
            ("late-frames", 801, [.reset(1)]),
            ("resets-caused", 101, [.data(1, count: 1)]),
        ] as [(String, Int, [WireFrame])])
    func `ends a flood of frames that bring nothing`(
        token: String, most: Int, frames: [WireFrame]
    ) {
        let connection = TestConnection()
        connection.receive(.headers(1))
        connection.respond(1)
        let count = Self.repeated(connection) { _ in frames }
        #expect(count <= most)
        Self.expectCalm(connection, token)
    }

    @Test(
        arguments: [
            ("empty-data", 401, .data(1, count: 0)),
            ("empty-data", 401, .padded(1, [], padding: 0)),
            ("tiny-data", 3300, .data(1, count: 1)),
            ("tiny-windows", 401, .windowUpdate(1, 1)),
        ] as [(String, Int, WireFrame)])
    func `ends a flood on an open stream`(token: String, most: Int, frame: WireFrame) {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 0)]), .headers(1, ends: false))
        let count = Self.repeated(connection) { _ in
            connection.consume(1, 1)
            return [frame]
        }
        #expect(count <= most)
        Self.expectCalm(connection, token)
    }

    @Test func `ends a flood of CONTINUATION, with content and without`() {
        for (part, most) in [([], 201), ([1], 801)] as [([UInt8], Int)] {
            let connection = TestConnection()
            connection.receive(.headers(1, complete: false))
            let count = Self.repeated(connection) { _ in [.continuation(1, complete: false, part)] }
            #expect(count <= most)
            Self.expectCalm(connection, part.isEmpty ? "empty-continuations" : "continuations")
            #expect(connection.seen.count == 2)
        }
    }

    @Test func `ends streams beyond the limit`() {
        let connection = TestConnection()
        Self.repeated(connection) { [.headers($0)] }
        Self.expectCalm(connection, "streams-refused")
        #expect(Self.requests(connection) == 100)
        #expect(connection.sent.count < 400)
    }

    @Test func `ends padding without content`() {
        let connection = TestConnection()
        connection.receive(.headers(1, ends: false))
        let count = Self.repeated(connection) { _ in [.padded(1, [1], padding: 255)] }
        #expect(count < 3300)
        #expect(connection.failure == .abuse)
    }

    @Test func `ends any mixture as soon as one attack alone`() {
        let attacks: [(UInt32) -> [WireFrame]] = [
            { [.headers($0), .reset($0)] }, { _ in [.ping()] }, { _ in [.settings()] },
            { _ in [.priority(1, dependingOn: 3)] }, { [.headers($0), .windowUpdate($0, 0)] },
            { _ in [WireFrame(type: FrameType(rawValue: 77))] },
        ]
        var random = SeededRandom(seed: 6)
        for _ in 0..<20 {
            let connection = TestConnection()
            let count = Self.repeated(connection) { id in
                for ref in connection.streams.keys { connection.release(ref) }
                return random.pick(attacks)(id)
            }
            #expect(count < 900)
            #expect(connection.failure == .abuse)
            #expect(Self.requests(connection) <= 100)
        }
    }

    @Test func `answers nothing once it has ended`() {
        let connection = TestConnection()
        Self.repeated(connection) { [.headers($0), .reset($0)] }
        let sent = connection.sent.count
        let seen = connection.seen.count
        connection.receive((0..<1000).flatMap { _ in [WireFrame.ping(), .headers(20_001)] })
        #expect(connection.sent.count == sent && connection.seen.count == seen)
    }

    // MARK: What real clients do

    @Test func `does not mind a browser that leaves pages`() {
        let connection = TestConnection()
        var id: UInt32 = 1
        for _ in 0..<50 {
            // A page: a document and 60 images, of which 30 are cancelled as they load.
            let ids = stride(from: id, to: id + 122, by: 2)
            connection.receive(ids.map { .headers($0) })
            for (index, each) in ids.enumerated() where index < 31 { connection.respond(each) }
            connection.now += 300
            for each in ids.dropFirst(31) {
                connection.receive(.reset(each))
                connection.release(each)
            }
            id += 122
            connection.now += 1000
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind requests whose deadlines pass`() {
        let connection = TestConnection()
        var id: UInt32 = 1
        // 50 at a time, none of which is answered within its second.
        for _ in 0..<200 {
            let ids = stride(from: id, to: id + 100, by: 2)
            connection.receive(ids.map { .headers($0) })
            connection.now += 1000
            for each in ids {
                connection.receive(.reset(each))
                connection.release(each)
            }
            id += 100
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind a client that announces every frame`() {
        let connection = TestConnection()
        connection.receive(.headers(1))
        _ = connection.sendHead(1, ends: false)
        for _ in 0..<20_000 {
            let isSent = connection.sendData(1, 10)
            #expect(isSent)
            connection.receive(.windowUpdate(1, 10), .windowUpdate(0, 10))
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind small messages on a stream, with time between them`() {
        let connection = TestConnection()
        connection.receive(.headers(1, ends: false))
        for _ in 0..<20_000 {
            connection.seen.removeAll { $0 != .warned }
            connection.receive(.data(1, count: 12))
            connection.consume(1, 12)
            connection.now += 10
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind PING for every message that is sent`() {
        let connection = TestConnection()
        connection.receive(.headers(1))
        _ = connection.sendHead(1, ends: false)
        for _ in 0..<5000 {
            let isSent = connection.sendData(1, 10)
            #expect(isSent)
            connection.receive(.ping(), .windowUpdate(1, 10), .windowUpdate(0, 10))
        }
        #expect(connection.counted(.ping) == 5000)
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `says what a caller that reads no more has not been told`() {
        let connection = TestConnection()
        connection.receive(.headers(1))
        let never = connection.machine.takeUnreported()
        #expect(never == nil)
        while connection.goaways.isEmpty {
            connection.machine.count(.malformedMessage, now: connection.now)
            connection.takeControl()
        }
        #expect(!connection.seen.contains(.warned))
        let warned = connection.machine.takeUnreported()
        let again = connection.machine.takeUnreported()
        #expect(warned == .warned && again == nil)
        for _ in 0..<20_000 {
            connection.machine.count(.malformedMessage, now: connection.now)
        }
        let failed = connection.machine.takeUnreported()
        #expect(failed == .failed(.abuse))
    }

    @Test func `does not mind PING every second`() {
        let connection = TestConnection()
        for _ in 0..<10_000 {
            connection.receive(.ping())
            connection.now += 1000
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind requests that are answered`() {
        let connection = TestConnection()
        for id in stride(from: UInt32(1), to: 20_000, by: 2) {
            connection.receive(.headers(id), .windowUpdate(0, 1000))
            connection.respond(id)
        }
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `does not mind a client that does not know the limit yet`() {
        let connection = TestConnection(isOpen: false)
        connection.receive(
            TestConnection.beginning(for: .server)
                + stride(from: UInt32(1), to: 2001, by: 2).flatMap { WireFrame.headers($0).bytes })
        #expect(connection.resets.count == 900)
        #expect(!connection.seen.contains(.warned))
    }

    @Test func `what is counted has a name of its own`() {
        #expect(Set(Abuse.allCases.map { "\($0.token)" }).count == Abuse.allCases.count)
        #expect(Abuse.allCases.allSatisfy { $0.cost > 0 })
    }

    @Test func `reasons have tokens and explanations of their own`() {
        let connection = ConnectionReason.allCases
        let stream = StreamReason.allCases
        #expect(Set(connection.map { "\($0.reason)" }).count == connection.count)
        #expect(Set(connection.map { "\($0.explanation)" }).count == connection.count)
        #expect(Set(stream.map { "\($0.reason)" }).count == stream.count)
        #expect(Set(stream.map { "\($0.explanation)" }).count == stream.count)
    }
}
