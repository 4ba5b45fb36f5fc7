import HTTPCore
import TestSupport
import Testing

/// A client and a server that are joined by what one of them has sent and the other has not read.
/// Chance decides who acts next, and how.
private struct Pair {
    /// What is sent towards the server.
    enum Sent {
        case head(HTTP1Connection.Request)
        case content, end, fin
    }
    /// What is sent towards the client.
    enum Answered {
        case head(HTTP1Connection.Response)
        case interim, end, fin
    }

    var client = HTTP1Connection(.client, isOpen: true)
    var server = HTTP1Connection(.server, isOpen: true)
    var up: [Sent] = []
    var down: [Answered] = []
    var random: SeededRandom
    /// How many exchanges the client has completed on the connection.
    var exchanges = 0
    /// In which phases the client has seen the server end the connection.
    var ends: Set<HTTP1Connection.Phase> = []
    /// What went wrong.
    var violation: String?

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    private mutating func chance(_ times: Int, in all: Int = 4) -> Bool {
        random.below(all) < times
    }

    /// Passes an event on which is never illegal, whatever the other side does.
    private mutating func pass(
        _ event: HTTP1Connection.Event, to connection: WritableKeyPath<Pair, HTTP1Connection>
    ) -> HTTP1Connection.Reaction {
        let phase = self[keyPath: connection].phase
        let reaction = self[keyPath: connection].handle(event)
        if reaction == .illegal { violation = "\(event) in \(phase)" }
        return reaction
    }

    mutating func step() {
        switch random.below(4) {
        case 0: clientActs()
        case 1: serverReads()
        case 2: serverActs()
        default: clientReads()
        }
    }

    // MARK: The client

    private mutating func clientActs() {
        switch client.phase {
        case .idle:
            let request = HTTP1Connection.Request(
                version: chance(1) ? .http10 : .http11, hasContent: true,
                persists: chance(3), maySwitch: false)
            _ = pass(.headBegan, to: \.client)
            _ = pass(.requestHead(request), to: \.client)
            var received = request
            received.hasContent = chance(2)
            up.append(.head(received))
            if !received.hasContent { _ = pass(.requestEnded, to: \.client) }
        case .requesting, .answering, .answered:
            guard chance(2) else {
                _ = pass(.contentQueued, to: \.client)
                return up.append(.content)
            }
            _ = pass(.requestEnded, to: \.client)
            up.append(.end)
        case .finishing: settle()
        case .opening, .starting, .awaiting, .responding, .lingering, .detached, .closed: break
        }
    }

    /// Everything is written at once; `down` has what is unread.
    private var rest: HTTP1Connection.Rest {
        var hasInput = false
        if case .fin? = down.first {} else { hasInput = !down.isEmpty }
        return HTTP1Connection.Rest(isFlushed: true, hasInput: hasInput)
    }

    private mutating func settle() { conclude(pass(.settled(rest), to: \.client)) }

    private mutating func conclude(_ reaction: HTTP1Connection.Reaction) {
        switch reaction {
        case .reuse: exchanges += 1
        case .close, .abandon:
            _ = pass(.closed, to: \.client)
            up.append(.fin)
        case .nothing, .finishRequest, .illegal: break
        case .reset, .linger, .refuse: violation = "\(reaction) by a client"
        }
    }

    private mutating func clientReads() {
        guard client.isOpen, !down.isEmpty else { return }
        let next = down.removeFirst()
        if case .fin = next {
            ends.insert(client.phase)
            conclude(pass(.inputEnded(completing: false), to: \.client))
            if [.answered, .finishing].contains(client.phase) { settle() }
            return
        }
        switch client.responsePart {
        case .ended:
            down.insert(next, at: 0)
            return settle()
        case .head, .content: break
        }
        guard client.isInExchange else {
            violation = "\(next) while the client is idle"
            return
        }
        _ = pass(.responseBegan, to: \.client)
        switch next {
        case .interim: _ = pass(.interimHead(persists: true), to: \.client)
        case .head(let response): _ = pass(.responseHead(response), to: \.client)
        case .end: conclude(pass(.responseEnded(rest), to: \.client))
        case .fin: break
        }
    }

    // MARK: The server

    private mutating func serverReads() {
        guard server.isOpen, !up.isEmpty else { return }
        // What follows a request waits, and so does the rest of one that was refused.
        if [.awaiting, .responding].contains(server.phase) { return }
        let next = up.removeFirst()
        if server.phase == .lingering {
            if case .fin = next { _ = pass(.closed, to: \.server) }
            return
        }
        switch next {
        case .head(let request): _ = pass(.requestHead(request), to: \.server)
        case .content:
            guard [.requesting, .answering].contains(server.phase) else {
                violation = "content is taken for a head in \(server.phase)"
                return
            }
        case .end: _ = pass(.requestEnded, to: \.server)
        case .fin:
            switch pass(.inputEnded(completing: false), to: \.server) {
            case .close, .abandon:
                _ = pass(.closed, to: \.server)
                down.append(.fin)
            case .nothing, .illegal: break
            case .reuse, .finishRequest, .reset, .linger, .refuse: violation = "after \(next)"
            }
        }
    }

    private mutating func serverActs() {
        switch server.phase {
        case .requesting where chance(1, in: 8):
            _ = pass(.refused, to: \.server)
        case .requesting, .awaiting:
            guard chance(3) else {
                _ = pass(.interimHead(persists: true), to: \.server)
                return down.append(.interim)
            }
            let response = HTTP1Connection.Response(
                persists: chance(3), isSuccess: chance(2), isStreamed: chance(1))
            _ = pass(.responseHead(response), to: \.server)
            var received = response
            received.persists = server.connectionOption != .close
            down.append(.head(received))
        case .answering, .responding:
            switch pass(.responseEnded(rest), to: \.server) {
            case .reuse: down.append(.end)
            case .linger: down += [.end, .fin]
            case .nothing, .illegal, .finishRequest, .close, .reset, .abandon, .refuse:
                violation = "after a response"
            }
        // What the client has sent by then is lost.
        case .idle where chance(1, in: 64):
            guard pass(.drain(hasInput: false), to: \.server) == .close else {
                violation = "an idle connection goes on"
                return
            }
            _ = pass(.closed, to: \.server)
            down.append(.fin)
        case .opening, .idle, .starting, .answered, .finishing, .lingering, .detached, .closed:
            break
        }
    }
}

@Suite("Two ends of an HTTP/1 connection")
struct HTTP1ConnectionPairTests {
    @Test func `agree on where each message ends, in whatever order they act`() {
        var longest = 0
        var ends: Set<HTTP1Connection.Phase> = []
        for seed in 0..<1000 as Range<UInt64> {
            var pair = Pair(seed: seed)
            for _ in 0..<400 where pair.violation == nil { pair.step() }
            #expect(pair.violation == nil, "seed \(seed)")
            longest = max(longest, pair.exchanges)
            ends.formUnion(pair.ends)
        }
        #expect(longest > 5, "connections are used again")
        #expect(ends == [.idle, .requesting, .awaiting])
    }
}
