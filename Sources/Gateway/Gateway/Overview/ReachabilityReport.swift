import Activity
import Documents
import PinfoldEngine

/// The reachability of servers, by host entry.
struct ReachabilityReport: Sendable {
    struct Server: Sendable {
        var name: String
        var state: ReachabilityState
    }

    struct Entry: Sendable {
        var label: String
        var servers: [Server]
        var changes: [EntryReachability.Change]
        var transitions: [ReachabilityState: UInt64] = [:]

        init(_ entry: EntryReachability) {
            label = entry.label
            servers = entry.known.map { Server(name: $0.server, state: $0.state) }
            changes = entry.changes
            for state in ReachabilityState.allCases {
                transitions[state] = entry.transitions(to: state)
            }
        }
    }

    var entries: [Entry]
    /// Those of reverse listeners with several.
    var servers: [StatusReport.Server]

    private static let words = ReachabilityState.allCases.map { "\($0.label)" }

    static let server = ObjectShape<Server>(
        "A server.",
        [
            .text("host", "Its name, with the port if the configuration names it.") { $0.name },
            .word("state", words, "Whether it is reachable.") { "\($0.state.label)" },
        ])

    private static let change = ObjectShape<EntryReachability.Change>(
        "A server has entered another state.",
        [
            .time("time", "When.") { $0.time },
            .text("host", "Which one.") { $0.server },
            .word("from", words, "The state before.") { "\($0.from.label)" },
            .word("to", words, "The state since.") { "\($0.to.label)" },
        ])

    private static let transitions = ObjectShape<[ReachabilityState: UInt64]>(
        "How often servers have entered a state since the start.",
        ReachabilityState.allCases.map { state in
            .number("\(state.label)", "How often.") { Int(clamping: $0[state] ?? 0) }
        })

    private static let entry = ObjectShape<Entry>(
        "A host entry.",
        [
            .text("entry", "Its label.") { $0.label },
            .list("servers", server, "The servers of which something is known.") { $0.servers },
            .list("changes", change, "The latest changes, the oldest first.") { $0.changes },
            .object("transitions", transitions) { $0.transitions },
        ])

    static let balanced = ObjectShape<StatusReport.Server>(
        "A server of a reverse listener that has several.",
        [
            .text("listener", "The listener's name.") { $0.listener },
            .text("url", "Its URL.") { $0.url },
            .text("state", "up, down, ejected or draining.") { $0.state },
            .flag("backup", "Whether it is used only if no other one is up.") { $0.isBackup },
            .number("weight", "Its weight.") { $0.weight },
            .number("requests", "Requests under way.") { $0.requests },
            .optionalText("cause", "Why it was last found not to work.") { $0.cause },
        ])

    static let shape = ObjectShape<ReachabilityReport>(
        "The reachability of servers.",
        [
            .list("entries", entry, "By host entry.") { $0.entries },
            .list("servers", balanced, "Of reverse listeners that have several.") { $0.servers },
        ])
}
