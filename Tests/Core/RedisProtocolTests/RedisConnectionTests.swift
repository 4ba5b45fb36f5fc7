import Testing

@testable import RedisProtocol

private let hello = RESPValue.map([
    RESPEntry("proto", .integer(3)), RESPEntry("role", .string("master")),
])

private typealias Connection = RedisConnection

extension RedisConnection.Reply {
    fileprivate var text: String {
        switch self {
        case .operation(let tag): "\(tag)"
        case .dropped: "dropped"
        case .own(let action): "\(action)"
        }
    }
}

@Suite("A connection to Redis")
struct RedisConnectionTests {
    private static let options: Connection.Options = {
        var options = Connection.Options()
        options.connectMilliseconds = 100
        options.handshakeMilliseconds = 50
        options.stallMilliseconds = 30
        options.backoff = ReconnectBackoff(firstMilliseconds: 10, longestMilliseconds: 40)
        return options
    }()

    private static func idle() -> Connection { Connection(RedisSession(), options: options) }

    private static func connecting() -> Connection {
        var connection = idle()
        _ = connection.start(now: 0)
        return connection
    }

    private static func handshaking() -> Connection {
        var connection = connecting()
        _ = connection.connected(now: 1)
        return connection
    }

    private static func ready() -> Connection {
        var connection = handshaking()
        _ = connection.replied(hello)
        return connection
    }

    private static func waiting() -> Connection {
        var connection = connecting()
        _ = connection.closed(.transport("refused"), now: 1, random: 0)
        return connection
    }

    @Test func `goes from idle to ready`() throws {
        var connection = Self.idle()
        #expect(connection.deadline == nil)
        #expect(connection.start(now: 0) == .connect)
        #expect(connection.start(now: 0) == .none)
        #expect(connection.deadline == 100)
        #expect(connection.connected(now: 1) == .send(RedisCommand("HELLO", "3")))
        #expect(connection.deadline == 51)
        #expect(!connection.isReady)
        guard case .own(.becomeReady(let server)) = connection.replied(hello) else {
            Issue.record("it is not ready")
            return
        }
        #expect(server.role == .master)
        #expect(connection.isReady)
        #expect(connection.deadline == nil)
        try connection.add(7, bytes: 1, deadline: 90)
        #expect(connection.deadline == 90)
        #expect(connection.replied(.null).text == "7")
    }

    @Test func `accepts operations only when it is ready`() {
        for make in [Self.idle, Self.connecting, Self.handshaking, Self.waiting] {
            var connection = make()
            #expect(throws: RedisPipelineError.notReady) {
                try connection.add(1, bytes: 1, deadline: 1)
            }
        }
    }

    @Test func `is given up when something takes too long`() throws {
        var connecting = Self.connecting()
        #expect(connecting.timePassed(now: 99) == .none)
        #expect(connecting.timePassed(now: 100) == .close(.connectTimeout))
        var handshaking = Self.handshaking()
        #expect(handshaking.timePassed(now: 50) == .none)
        #expect(handshaking.timePassed(now: 51) == .close(.handshakeTimeout))
        var ready = Self.ready()
        #expect(ready.timePassed(now: 10_000) == .none)
        try ready.add(1, bytes: 1, deadline: 20)
        #expect(ready.expire(now: 20) == [1])
        #expect(ready.deadline == 50)
        #expect(ready.timePassed(now: 49) == .none)
        #expect(ready.timePassed(now: 50) == .close(.stalled))
        var idle = Self.idle()
        #expect(idle.timePassed(now: 10_000) == .none)
    }

    @Test func `is tried again after a delay that grows until an operation is answered`() throws {
        var connection = Self.connecting()
        var now: Int64 = 0
        for delay: Int64 in [10, 20, 40, 40] {
            let end = connection.closed(.transport("refused"), now: now, random: 0)
            #expect(end.retryAt == now + delay)
            #expect(connection.deadline == now + delay)
            #expect(connection.timePassed(now: now + delay - 1) == .none)
            now += delay
            #expect(connection.timePassed(now: now) == .connect)
            _ = connection.connected(now: now)
            _ = connection.replied(hello)
        }
        try connection.add(1, bytes: 1, deadline: now)
        _ = connection.replied(.null)
        #expect(connection.closed(.closedByServer, now: 0, random: 0).retryAt == 10)
    }

    @Test func `says what has become of its operations`() throws {
        var connection = Self.ready()
        try connection.add(1, bytes: 5, deadline: 20)
        try connection.add(2, bytes: 5, deadline: 30)
        try connection.add(3, bytes: 5, deadline: 30)
        connection.wrote(6)
        #expect(connection.expire(now: 20) == [1])
        let end = connection.closed(.closedByServer, now: 25, random: 0)
        #expect(end.operations.map(\.tag) == [2, 3])
        #expect(end.operations.map(\.fate) == [.unanswered, .notSent])
        #expect(connection.lastError == .closedByServer)
        #expect(!connection.isReady)
    }

    @Test func `drops late replies and closes at those to nothing`() throws {
        var connection = Self.ready()
        try connection.add(1, bytes: 1, deadline: 20)
        _ = connection.expire(now: 20)
        #expect(connection.replied(.null).text == "dropped")
        #expect(connection.replied(.null).text == "\(Connection.Action.close(.unexpectedReply))")
        _ = connection.closed(.unexpectedReply, now: 30, random: 0)
        #expect(connection.replied(.null).text == "dropped")
    }

    @Test func `closes if the handshake fails`() {
        var connection = Self.handshaking()
        #expect(
            connection.replied(.failing("WRONGPASS no")).text
                == "\(Connection.Action.close(.handshake(.wrongPassword)))")
        var other = Self.handshaking()
        #expect(other.replied(nil).text == "\(Connection.Action.close(.unexpectedReply))")
    }

    @Test func `stays closed if it is stopped, and can be begun again`() {
        for make in [Self.idle, Self.connecting, Self.handshaking, Self.ready, Self.waiting] {
            var connection = make()
            let end = connection.closed(.stopped, now: 5, random: 0)
            #expect(end.retryAt == nil)
            #expect(connection.state == .idle)
            #expect(connection.start(now: 5) == .connect)
        }
    }
}
