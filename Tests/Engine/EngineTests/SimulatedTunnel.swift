import CLinux

@testable import PinfoldEngine

/// Both far ends of a tunnel, or of a switched protocol: what one sends the other must receive,
/// completely and in order, unless one of them breaks off.
final class SimulatedTunnel {
    private final class End {
        let descriptor: Int32
        /// What it sends.
        let content: [UInt8]
        var sent: Int
        var hasFinished = false
        /// It gets a head first.
        var awaitsHead: Bool
        var head: [UInt8] = []
        var received = 0
        /// It has read the end.
        var hasReadAll = false
        var isOver: Bool { hasFinished && hasReadAll }

        init(_ descriptor: Int32, content: [UInt8], sent: Int, awaitsHead: Bool) {
            self.descriptor = descriptor
            self.content = content
            self.sent = sent
            self.awaitsHead = awaitsHead
        }
    }

    private unowned let world: SimulatedWorld
    private let number: Int
    private let status: Int
    private let client: End
    private let server: End
    /// Which one it is of; others may follow in the same object.
    private weak var exchange: Exchange?
    private let exchangeID: UInt64
    /// One of them did not end properly, or nothing moved for too long.
    private var isBroken = false
    /// Its connection is to be closed.
    private(set) var isClosed = false
    /// When one of them last sent something that a relay surely could pass on. What is sent while
    /// the other has not taken everything may wait in the relay, which counts as idle then; what
    /// the other takes, a relay does not see.
    private var passedAt: Int64
    private let idleMilliseconds: Int64
    /// Whether some policies end it.
    private let isDoubtful: Bool
    /// Its worker, and how often that had loaded another configuration when the request began.
    private let worker: Int
    private let reloads: Int

    /// - Parameter early: what the client sent before there was a tunnel.
    init(
        _ world: SimulatedWorld, _ request: SimulatedRequest, of exchange: Exchange, client: Int32,
        server: Int32, early: [UInt8]
    ) {
        self.world = world
        self.exchange = exchange
        exchangeID = exchange.report.id
        number = request.number
        status = request.target == nil ? 101 : 200
        (worker, reloads) = (request.worker, request.reloads)
        isDoubtful =
            request.target?.name.addresses.contains { $0.isAllowed.contains(false) } ?? false
        let size = world.random.chance(4) ? 300_000 : 3000
        self.client = End(
            client, content: early + world.random.bytes(world.random.below(size)),
            sent: early.count, awaitsHead: true)
        self.server = End(
            server, content: world.random.bytes(world.random.below(size)), sent: 0,
            awaitsHead: false)
        passedAt = world.now
        // An upgrade goes by the policy of a later time, which may be the strictest one.
        idleMilliseconds =
            request.target == nil
            ? SimulationPolicies.shortestTunnelMilliseconds : request.tunnelMilliseconds
    }

    deinit {
        close(client.descriptor)
        close(server.descriptor)
    }

    var isOver: Bool { client.isOver && server.isOver }

    func noteClosed() {
        if isClosed { world.fail("tunnel \(number) is closed twice") }
        isClosed = true
    }

    /// One of them sends, takes, finishes or breaks off, or the gateway cuts both.
    func step() {
        let isClient = world.random.chance(50)
        let (end, other) = isClient ? (client, server) : (server, client)
        guard !end.isOver else { return }
        switch world.isSettling ? world.random.below(80) : world.random.below(100) {
        case 0..<40: send(end, to: other)
        case 40..<98: receive(end, from: other)
        case 98 where !isClosed: cutOff()
        default:
            world.note("breaks a tunnel off", isClient ? 0 : 1, number)
            isBroken = true
            (end.hasFinished, end.hasReadAll) = (true, true)
            shutdown(end.descriptor, Int32(SHUT_RDWR))
        }
    }

    /// What happens to an exchange whose state machine got an impossible event, or whose process
    /// ends.
    func cutOff() {
        guard let exchange, exchange.report.id == exchangeID else {
            return world.fail("tunnel \(number) is open, and its exchange is over")
        }
        world.note("cuts a tunnel off", 0, number)
        isBroken = true
        exchange.cutOff()
        if !isClosed { world.fail("tunnel \(number) outlives its exchange") }
    }

    private func send(_ end: End, to other: End) {
        guard !end.hasFinished else { return }
        let left = end.content.count - end.sent
        guard left > 0 else {
            end.hasFinished = true
            _ = shutdown(end.descriptor, Int32(SHUT_WR))
            return
        }
        let count = world.isSettling ? left : 1 + world.random.below(left)
        let sent = end.content.withUnsafeBytes {
            CLinux.send(
                end.descriptor, $0.baseAddress.map { $0 + end.sent }, count, Int32(MSG_NOSIGNAL))
        }
        if sent > 0 {
            if other.received == end.sent { passedAt = world.now }
            end.sent += sent
        } else if sent < 0, errnoNow != EAGAIN {
            end.hasFinished = true
            overEarly()
        }
    }

    private var errnoNow: Int32 { __errno_location().pointee }

    private func receive(_ end: End, from other: End) {
        guard !end.hasReadAll else { return }
        var bytes = [UInt8](
            repeating: 0, count: world.isSettling ? 1 << 19 : 1 + world.random.below(8000))
        let count = recv(end.descriptor, &bytes, bytes.count, 0)
        if count > 0 {
            return take(bytes[0..<count], end, from: other)
        }
        if count == 0 {
            end.hasReadAll = true
            let isWhole = other.hasFinished && end.received == other.content.count
            if !isWhole { overEarly() }
        } else if errnoNow != EAGAIN {
            end.hasReadAll = true
            overEarly()
        }
    }

    /// An end without the other's last byte: only if something was wrong.
    private func overEarly() {
        let wasIdle = world.now - passedAt >= idleMilliseconds
        // A reload may end a switched protocol, whose server was verified; a tunnel, of which
        // nothing was known, only where a policy denies the address.
        let mayBeSuperseded = world.reloads[worker] != reloads && (status == 101 || isDoubtful)
        if !isBroken, !wasIdle, !mayBeSuperseded {
            world.fail(
                "tunnel \(number) ends early: \(client.received) of \(server.sent) and "
                    + "\(server.received) of \(client.sent)")
        }
        isBroken = true
    }

    private func take(_ bytes: ArraySlice<UInt8>, _ end: End, from other: End) {
        var bytes = bytes
        while end.awaitsHead, let byte = bytes.popFirst() {
            end.head.append(byte)
            if end.head.suffix(4) == [13, 10, 13, 10] {
                end.awaitsHead = false
                if !end.head.starts(with: "HTTP/1.1 \(status) ".utf8) {
                    world.fail("tunnel \(number) begins with another head")
                }
            }
        }
        let after = end.received + bytes.count
        guard after <= other.sent, other.content.hasBytes(Array(bytes), at: end.received) else {
            return world.fail("tunnel \(number): other bytes than were sent")
        }
        end.received = after
    }
}
