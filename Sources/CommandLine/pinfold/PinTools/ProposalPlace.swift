import Gateway
import HTTPCore
import PinObservation
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// Where proposed pins belong in a configuration. The first entry of `hosts` that matches applies,
/// and nothing of any other: a new one must not lose what the entry says that applies now.
package enum ProposalPlace: Hashable, Sendable {
    /// No entry applies to the host yet: in one of its own, after all others.
    case anywhere
    /// An entry applies to the host alone: in that.
    case existing(ApplyingEntry)
    /// An entry applies to it and to others: in one before it, which repeats what that says.
    case before(ApplyingEntry)
    /// Likewise, but it says what cannot be repeated: in a copy of it, which is not printed.
    case copied(ApplyingEntry)
    /// An entry with pinsets applies to it: in those.
    case pinned(ApplyingEntry)

    /// The word for programs.
    package var token: String {
        switch self {
        case .anywhere: "anywhere"
        case .existing: "existing"
        case .before: "before"
        case .copied: "copy"
        case .pinned: "pinned"
        }
    }

    /// The entry that applies now.
    package var entry: ApplyingEntry? {
        switch self {
        case .anywhere: nil
        case .existing(let entry), .before(let entry), .copied(let entry), .pinned(let entry):
            entry
        }
    }
}

/// The entry of `hosts` that applies to a host.
package struct ApplyingEntry: Hashable, Sendable {
    /// A pinset that servers must pass.
    package struct Pins: Hashable, Sendable {
        package var name: String
        /// Its pins as texts; `nil` if it compares certificates, not keys.
        package var keys: [String]?
    }

    package var label: String
    /// Whether one of its patterns has a port.
    package var hasPorts: Bool
    /// By what it says something, besides `match` and `pinsets`.
    package var keys: [EntryKey]
    /// Its pinsets that compare pins.
    package var pinsets: [Pins]
    /// Whether it has others, which exempt its hosts from pinning.
    package var exempts: Bool
}

extension ProposalPlace {
    /// Where pins for a server belong in a configuration.
    package init(of name: ObservedName, in configuration: ConfigurationSnapshot) {
        guard
            let index = configuration.hostEntry(host: name.host.utf8.span, port: name.port)
        else {
            self = .anywhere
            return
        }
        let entry = configuration.hosts.entries[index]
        let used = entry.pinsets.map { configuration.pinsets[$0].pinset }
        let applying = ApplyingEntry(
            label: entry.label, hasPorts: entry.match.contains { $0.port != nil },
            keys: configuration.keys(ofEntry: index),
            pinsets: used.filter { $0.mode != .none }.map { pinset in
                ApplyingEntry.Pins(
                    name: pinset.name,
                    keys: pinset.mode == .publicKey
                        ? (try? TrustVerifier.pinTexts(of: pinset)) ?? [] : nil)
            },
            exempts: used.contains { $0.mode == .none })
        if !applying.pinsets.isEmpty {
            self = .pinned(applying)
        } else if entry.match.allSatisfy({ $0.exactName == name.host }) {
            self = .existing(applying)
        } else {
            self = applying.lost.isEmpty ? .before(applying) : .copied(applying)
        }
    }
}

extension ApplyingEntry {
    /// The keys that only a copy of the entry keeps.
    package var lost: [String] { keys.filter { $0.word == nil }.map(\.name) }

    fileprivate func has(_ name: String) -> Bool { keys.contains { $0.name == name } }
}

// MARK: What to write

extension ProposalPlace {
    /// The keys to write beside `match`, in the new entry, in the copy or in the existing one.
    package func keys(pinset: String) -> [EntryKey] {
        var keys: [EntryKey]
        switch self {
        // It was seen with TLS, which a request for an http:// URL needs as soon as it is pinned.
        case .anywhere: keys = [EntryKey(name: "upgrade", word: "https")]
        case .before(let entry): keys = entry.keys
        case .existing, .copied: keys = []
        case .pinned: return []
        }
        keys += tunnelKeys
        if !(entry?.has("pins") ?? false) { keys.append(EntryKey(name: "pins", word: "observe")) }
        keys.append(EntryKey(name: "pinsets", word: "[\(JSONText.quoted(pinset))]"))
        return keys
    }

    /// The keys without which tunnels that have passed would be refused, because the host has
    /// pinsets.
    private var tunnelKeys: [EntryKey] {
        let intercept = entry?.keys.first { $0.name == "intercept" }?.word
        guard !(entry?.has("tunnel") ?? false), intercept != "true" else { return [] }
        var keys = [
            EntryKey(name: "tunnel", word: "inspect"), EntryKey(name: "tls13Tunnel", word: "probe"),
        ]
        // Inspection takes precedence over interception only where nothing is said of that.
        if intercept == nil { keys.insert(EntryKey(name: "intercept", word: "auto"), at: 0) }
        return keys
    }

    /// What changes for the host besides its pins, in words.
    package var effects: [String] {
        if case .pinned = self { return [] }
        var effects: [String] = []
        if !tunnelKeys.isEmpty {
            effects.append("its tunnels are verified, and what is not TLS in them is refused")
        }
        if let entry, !entry.has("upgrade"), !entry.has("clearText") {
            effects.append(
                "requests for http:// URLs are refused, unless `upgrade: https` is added")
        }
        return effects
    }

    /// The lines of `hosts`: an entry, or comments that say what to write where.
    ///
    /// - Parameter match: the patterns of an entry for the host.
    func lines(match: [String], pinset: String) -> [String] {
        let keys = keys(pinset: pinset).map { "\($0.name): \($0.word ?? "")" }
        let patterns = "match: [\(match.map(JSONText.quoted).joined(separator: ", "))]"
        let hosts = match.joined(separator: ", ")
        var lines: [String] = []
        switch self {
        case .anywhere:
            lines.append("After all other entries: none applies to \(hosts) yet.")
        case .before(let entry):
            lines.append(
                "Before the entry \(entry.label), which would apply otherwise, and is repeated:")
        case .existing(let entry):
            let exempting = entry.exempts ? " in place of its pinsets" : ""
            lines.append(
                "To the entry \(entry.label), which applies to \(hosts) already, add\(exempting):")
            lines += keys.map { "  \($0)" }
        case .copied(let entry):
            let lost = entry.lost.joined(separator: ", ")
            lines += [
                "The entry \(entry.label) applies to \(hosts) and to others. Before it put a copy",
                "of it, which keeps what it says (\(lost)), and write there:",
            ]
            lines += ([patterns] + keys).map { "  \($0)" }
        case .pinned: return []
        }
        lines += effects.map { "From then on \($0)." }
        var written = lines.map { "  # \($0)" }
        switch self {
        case .anywhere, .before:
            written.append("  - \(patterns)")
            written += keys.map { "    \($0)" }
        case .existing, .copied, .pinned: break
        }
        return written
    }
}
