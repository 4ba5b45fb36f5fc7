import HTTPCore
import PinfoldMetrics

@testable import CacheStore
@testable import PinfoldEngine

/// The states of an exchange, to be counted.
enum SimulatedState: Int, CaseIterable {
    case ended, routing, authenticating, delayed, loading, waiting, gathering, connecting
    case requesting, discarding, responding, serving, finishing, opening, tunnelling

    init(_ step: Exchange.State.Step) {
        switch step {
        case .ended: self = .ended
        case .routing: self = .routing
        case .authenticating: self = .authenticating
        case .delayed: self = .delayed
        case .loading: self = .loading
        case .waiting: self = .waiting
        case .gathering: self = .gathering
        case .connecting: self = .connecting
        case .requesting: self = .requesting
        case .discarding: self = .discarding
        case .responding: self = .responding
        case .serving: self = .serving
        case .finishing: self = .finishing
        case .opening: self = .opening
        case .tunnelling: self = .tunnelling
        }
    }

    /// Those that a world gets to and stays in: what is discarded has no content, and no listener
    /// asks who is asking.
    static let reachable: [SimulatedState] = [
        .delayed, .loading, .waiting, .gathering, .connecting, .requesting, .responding, .serving,
        .finishing, .opening, .tunnelling,
    ]
}

// What must hold: after each step, at the end of each response, and at the end of a world.
extension SimulatedWorld {
    /// An exchange with a stream is in a state that has one, and vice versa.
    func checkStep() {
        dropTunnels()
        for held in exchanges {
            guard let exchange = held.exchange, case .tunnelling = exchange.state.step else {
                continue
            }
            seen[SimulatedState.tunnelling.rawValue] += 1
        }
        for client in clients {
            guard let exchange = client.exchange else { continue }
            seen[SimulatedState(exchange.state.step).rawValue] += 1
            if exchange.client !== client { fail("a client's exchange is another's") }
            if loops.count > 1 { noteMeetings(exchange) }
            checkTurn(of: exchange)
            if case .connecting = exchange.state.step,
                !upstreams.waits.contains(where: { $0.consumer === exchange })
            {
                fail("\(number(of: exchange)) waits for a stream that nobody will give it")
            }
            let upstream = exchange.upstream
            if let upstream = upstream as? ScriptedStream,
                !upstreams.streams.contains(where: { $0 === upstream })
            {
                fail("\(number(of: exchange)) has a stream that is over")
            }
        }
        if isRated { checkRates() }
        for stream in upstreams.streams {
            let upstream = stream.exchange?.upstream
            if ((upstream as? ResponseFilter)?.stream ?? upstream) !== stream {
                fail("a stream of request \(stream.number) is nobody's, and was not given up")
            }
        }
        for wait in upstreams.waits {
            guard case .connecting = wait.consumer.state.step else {
                return fail("who no longer needs a stream still waits for one")
            }
        }
    }

    private func noteMeetings(_ exchange: Exchange) {
        func note(_ meeting: SimulatedMeeting) { meetings[meeting.rawValue] += 1 }
        switch exchange.collapsing.role {
        case .followsRemotely: note(.followsRemotely)
        case .gaveUpRemotely(_, let stores): note(stores ? .storesClaimed : .gaveUpRemotely)
        default: break
        }
        if exchange.collapsing.followers?.remote.isEmpty == false { note(.isFollowedRemotely) }
    }

    /// The end of a response is queued.
    func checkEnd(
        _ head: ReceivedHead, _ given: Int, _ trailers: TrailerSection?,
        _ request: SimulatedRequest
    ) {
        switch head.framing {
        case .none: if given > 0 { fail("request \(request.number): content without framing") }
        case .length(let count), .lengthInFields(let count):
            if UInt64(given) != count {
                fail("request \(request.number): \(given) bytes, and \(count) announced")
            }
        case .streamed: break
        }
        guard let trailers else { return }
        let sent =
            representations.indices.contains(head.number)
            ? representations[head.number].trailers?.bytes : nil
        if !request.asksForTrailers || trailers.bytes != sent {
            fail("request \(request.number): trailers that are not its response's")
        }
    }

    /// What a client has received when its exchange is over.
    func check(
        _ received: [UInt8], isComplete: Bool, of head: ReceivedHead,
        for request: SimulatedRequest
    ) {
        guard head.number >= 0 else {
            return checkWithoutContent(head, request)
        }
        guard representations.indices.contains(head.number) else {
            return fail("request \(request.number): a response that nobody sent")
        }
        let sent = representations[head.number]
        let body = checkTranslation(of: sent, head, request)
        if sent.url != request.url { fail("request \(request.number): another URL's response") }
        if !request.brought.contains(sent.number) { checkStored(sent, request) }
        var expected = body[...]
        if request.method == "HEAD" || head.status == 304 || head.status == 416 {
            expected = []
        } else if let part = head.part, head.status == 206 {
            guard request.hasRange, part.upperBound < body.count else {
                return fail("request \(request.number): a part that there is not")
            }
            expected = body[part]
        } else if head.status != sent.status {
            fail("request \(request.number): status \(head.status), and \(sent.status) was sent")
        }
        let isRight = Array(expected).hasBytes(received, at: 0)
        if !isRight || isComplete && expected.count != received.count {
            fail(
                "request \(request.number): \(received.count) bytes that are not those of "
                    + "response \(sent.number), which has \(expected.count)")
        }
    }

    /// The rules in force have changed a response correctly, and its tag shows it.
    private func checkTranslation(
        of sent: Representation, _ head: ReceivedHead, _ request: SimulatedRequest
    ) -> [UInt8] {
        guard isRuled else { return sent.body }
        let text = "request \(request.number): response \(sent.number)"
        let host = urls[request.url].host
        let types = (0..<2).compactMap {
            SimulatedRules.rules(for: host, trust: $0).image?.convert.first?.to
        }
        let isHead = request.method == "HEAD"
        guard let type = SimulatedRules.types.first(where: { head.type == $0.rawValue }) else {
            if sent.isImage, !isHead,
                types.allSatisfy({ SimulatedRules.outcome(of: sent.body, to: $0) != .unchanged })
            {
                fail("\(text) is not what the rules make of it")
            }
            if let tag = head.tag, tag != "\"\(sent.number)\"" {
                fail("\(text): another tag than its server's")
            }
            return sent.body
        }
        if !types.contains(type) || !sent.isImage { fail("\(text): no rule makes it \(type)") }
        if !isHead, SimulatedRules.outcome(of: sent.body, to: type) != .changed {
            fail("\(text) is not changed by the rules")
        }
        let rules = SimulatedRules.rules(for: host, trust: policy(of: request).trust)
        if reloads[request.worker] == request.reloads, rules.image?.convert.first?.to != type {
            fail("\(text): changed by rules that are not in force")
        }
        let suffix = SimulatedRules.suffix(type)
        if let tag = head.tag, tag != "\"\(sent.number)\(suffix)\"" {
            fail("\(text): the tag does not name its rules")
        }
        if !isHead { count(.translated) }
        if head.status == 206 { count(.partTranslated) }
        if !request.brought.contains(sent.number) { count(.translatedFromStore) }
        return sent.body + [SimulatedRules.mark(type)]
    }

    /// The policy under which a request is served now.
    private func policy(of request: SimulatedRequest) -> PolicySnapshot {
        process.environments[request.worker].policy
    }

    private func checkWithoutContent(_ head: ReceivedHead, _ request: SimulatedRequest) {
        if head.status == 304 {
            if let tag = head.tag, let asked = request.tag, !request.hasOddNotModified {
                if tag != asked {
                    fail("request \(request.number): 304 about \(tag), not \(asked)")
                }
                if tag.contains("-") { count(.confirmed) }
            }
            guard !request.isConditional, !request.hasOddNotModified else { return }
            return fail("request \(request.number): 304 to a request without conditions")
        }
        if head.status < 400 {
            fail("request \(request.number): status \(head.status) of nobody's")
        }
    }

    /// A response that none of the request's own streams brought came from the store.
    private func checkStored(_ sent: Representation, _ request: SimulatedRequest) {
        let text = "request \(request.number): response \(sent.number) from the store"
        if request.method != "GET", request.method != "HEAD" {
            fail("\(text): to \(request.method)")
        }
        if sent.isPrivate { fail("\(text): it was another's own") }
        if let variant = sent.variant, variant != request.variant { fail("\(text): wrong variant") }
        let invalidated = urls[sent.url].invalidated
        if sent.asked < invalidated, invalidated < request.began {
            fail("\(text): it was invalidated before the request came")
        }
        // What differs between the policies does not concern reverse routes.
        if request.ingress != 3, reloads[request.worker] == request.reloads,
            !sent.trusts.contains(policy(of: request).trustGeneration)
        {
            fail("\(text): it was obtained under another policy")
        }
    }

    /// Everything in progress has ended: everything taken has been given back.
    func checkEndOfProcess() {
        if account?.exchanges.load(ordering: .relaxed) != 0 { fail("exchanges are still counted") }
        if !upstreams.limitsAreFree { fail("uploads are still counted") }
        if !upstreams.waits.isEmpty || !upstreams.streams.isEmpty { fail("streams are left") }
        if metrics.value(.illegalTransitions) != 0 { fail("an illegal transition") }
        checkRatesAtEnd()
        if process.environments.contains(where: { $0.flights.leaderCount != 0 }) {
            fail("somebody still leads a flight")
        }
        if process.store.memory.leaderCount != 0 { fail("a worker still leads for others") }
        if process.store.claimCount != 0 { fail("somebody still claims to store a response") }
        if metrics.value(.tunnelsOpen) != 0 { fail("tunnels are still counted") }
        for loop in loops where loop.handlerCount != 1 {
            // The mailbox.
            let left = loop.handlers.compactMap { ($0 as? Exchange) }.map {
                "\(number(of: $0)) is \($0.state.name), client \($0.client != nil) \($0.deadline)"
            }
            fail("\(loop.handlerCount - 1) are still registered: \(left)")
        }
        for case let exchange? in exchanges.map(\.exchange) {
            guard case .ended = exchange.state.step else {
                return fail("an exchange without a client is not over")
            }
            if exchange.nextInQueue != nil || exchange.previousInQueue != nil {
                fail("an exchange that is over stands in a line")
            }
        }
    }

    /// The world has ended, and everything is written.
    func checkEnd() {
        checkEndOfProcess()
        let figures = process.store.statistics()
        if figures.queueBytes + figures.gatheringBytes + figures.stagingBytes != 0 {
            fail("a store was not ended")
        }
        if figures.flights != 0 { fail("a request still counts as under way for the store") }
        if let disk, let violation = disk.violationAtEnd() { fail(violation) }
        checkNetworkAtEnd()
        // All of them are kept for the next request: there are not too many.
        if exchanges.contains(where: { $0.exchange == nil }) { fail("an exchange was forgotten") }
        if seed.isMultiple(of: 8) { checkRemains() }
    }

    /// Nothing of an exchange is left in its object.
    private func checkRemains() {
        let fresh = process.environments.map { ExchangeContents(Exchange(environment: $0)) }
        for case let exchange? in exchanges.map(\.exchange) {
            let remains = ExchangeContents(exchange)
                .differences(from: fresh[exchange.environment.index])
            if !remains.isEmpty { return fail("an exchange that is over holds \(remains)") }
        }
    }
}
