import Foundation
import TestSupport
import Testing

@testable import PinfoldEngine

/// Everything that a state machine can be in, and everything that can happen to it.
private enum Table {
    typealias State = ExchangeState<Int>

    /// One state of each kind.
    nonisolated(unsafe) static let steps: [State.Step] = [
        .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering, .connecting,
        .requesting(1),
        .discarding(1, then: .serveConfirmed), .discarding(1, then: .forwardAgain),
        .responding(1), .serving, .finishing, .opening, .tunnelling,
    ]
    static let contents: [RetryDecision.Content] = [
        .none, .untouched, .partlySent, .ended(isKept: true), .ended(isKept: false),
    ]

    private static let allRetries: RetryReasons = [
        .connectionDied, .notProcessed, .notProcessed, .notProcessed, .superseded,
        .validationFailed, .storedBodyUnreadable,
    ]

    /// Every state there can be, but for the reasons of earlier attempts, which are all or none.
    nonisolated(unsafe) static let states: [State] = steps.flatMap { step in
        contents.flatMap { content in
            [true, false].flatMap { hasClient in
                [true, false].flatMap { isIdempotent in
                    [true, false].flatMap { wasReused in
                        [RetryReasons(), allRetries].map { retries in
                            var state = State()
                            state.step = step
                            state.content = content
                            state.hasClient = hasClient
                            state.isIdempotent = isIdempotent
                            state.upstreamWasReused = wasReused
                            state.retries = retries
                            return state
                        }
                    }
                }
            }
        }
    }

    private static var failures: [State.Event] {
        let endings: [RetryDecision.Ending?] = RetryDecision.Ending.allCases.map { $0 } + [nil]
        return endings.flatMap { ending in
            [true, false].map { .failed(.init(ending: ending, headWithdrawn: $0)) }
        }
    }

    nonisolated(unsafe) static let events: [State.Event] =
        [true, false].map {
            .begin(.init(hasContent: $0, isIdempotent: true, hasClient: true))
        } + State.Decision.allCases.map { .decided($0) }
        + [.authenticated, .turnCame, .loaded, .flightEnded]
        + [true, false].map { .connected(2, wasReused: true, sendsGathered: $0) }
        + State.Answer.allCases.map { .answered($0) }
        + [true, false].map { .responseEnded(isRead: $0) }
        + failures + [.content] + [true, false].map { .contentEnded(isKept: $0) }
        + [.drained] + [true, false].map { .clientGone(isWanted: $0) }
        + [.clientTimedOut, .handedOn, .relayed, .over]

    /// Calls `body` with each state, each event, the state that follows and the reaction.
    static func each(_ body: (State, State.Event, State, State.Reaction) -> Void) {
        for state in states {
            for event in events {
                var next = state
                let reaction = next.handle(event)
                body(state, event, next, reaction)
            }
        }
    }
}

extension ExchangeState.Reaction {
    fileprivate var isLegal: Bool { if case .illegal = next { false } else { true } }
    fileprivate var ends: Bool { if case .end = next { true } else { false } }
    fileprivate var released: Upstream? {
        if case .upstream(let upstream) = release { upstream } else { nil }
    }
}

@Suite("The states of an exchange")
struct ExchangeStateTests {
    /// The names of the states that follow on each, by the state's and the event's name.
    private static let successors: [String: [String: Set<String>]] = {
        var found: [String: [String: Set<String>]] = [:]
        Table.each { state, event, next, reaction in
            guard reaction.isLegal else { return }
            found[state.name, default: [:]][event.name, default: []].insert(next.name)
        }
        return found
    }()

    private static func unique(_ names: [String]) -> [String] {
        names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private static let stateNames = unique(Table.states.map(\.name))
    private static let eventNames = unique(Table.events.map(\.name))

    /// The table of the page, as the code has it.
    private static var page: String {
        let rows = stateNames.map { state in
            let cells = eventNames.compactMap { event -> String? in
                guard let next = successors[state]?[event] else { return nil }
                let names = stateNames.filter { next.contains($0) }
                return names == [state] ? "\(event)" : "\(event) → \(names.joined(separator: "/"))"
            }
            return "| \(state) | \(cells.joined(separator: ", ")) |\n"
        }
        return "| state | event → next state |\n|---|---|\n" + rows.joined()
    }

    @Test func `the page shows the transitions of the code`() throws {
        let isThere = try Checkout.page("Phases").contains(Self.page)
        #expect(isThere, "the table should be:\n\(Self.page)")
    }

    @Test func `every state can be reached from the end`() {
        var reached: Set<String> = ["ended"]
        var last: Set<String> = []
        while reached != last {
            last = reached
            for state in last {
                for next in (Self.successors[state] ?? [:]).values { reached.formUnion(next) }
            }
        }
        #expect(reached == Set(Self.stateNames))
    }

    @Test func `a client that goes leads to the end, unless others want the response`() {
        Table.each { state, event, next, reaction in
            guard case .clientGone(let isWanted) = event else { return }
            let goesOn =
                isWanted && state.hasClient && state.content == .none
                && ["requesting", "responding"].contains(state.name)
            #expect(next.name == (goesOn ? state.name : "ended"))
            #expect(!goesOn || !next.hasClient && reaction.next == .detach)
            #expect(goesOn || reaction.next != .detach)
        }
    }

    @Test func `a client that reads by itself is served the rest once the response has ended`() {
        Table.each { state, event, next, reaction in
            guard case .responseEnded(isRead: true) = event, state.name == "responding" else {
                return
            }
            #expect(next.name == (state.hasClient ? "serving" : "ended"))
            #expect(reaction.next == (state.hasClient ? .read : .end(cut: false)))
        }
    }

    @Test func `what is illegal changes nothing`() {
        Table.each { state, event, next, reaction in
            guard !reaction.isLegal else { return }
            #expect(next.name == state.name && next.content == state.content)
            // A connection that is not needed is not kept.
            if case .connected(let upstream, _, _) = event {
                #expect(reaction.released == upstream)
            }
        }
    }

    /// Trust is verified before there is a connection: nothing else provides one.
    @Test func `only a connection that was waited for carries a request`() {
        Table.each { state, event, next, reaction in
            guard reaction.isLegal, state.upstream == nil, next.upstream != nil else { return }
            #expect(state.name == "connecting" && event.name == "connected")
        }
    }

    @Test func `a connection is let go of or handed on when its state is left`() {
        Table.each { state, event, next, reaction in
            guard reaction.isLegal, let upstream = state.upstream else { return }
            guard next.upstream == nil else { return #expect(reaction.released == nil) }
            // Back in the pool, or with the relay.
            let isHandedOn = ["responseEnded", "relayed"].contains(event.name)
            #expect(reaction.released == (isHandedOn ? nil : upstream))
        }
    }

    @Test func `a wait that ends without a connection is given up`() {
        Table.each { state, event, next, reaction in
            guard reaction.isLegal, next.name != state.name else { return }
            let (isWait, isOpening) = (state.name == "connecting", state.name == "opening")
            // The check has been made, or the client has left.
            let isCheck = state.name == "authenticating"
            #expect(!isCheck || reaction.ends || event.name == "authenticated")
            let isDelay = state.name == "delayed"
            #expect(!isDelay || reaction.ends || event.name == "turnCame")
            switch reaction.release {
            case .check: #expect(isCheck && reaction.ends)
            case .turn: #expect(isDelay && reaction.ends)
            case .wait: #expect(isWait && next.name != "requesting")
            case .opening: #expect(isOpening && next.name != "tunnelling")
            case .nothing, .upstream:
                #expect(!isCheck || event.name == "authenticated")
                #expect(!isDelay || event.name == "turnCame")
                #expect(!isWait || next.name == "requesting")
                #expect(!isOpening || next.name == "tunnelling")
            }
        }
    }

    @Test func `the end is reported when it is reached and only then`() {
        Table.each { state, _, next, reaction in
            guard reaction.isLegal else { return }
            #expect(reaction.ends == (state.name != "ended" && next.name == "ended"))
        }
    }

    /// A head that the client has partly seen is never followed by another one.
    @Test func `after a head there is no reply unless it was taken back`() {
        Table.each { state, event, _, reaction in
            guard state.headIsSent, reaction.isLegal else { return }
            var isWithdrawn = false
            if case .failed(let failure) = event { isWithdrawn = failure.headWithdrawn }
            switch reaction.next {
            case .reply, .forwardAgain: #expect(isWithdrawn)
            default: break
            }
        }
    }

    @Test func `in the background there is no reply`() {
        Table.each { state, _, _, reaction in
            guard !state.hasClient, state.name != "ended", reaction.isLegal else { return }
            #expect(reaction.next != .reply && reaction.next != .complete)
        }
    }

    /// The confirmed response is of no further use there: the exchange is over.
    @Test func `a response that is complete is the end in the background`() {
        Table.each { state, event, next, reaction in
            guard !state.hasClient, event.name == "responseEnded", reaction.isLegal else { return }
            if case .forwardAgain = reaction.next { return }
            #expect(next.name == "ended" && reaction.ends, "\(state.name)")
        }
    }

    @Test func `only what the policy allows is sent again`() {
        Table.each { state, _, next, reaction in
            guard case .forwardAgain(let reason) = reaction.next else { return }
            #expect(state.content.isAvailable)
            #expect(next.retries != state.retries || state.retries.contains(reason))
            #expect(reason == .superseded || !state.retries.contains(reason))
            #expect(next.name == "routing")
        }
    }

    @Test func `content is handled as the state requires`() {
        var seen: [String: Set<String>] = [:]
        Table.each { state, event, _, reaction in
            guard event.name == "content" else { return }
            seen["\(reaction.next)", default: []].insert(state.name)
        }
        #expect(seen["sendContent"] == ["requesting", "discarding", "responding"])
        #expect(seen["gatherContent"] == ["gathering"])
        #expect(
            seen["holdContent"] == [
                "routing", "authenticating", "delayed", "loading", "waiting", "connecting",
            ])
        #expect(seen["dropContent"] == ["serving", "finishing", "opening", "tunnelling"])
    }

    /// Where an event is the only one of its kind, what comes with it is there for what follows.
    @Test func `what is performed next follows on events that bring what it needs`() {
        var seen: [String: Set<String>] = [:]
        Table.each { _, event, _, reaction in
            let next = String("\(reaction.next)".prefix { $0 != "(" })
            seen[next, default: []].insert(event.name)
        }
        #expect(seen["reply"] == ["failed", "clientTimedOut", "responseEnded"])
        #expect(seen["forwardAgain"] == ["failed", "responseEnded"])
        #expect(seen["serveConfirmed"] == ["responseEnded"])
        #expect(seen["complete"] == ["responseEnded"])
        #expect(seen["forward"] == ["contentEnded"])
        #expect(seen["endContent"] == ["contentEnded"])
        #expect(seen["read"] == ["drained", "responseEnded", "handedOn"])
        #expect(seen["detach"] == ["clientGone"])
        #expect(seen["resume"] == ["drained"])
        for next in ["sendContent", "gatherContent", "holdContent", "dropContent"] {
            #expect(seen[next] == ["content"], "\(next)")
        }
    }

    @Test func `an event that its caller continues after has no other reaction`() {
        let events: Set = [
            "begin", "decided", "authenticated", "turnCame", "loaded", "flightEnded", "connected",
            "answered", "relayed",
        ]
        Table.each { _, event, _, reaction in
            guard events.contains(event.name), reaction.isLegal else { return }
            #expect(reaction.next == .nothing)
        }
    }

    @Test func `content that was sent is not thought untouched`() {
        Table.each { state, event, next, reaction in
            guard reaction.next == .sendContent else { return }
            #expect(next.content == .partlySent)
        }
        var state = Table.State()
        _ = state.handle(.begin(.init(hasContent: true, isIdempotent: true, hasClient: true)))
        _ = state.handle(.decided(.gather))
        _ = state.handle(.contentEnded(isKept: true))
        #expect(state.content == .ended(isKept: true))
        _ = state.handle(.decided(.connect))
        _ = state.handle(.connected(1, wasReused: true, sendsGathered: true))
        #expect(state.content == .ended(isKept: false))
    }
}
