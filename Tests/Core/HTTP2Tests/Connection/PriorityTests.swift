import HTTP2
import TestSupport
import Testing

@Suite("RFC 9218, priorities,")
struct PriorityTests {
    @Test(
        arguments: [
            ("", 3, false), ("u=0", 0, false), ("u=7, i", 7, true), ("i", 3, true),
            ("i, u=1", 1, true), ("i=?0", 3, false), ("i=?1", 3, true), ("u=1,u=2", 2, false),
            ("u=1;a=2;b;c=\"x,y\" , i;q", 1, true), ("  u=2 ", 2, false), ("u=8", 3, false),
            ("u=-1", 3, false), ("u=1.0", 3, false), ("u=x", 3, false), ("u=\"1\"", 3, false),
            ("u", 3, false), ("i=1", 3, false), ("u=11", 3, false), ("u=?1", 3, false),
            ("x=(1 2);u=9, u=4", 4, false), ("x=\"a\\\",u=5\", u=6", 6, false),
            ("u=1, x=:aGk=:, i", 1, true), ("*a=1, u=5", 5, false),
            ("x.y-z_1=tok/en, u=5", 5, false),
            // No dictionaries.
            ("u=1,", 3, false), ("u=1,,i", 3, false), (",u=1", 3, false), ("u=1 i", 3, false),
            ("U=1", 3, false), ("u=1, x=\"a", 3, false), ("u=1, x=(a", 3, false), ("u=", 3, false),
            ("u=1, \u{1}", 3, false), ("u=1;", 3, false), ("1=u", 3, false),
            ("u=1, x=a)", 3, false),
            ("u=1, x=((a))", 3, false), ("u=1, 9", 3, false),
        ] as [(String, UInt8, Bool)])
    func `§4: a value is read as a dictionary, and what is unknown is ignored`(
        value: String, urgency: UInt8, isIncremental: Bool
    ) {
        let bytes = Array(value.utf8)
        let read = StreamPriority(reading: bytes.span)
        #expect(
            read == StreamPriority(urgency: urgency, isIncremental: isIncremental))
    }

    @Test func `§7.1: PRIORITY_UPDATE is read as it was written`() {
        for urgency in UInt8(0)...7 {
            for isIncremental in [true, false] {
                let priority = StreamPriority(urgency: urgency, isIncremental: isIncremental)
                let frames = WireFrame.all(in: written { $0.appendPriorityUpdate(1, priority) })
                let connection = TestConnection()
                connection.receive(.headers(1))
                connection.receive(frames)
                #expect(connection.seen.last == .priority(1, priority))
                #expect(connection.machine.priority(of: connection[1]) == priority)
            }
        }
    }

    @Test func `§7.1: PRIORITY_UPDATE may precede its stream, and counts for more than a field`() {
        let connection = TestConnection()
        connection.receive(
            .priorityUpdate(1, "u=2"), .priorityUpdate(3, "u=5"), .priorityUpdate(1, "u=1, i"),
            .headers(1), .headers(3), .headers(5))
        for id in [1, 3, 5] as [UInt32] {
            connection.machine.setPriority(connection[id], StreamPriority(urgency: 6))
        }
        let urgencies = [1, 3, 5].map { connection.machine.priority(of: connection[$0]).urgency }
        #expect(urgencies == [1, 5, 6])
    }

    @Test func `§7.1: of streams that are not open the latest few are remembered`() {
        let connection = TestConnection()
        let ids = stride(from: UInt32(1), to: 13, by: 2)
        for id in ids { connection.receive(.priorityUpdate(id, "u=0")) }
        for id in ids { connection.receive(.headers(id)) }
        let urgencies = ids.map { connection.machine.priority(of: connection[$0]).urgency }
        #expect(urgencies == [3, 3, 0, 0, 0, 0])
    }

    @Test func `§7.1: PRIORITY_UPDATE is of a stream that a client may open`() {
        expectFailure(.badStreamID, .protocolError, of: .priorityUpdate(0, "u=1"))
        expectFailure(.badStreamID, .protocolError, of: .priorityUpdate(2, "u=1"))
        expectFailure(
            .priorityUpdateFromServer, .protocolError, of: .priorityUpdate(1, "u=1"), as: .client)
        let connection = expectAccepted(.priorityUpdate(1, "u=1")) {
            $0.receive(.headers(1))
            $0.respond(1)
        }
        #expect(connection.seen.count == 1)
    }

    // MARK: Turns

    /// Opens streams with these priorities, all of which want to send.
    private static func sending(_ values: [String?]) -> TestConnection {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 1 << 20)]), .windowUpdate(0, 1 << 30))
        for (index, value) in values.enumerated() {
            let id = UInt32(index * 2 + 1)
            connection.receive(.headers(id))
            if let value {
                connection.machine.setPriority(
                    connection[id], StreamPriority(reading: Array(value.utf8).span))
            }
            _ = connection.sendHead(id, ends: false)
        }
        // In any order.
        for index in values.indices.reversed() {
            connection.machine.wantsToSend(connection[UInt32(index * 2 + 1)])
        }
        return connection
    }

    /// Whose turn it is, when each stream has so many frames of 16 KiB to send.
    private static func order(_ connection: TestConnection, frames: Int) -> [UInt32] {
        var left: [UInt32: Int] = [:]
        var order: [UInt32] = []
        while let id = connection.next {
            order.append(id)
            left[id, default: frames] -= 1
            _ = connection.sendData(id, 16_384, ends: left[id] == 0)
        }
        return order
    }

    @Test func `§10: the most urgent stream sends first`() {
        let connection = Self.sending(["u=7", "u=0", "u=3", "u=1"])
        #expect(Self.order(connection, frames: 2) == [3, 3, 7, 7, 5, 5, 1, 1])
    }

    @Test func `§10: streams that are needed whole send in the order of their opening`() {
        let connection = Self.sending(["u=3", "u=3", "u=3"])
        #expect(Self.order(connection, frames: 3) == [1, 1, 1, 3, 3, 3, 5, 5, 5])
    }

    @Test func `§10: incremental streams take turns, after those that are needed whole`() {
        let connection = Self.sending(["i", "i", "u=3", "i"])
        #expect(Self.order(connection, frames: 2) == [5, 5, 7, 3, 1, 7, 3, 1])
    }

    @Test func `§10: streams without a priority take turns`() {
        let connection = Self.sending([nil, nil, nil])
        #expect(Self.order(connection, frames: 2) == [5, 3, 1, 5, 3, 1])
    }

    @Test func `§10: turns are of bytes, not of frames`() {
        let connection = Self.sending([nil, nil])
        var sent: [UInt32: Int] = [:]
        for _ in 0..<2000 {
            guard let id = connection.next else { break }
            let count = id == 1 ? 16_384 : 100
            guard connection.sendable(id) >= count else { break }
            _ = connection.sendData(id, count)
            sent[id, default: 0] += count
        }
        let difference = abs(sent[1, default: 0] - sent[3, default: 0])
        #expect(sent[1, default: 0] > 100_000)
        #expect(difference <= 2 * 16_484)
    }

    @Test func `a stream without a window waits outside, and comes back with one`() {
        let connection = Self.sending(["u=0", "u=1"])
        connection.receive(.settings([(.initialWindowSize, 0)]))
        #expect(connection.next == nil)
        connection.receive(.windowUpdate(3, 5))
        #expect(connection.next == 3)
        _ = connection.sendData(3, 5)
        #expect(connection.next == nil)
        connection.receive(.settings([(.initialWindowSize, 10)]))
        #expect(connection.next == 1)
    }

    @Test func `nothing is sent without a window of the connection`() {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 1 << 20)]), .headers(1))
        _ = connection.sendHead(1, ends: false)
        connection.wantsToSend(1)
        while connection.next != nil { _ = connection.sendData(1, connection.sendable(1)) }
        #expect(connection.sendable(1) == 0)
        connection.receive(.windowUpdate(0, 1))
        #expect(connection.next == 1)
    }

    @Test func `a stream whose priority changes, or that ends, changes its place`() {
        let connection = Self.sending(["u=2", "u=3", "u=4"])
        connection.receive(.priorityUpdate(5, "u=1"))
        #expect(connection.next == 5)
        connection.receive(.reset(5))
        #expect(connection.next == 1)
        connection.machine.wantsNothingSent(connection[1])
        #expect(connection.next == 3)
        connection.wantsToSend(1)
        connection.reset(1)
        #expect(connection.next == 3)
        connection.release(3)
        #expect(connection.next == nil)
    }

    @Test func `any sequence leads to the same turns as sorting`() {
        var random = SeededRandom(seed: 9218)
        for _ in 0..<200 {
            let connection = Self.sending((0..<8).map { _ in nil })
            var wanting: [UInt32: UInt8] = [:]
            for id in stride(from: UInt32(1), to: 17, by: 2) {
                let urgency = UInt8(random.below(8))
                connection.machine.setPriority(connection[id], StreamPriority(urgency: urgency))
                wanting[id] = urgency
            }
            for _ in 0..<40 {
                let id = UInt32(random.below(8) * 2 + 1)
                if random.chance(50) {
                    connection.machine.wantsNothingSent(connection[id])
                    wanting[id] = nil
                } else {
                    connection.wantsToSend(id)
                    wanting[id] = connection.machine.priority(of: connection[id]).urgency
                }
                let expected = wanting.min { ($0.value, $0.key) < ($1.value, $1.key) }?.key
                #expect(connection.next == expected)
            }
        }
    }
}
