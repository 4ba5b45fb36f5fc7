import HTTP2
import TestSupport
import Testing

/// A stream as plainly as possible: who has ended it, and what either side may still send.
private struct ModelStream {
    var peerHasEnded: Bool
    var weHaveEnded = false
    var resetBy: StreamState?
    var hasSentHead = false
    /// What this side may send, in bytes.
    var window: Int
    /// What the peer may send, as it knows.
    var peerWindow = 65_535
    var waiting = 0

    var state: StreamState {
        if let resetBy { return resetBy }
        return switch (weHaveEnded, peerHasEnded) {
        case (false, false): .open
        case (true, false): .halfClosedLocal
        case (false, true): .halfClosedRemote
        case (true, true): .ended
        }
    }
}

/// A server under random frames of a client that keeps to the rules, and random acts of the
/// program, beside a model.
private final class Model {
    let connection: TestConnection
    var random: SeededRandom
    var streams: [UInt32: ModelStream] = [:]
    var next: UInt32 = 1
    var window = 65_535
    var peerWindow: Int
    var initialWindow = 65_535
    let limits: HTTP2Limits

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        limits = HTTP2Limits(
            streams: 8, resets: 1000, connectionWindow: 65_535 + Int32(random.below(2)) * 40_000)
        peerWindow = Int(limits.connectionWindow)
        connection = TestConnection(
            limits: limits, piece: random.pick([Int.max, 1, 3, 4096]))
    }

    private func any(_ isSuitable: (ModelStream) -> Bool) -> UInt32? {
        let ids = streams.filter { isSuitable($0.value) }.keys.sorted()
        return ids.isEmpty ? nil : random.pick(ids)
    }

    func step() {
        connection.now += Int64(random.below(20))
        switch random.below(10) {
        case 0: open()
        case 1: sendContent()
        case 2: resetByPeer()
        case 3: enlarge()
        case 4: changeSettings()
        case 5: respond()
        case 6, 7: send()
        case 8: take()
        default: end()
        }
        noteAnnouncements()
        check()
    }

    // MARK: The client

    private func open() {
        guard streams.values.count(where: { $0.state != .ended }) < limits.streams,
            streams.count < 2 * limits.streams
        else { return }
        next += UInt32(random.below(2) * 2)
        let ends = random.chance(50)
        connection.receive(.headers(next, ends: ends))
        streams[next] = ModelStream(peerHasEnded: ends, window: initialWindow)
        next += 2
    }

    private func sendContent() {
        guard let id = any({ $0.state == .open || $0.state == .halfClosedLocal }),
            let stream = streams[id]
        else { return }
        let most = min(16_000, stream.peerWindow, peerWindow)
        let padding = random.chance(30) ? random.below(min(256, max(1, most - 1))) : -1
        let count = random.below(max(1, most - padding))
        guard count + padding + 1 <= most else { return }
        let ends = random.chance(20)
        let frame: WireFrame =
            padding < 0
            ? .data(id, count: count, ends: ends)
            : .padded(
                id, [UInt8](repeating: 0x61, count: count), padding: UInt8(padding), ends: ends)
        connection.receive(frame)
        let length = count + padding + 1
        streams[id]?.peerWindow -= length
        peerWindow -= length
        streams[id]?.waiting += count
        if ends { streams[id]?.peerHasEnded = true }
    }

    private func resetByPeer() {
        guard random.chance(30), let id = any({ !$0.state.isClosed }) else { return }
        connection.receive(.reset(id))
        streams[id]?.resetBy = .resetByPeer
        streams[id]?.waiting = 0
    }

    private func enlarge() {
        let increment = 1 + random.below(50_000)
        if random.chance(50) {
            connection.receive(.windowUpdate(0, UInt32(increment)))
            window += increment
        } else if let id = any({ !$0.state.isClosed }) {
            connection.receive(.windowUpdate(id, UInt32(increment)))
            streams[id]?.window += increment
        }
    }

    private func changeSettings() {
        guard random.chance(20) else { return }
        let size = random.pick([0, 1, 1000, 65_535, 200_000])
        connection.receive(.settings([(.initialWindowSize, UInt32(size))]))
        for id in streams.keys { streams[id]?.window += size - initialWindow }
        initialWindow = size
    }

    // MARK: The program

    private func respond() {
        guard let id = any({ $0.state.isSending && !$0.hasSentHead }) else { return }
        let ends = random.chance(20)
        let isSent = connection.sendHead(id, ends: ends)
        #expect(isSent)
        streams[id]?.hasSentHead = true
        if ends { streams[id]?.weHaveEnded = true } else { connection.wantsToSend(id) }
    }

    private func send() {
        guard let id = connection.next, let stream = streams[id] else {
            let canSend = streams.values.contains {
                $0.state.isSending && $0.hasSentHead && $0.window > 0
            }
            #expect(!canSend || window <= 0)
            return
        }
        #expect(stream.window > 0 && window > 0 && stream.hasSentHead)
        let count = 1 + random.below(connection.sendable(id))
        let ends = random.chance(20)
        let isSent = connection.sendData(id, count, ends: ends)
        #expect(isSent)
        streams[id]?.window -= count
        window -= count
        if ends { streams[id]?.weHaveEnded = true }
    }

    private func take() {
        guard let id = any({ $0.waiting > 0 }), let stream = streams[id] else { return }
        let count = random.chance(50) ? stream.waiting : 1 + random.below(stream.waiting)
        connection.consume(id, count)
        streams[id]?.waiting -= count
    }

    private func end() {
        if random.chance(30), let id = any({ !$0.state.isClosed }) {
            connection.reset(id)
            streams[id]?.resetBy = .resetByUs
            streams[id]?.waiting = 0
        } else if let id = any({ $0.state.isClosed }) {
            connection.release(id)
            streams[id] = nil
        }
    }

    // MARK: What must hold

    private func noteAnnouncements() {
        for frame in connection.sent where frame.type == .windowUpdate {
            let increment = Int(frame.number(at: 0))
            if frame.stream == 0 {
                peerWindow += increment
            } else {
                streams[frame.stream]?.peerWindow += increment
            }
        }
        for frame in connection.sent where frame.type == .ping && !frame.isAcknowledgment {
            connection.receive(.ping(frame.payload, ack: true))
        }
        connection.sent = []
    }

    private func check() {
        #expect(!connection.hasFailed)
        for (id, stream) in streams {
            let state = connection.state(id)
            #expect(state == stream.state, "\(id)")
            let sendable =
                stream.state.isSending ? max(0, min(window, stream.window, 16_384)) : 0
            #expect(connection.sendable(id) == sendable, "\(id)")
            // A peer whose content is taken never waits with less than half a window.
            if stream.state.isReceiving, stream.waiting == 0 {
                #expect(stream.peerWindow >= 65_535 / 2, "\(id)")
            }
            #expect(stream.peerWindow + stream.waiting <= Int(limits.greatestStreamWindow))
        }
        let waiting = streams.values.reduce(0) { $0 + $1.waiting }
        if waiting == 0 { #expect(peerWindow >= Int(limits.connectionWindow) / 2) }
        #expect(peerWindow + waiting <= Int(limits.greatestConnectionWindow))
    }
}

@Suite("A connection beside a model")
struct ModelTests {
    @Test(arguments: 1...60)
    func `has the states and windows of the model after every step`(seed: Int) {
        let model = Model(seed: UInt64(seed))
        for _ in 0..<400 { model.step() }
        #expect(model.next > 20)
    }
}
