@testable import HTTPCore

/// Everything that a connection can be in, and everything that can happen to it.
enum HTTP1ConnectionTable {
    typealias Connection = HTTP1Connection

    /// Every combination of facts, but for those that decide nothing (`hasCarried` and
    /// `requestEnded`).
    private static let facts = (0..<256).map { Connection.Facts(rawValue: $0) }
        .filter { !$0.contains(.hasCarried) }

    /// The ways in which content is sent, and the versions that have them.
    private static let forms: [(Connection.SentFraming, HTTPVersion)] = [
        (.counted, .http10), (.untilClose, .http10), (.counted, .http11), (.chunked, .http11),
    ]

    static func states(
        _ role: Connection.Role, _ phase: Connection.Phase
    ) -> [Connection] {
        facts.flatMap { facts in
            forms.map { framing, version in
                var connection = Connection(role, isOpen: true)
                connection.current = phase
                connection.facts = facts
                connection.framing = framing
                connection.requestVersion = version
                return connection
            }
        }
    }

    private static let bools = [false, true]

    static let rests = bools.flatMap { isFlushed in
        bools.map { Connection.Rest(isFlushed: isFlushed, hasInput: $0) }
    }

    /// The versions of the messages on it.
    static let versions = HTTPVersion.allCases.filter { $0.carrier == .http1 }

    static let requests: [Connection.Request] = versions.flatMap { version in
        bools.flatMap { hasContent in
            bools.flatMap { persists in
                bools.map { other in
                    Connection.Request(
                        version: version, hasContent: hasContent, persists: persists,
                        maySwitch: other, expectsContinue: !other, isChunked: other)
                }
            }
        }
    }

    static let responses: [Connection.Response] = bools.flatMap { persists in
        bools.flatMap { isSuccess in
            bools.map {
                Connection.Response(persists: persists, isSuccess: isSuccess, isStreamed: $0)
            }
        }
    }

    /// Every event, with every value that it can have; those of a request's head in part.
    static let events: [Connection.Event] = {
        var all: [Connection.Event] = [.opened, .headBegan]
        all += rests.map { .givenBack($0) }
        all += requests.map { .requestHead($0) }
        all += [.contentQueued, .requestEnded, .responseBegan]
        all += bools.map { .interimHead(persists: $0) }
        all += [.emptyLinePassed]
        all += responses.map { .responseHead($0) }
        all += [.headWithdrawn]
        all += rests.map { .responseEnded($0) } + rests.map { .settled($0) }
        all += [.cut]
        all += bools.map { .inputEnded(completing: $0) }
        all += [.peerFinished, .sendingFailed, .refused]
        all += bools.map { .drain(hasInput: $0) }
        return all + [.detached, .versionChanged, .lingers, .closed]
    }()

    struct Transition {
        var state: Connection
        var event: Connection.Event
        var next: Connection
        var reaction: Connection.Reaction
    }

    /// Calls `body` with every transition, illegal ones included.
    /// - Parameter names: of the events that matter; `nil` for all.
    static func each(_ names: Set<String>? = nil, _ body: (Transition) -> Void) {
        let events = events.filter { names?.contains($0.name) ?? true }
        for role in Connection.Role.allCases {
            for phase in Connection.Phase.allCases {
                for state in states(role, phase) {
                    for event in events {
                        var next = state
                        let reaction = next.handle(event)
                        body(
                            Transition(
                                state: state, event: event, next: next, reaction: reaction))
                    }
                }
            }
        }
    }

    /// One step of a table: from what, on what, to what, and what is to be done.
    struct Step: Hashable {
        var role: Connection.Role
        var phase: Connection.Phase
        var event: String
        var next: Connection.Phase
        var reaction: Connection.Reaction
    }

    /// The legal steps, without what they depend on.
    static let steps: Set<Step> = {
        var steps: Set<Step> = []
        each {
            guard $0.reaction != .illegal else { return }
            steps.insert(
                Step(
                    role: $0.state.role, phase: $0.state.phase, event: $0.event.name,
                    next: $0.next.phase, reaction: $0.reaction))
        }
        return steps
    }()

    /// The phases that a connection can be in, from the start and by legal steps.
    static func reachable(_ role: Connection.Role) -> Set<Connection.Phase> {
        var reached: Set<Connection.Phase> = [.opening]
        var last: Set<Connection.Phase> = []
        while reached != last {
            last = reached
            for step in steps where step.role == role && last.contains(step.phase) {
                reached.insert(step.next)
            }
        }
        return reached
    }

    /// The table of the page, as the code has it.
    static func page(_ role: Connection.Role) -> String {
        let reachable = reachable(role)
        var names: [String] = []
        for event in events where !names.contains(event.name) { names.append(event.name) }
        let rows = Connection.Phase.allCases.filter(reachable.contains).map { phase in
            let cells = names.compactMap { name -> String? in
                let found = steps.filter {
                    $0.role == role && $0.phase == phase && $0.event == name
                }
                guard !found.isEmpty else { return nil }
                let nexts = Connection.Phase.allCases.filter { next in
                    found.contains { $0.next == next }
                }
                let reactions = Connection.Reaction.allCases.filter { reaction in
                    found.contains { $0.reaction == reaction }
                }
                var cell = name
                if nexts != [phase] {
                    cell += " → " + nexts.map { "\($0)" }.joined(separator: "/")
                }
                if reactions != [.nothing] {
                    cell += " (" + reactions.map { "\($0)" }.joined(separator: "/") + ")"
                }
                return cell
            }
            return "| \(phase) | \(cells.joined(separator: ", ")) |\n"
        }
        return "| phase | event → next phase (what must be done) |\n|---|---|\n" + rows.joined()
    }
}

extension HTTP1Connection.Event {
    /// The event's name, without its values.
    var name: String { String("\(self)".prefix { $0 != "(" }) }
}
