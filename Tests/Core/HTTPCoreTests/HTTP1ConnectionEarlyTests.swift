import HTTPCore
import TestSupport
import Testing

/// A client whose server answers before it has read all of a request, and reads on: one of another
/// make, which does as it likes. Chance decides who acts next, and how.
private struct EarlyAnswers {
    /// What is sent towards the server, with the number of its exchange.
    enum Sent: Equatable {
        case head(Int)
        case content(Int)
        case end(Int)
    }
    /// What is sent towards the client, likewise.
    enum Answered {
        case head(Int, HTTP1Connection.Response, untilClose: Bool)
        case interim(Int)
        case end(Int)
        case fin
    }

    var client = HTTP1Connection(.client, isOpen: true)
    /// What the client has queued, and what of it is on its way.
    var output: [Sent] = []
    var up: [Sent] = []
    /// What is on its way to the client, and what of it the client has received.
    var down: [Answered] = []
    var input: [Answered] = []
    /// Whether the client has received the end of the server's direction.
    var hasEnded = false
    /// The number of the client's exchange.
    var number = 0
    /// Whether the response that the client reads ends with the connection.
    var isUntilClose = false

    /// The request that the server reads, and whether it is within it.
    var read = (number: -1, isOpen: false)
    /// The exchange that it answers next, whether it has sent the head, and whether the connection
    /// persists after it.
    var answer = (number: 0, hasHead: false, persists: true)
    var isServing = true

    var random: SeededRandom
    var violation: String?
    /// What has happened: an event, the phase in which it did, and what was to be done.
    var seen: Set<String> = []

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    private mutating func chance(_ times: Int, in all: Int = 4) -> Bool {
        random.below(all) < times
    }

    mutating func step() {
        switch random.below(5) {
        case 0: queue()
        case 1: write()
        case 2: receive()
        case 3: serverReads()
        default: serverAnswers()
        }
    }

    // MARK: The client

    @discardableResult
    private mutating func pass(
        _ event: HTTP1Connection.Event
    ) -> HTTP1Connection.Reaction {
        let phase = client.phase
        let reaction = client.handle(event)
        let name = "\(event)".prefix { $0 != "(" }
        seen.insert("\(name) in \(phase): \(reaction)")
        if reaction == .illegal { violation = "\(event) in \(phase)" }
        return reaction
    }

    private var rest: HTTP1Connection.Rest {
        HTTP1Connection.Rest(isFlushed: output.isEmpty, hasInput: !input.isEmpty)
    }

    private mutating func queue() {
        switch client.phase {
        case .idle:
            pass(.headBegan)
            pass(
                .requestHead(
                    .init(hasContent: true, maySwitch: false, expectsContinue: chance(1))))
            output.append(.head(number))
        case .requesting, .answering, .answered:
            if chance(3) {
                pass(.contentQueued)
                output.append(.content(number))
            } else {
                pass(.requestEnded)
                output.append(.end(number))
            }
        case .opening, .starting, .awaiting, .responding, .finishing, .lingering, .detached,
            .closed:
            break
        }
    }

    private mutating func write() {
        guard client.isInExchange, !output.isEmpty else { return }
        if isServing {
            up.append(output.removeFirst())
        } else {
            pass(.sendingFailed)
            output = []
        }
        if client.phase == .finishing, output.isEmpty { conclude(.settled(rest)) }
    }

    /// Receives everything that has arrived.
    private mutating func receive() {
        for next in down {
            if case .fin = next { hasEnded = true } else { input.append(next) }
        }
        down = []
        guard client.isOpen else { return }
        if client.phase == .idle, !input.isEmpty { return close() }
        while client.isInExchange, !input.isEmpty { advance() }
        guard client.isOpen, hasEnded else { return }
        let isComplete = client.responsePart == .content && isUntilClose
        let isOver = client.responsePart == .ended
        conclude(.inputEnded(completing: isComplete))
        if isComplete { conclude(.responseEnded(rest)) }
        if isOver { conclude(.settled(rest)) }
    }

    private mutating func advance() {
        if client.responsePart == .ended { return conclude(.settled(rest)) }
        pass(.responseBegan)
        switch input.removeFirst() {
        case .interim(number) where client.responsePart == .head:
            pass(.interimHead(persists: true))
        case .head(number, let response, let untilClose) where client.responsePart == .head:
            isUntilClose = untilClose
            pass(.responseHead(response))
        case .end(number) where client.responsePart == .content:
            conclude(.responseEnded(rest))
        case let other: violation = "\(other) in exchange \(number), \(client.phase)"
        }
    }

    /// Passes on an event that may end the exchange.
    private mutating func conclude(_ event: HTTP1Connection.Event) {
        switch pass(event) {
        case .reuse:
            if !output.isEmpty || !input.isEmpty { violation = "something is left" }
            number += 1
        case .close, .abandon: close()
        case .nothing, .finishRequest, .illegal: break
        case .reset, .linger, .refuse: violation = "\(event) has a server's reaction"
        }
    }

    private mutating func close() {
        pass(.closed)
        output = []
    }

    // MARK: The server

    private mutating func serverReads() {
        guard isServing, !up.isEmpty else { return }
        switch up.removeFirst() {
        case .head(read.number + 1) where !read.isOpen: read = (read.number + 1, true)
        case .content(read.number) where read.isOpen: break
        case .end(read.number) where read.isOpen: read.isOpen = false
        case let other: violation = "\(other) after a part of request \(read.number)"
        }
    }

    private mutating func serverAnswers() {
        guard isServing else { return }
        if chance(1, in: 200) { return end() }
        guard answer.number <= read.number else { return }
        if answer.hasHead {
            down.append(.end(answer.number))
            guard answer.persists else { return end() }
            // Bytes that belong to nothing.
            if chance(1, in: 16) { down.append(.end(answer.number)) }
            answer = (answer.number + 1, false, true)
        } else if chance(1) {
            down.append(.interim(answer.number))
        } else {
            answer.persists = chance(15, in: 16)
            let isUntilClose = !answer.persists && chance(2)
            let response = HTTP1Connection.Response(
                persists: answer.persists, isSuccess: chance(7, in: 8))
            down.append(.head(answer.number, response, untilClose: isUntilClose))
            answer.hasHead = true
            if isUntilClose { end() }
        }
    }

    private mutating func end() {
        isServing = false
        down.append(.fin)
    }
}

@Suite("A server that answers early and reads on")
struct HTTP1ConnectionEarlyTests {
    /// What must have happened for the rules to have been tried.
    private static let cases: Set<String> = [
        "responseEnded in answering: finishRequest", "responseEnded in answering: close",
        "responseEnded in responding: finishRequest", "responseEnded in responding: reuse",
        "responseEnded in responding: close",
        "contentQueued in answered: nothing", "requestEnded in answered: nothing",
        "settled in answered: close", "settled in finishing: reuse",
        "settled in finishing: close",
        "inputEnded in idle: close", "inputEnded in requesting: abandon",
        "inputEnded in awaiting: abandon", "inputEnded in answering: nothing",
        "inputEnded in answering: abandon", "inputEnded in responding: nothing",
        "inputEnded in responding: abandon", "inputEnded in answered: nothing",
        "inputEnded in finishing: nothing",
        "sendingFailed in answered: nothing", "sendingFailed in finishing: nothing",
    ]

    @Test func `gets every request whole, and every response is its own request's`() {
        var longest = 0
        var seen: Set<String> = []
        for seed in 0..<1000 as Range<UInt64> {
            var course = EarlyAnswers(seed: seed)
            for _ in 0..<400 where course.violation == nil { course.step() }
            #expect(course.violation == nil, "seed \(seed)")
            longest = max(longest, course.number)
            seen.formUnion(course.seen)
        }
        #expect(longest > 5, "connections are used again")
        #expect(Self.cases.subtracting(seen).isEmpty)
    }
}
