import HTTPCore
import PinObservation
import PinfoldConfiguration
import Trust

/// Proposed pins, as configuration to merge, and as JSON.
package struct ProposalDocument {
    /// Where a proposed entry belongs among those of a configuration: the first that matches
    /// applies.
    package enum Place: Hashable, Sendable {
        /// No entry applies to the host yet: anywhere.
        case anywhere
        /// Another entry applies to it and to other hosts: before that.
        case before(entry: String)
        /// An entry applies to it alone, to which the pinset is to be added.
        case existing(entry: String)
    }

    /// What is proposed for a host, or why nothing is.
    package struct Part {
        package var name: ObservedName
        package var result: Result<PinProposal, PinProposalReason>
        package var place: Place

        package init(
            name: ObservedName, result: Result<PinProposal, PinProposalReason>, place: Place
        ) {
            self.name = name
            self.result = result
            self.place = place
        }
    }

    private let parts: [Part]
    /// The names of the pinsets, by the parts' indices.
    private let names: [String]
    /// Hosts that were seen at several ports.
    private let severalPorts: Set<String>
    private let now: Int64

    /// - Parameters:
    ///   - taken: the names of pinsets that exist.
    ///   - now: seconds since 1970.
    package init(_ parts: [Part], taken: [String], now: Int64) {
        self.parts = parts
        self.now = now
        var used = Set(taken)
        names = parts.map { Self.pinsetName($0.name, &used) }
        severalPorts = Set(
            Dictionary(grouping: parts, by: \.name.host).filter { $0.value.count > 1 }.keys)
    }

    private static func pinsetName(_ name: ObservedName, _ used: inout Set<String>) -> String {
        let letters = name.host.map { letter -> Character in
            letter.isASCII && (letter.isLetter || letter.isNumber || ".-_".contains(letter))
                ? letter : "-"
        }
        let base = String(String(letters).suffix(48))
        var made = base
        var count = 1
        while !used.insert(made).inserted {
            count += 1
            made = "\(base)-\(count)"
        }
        return made
    }

    private func pattern(_ name: ObservedName) -> String {
        severalPorts.contains(name.host) ? "\(name)" : name.host
    }

    private var proposed: [(part: Part, proposal: PinProposal, pinset: String)] {
        zip(parts, names).compactMap { part, pinset in
            (try? part.result.get()).map { (part, $0, pinset) }
        }
    }

    /// Whether anything is proposed.
    package var isEmpty: Bool { proposed.isEmpty }

    /// Why nothing is proposed for hosts: a line for each.
    package var refusals: [String] {
        parts.compactMap { part in
            guard case .failure(let reason) = part.result else { return nil }
            return "\(part.name): no pins are proposed: \(reason)"
        }
    }

    // MARK: YAML

    /// The configuration, with what speaks for and against it in comments.
    package var yaml: String {
        var hosts: [String] = []
        var pinsets: [String] = []
        for (part, proposal, pinset) in proposed {
            let match = pattern(part.name)
            switch part.place {
            case .existing(let entry):
                hosts.append(
                    "  # Add `pinsets: [\(pinset)]` to the entry \(entry), which applies to "
                        + "\(match) already.")
            case .before(let entry):
                hosts.append("  # Before the entry \(entry), which would apply otherwise:")
                hosts += Self.entry(match, pinset)
            case .anywhere: hosts += Self.entry(match, pinset)
            }
            pinsets += Self.pinset(proposal, pinset)
        }
        let hasEntries = hosts.contains { !$0.hasPrefix("  #") }
        var lines = ["# Proposed on \(PinProposal.day(now)) from what servers have shown."]
        if !hosts.isEmpty { lines += [hasEntries ? "hosts:" : "# hosts:"] + hosts }
        if !pinsets.isEmpty { lines += ["pinsets:"] + pinsets }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func entry(_ match: String, _ pinset: String) -> [String] {
        [
            "  - match: [\(JSONText.quoted(match))]", "    upgrade: https",
            "    pinsets: [\(pinset)]",
        ]
    }

    private static func pinset(_ proposal: PinProposal, _ name: String) -> [String] {
        var lines = ["  \(name):"]
        lines.append(
            "    # \(proposal.name), seen from \(PinProposal.day(proposal.firstSeen)) to "
                + PinProposal.day(proposal.lastSeen))
        for remark in proposal.remarks {
            lines.append("    # \(remark.isSure ? "sure" : "not sure"): \(remark.text)")
        }
        lines.append("    mode: publicKey")
        lines.append(
            "    # Remove this line on \(PinProposal.day(proposal.enforceFrom)), if nothing has "
                + "been reported until then.")
        lines.append("    enforce: false")
        lines.append("    pins:")
        for key in proposal.keys {
            let subject = key.subject.isEmpty ? "" : " \(key.subject):"
            lines.append(
                "      # \(key.role.rawValue), \(key.isSure ? "sure" : "not sure"):\(subject) "
                    + key.reason)
            lines.append("      - \"\(key.key.keyPinText)\"")
        }
        return lines
    }

    // MARK: JSON

    /// The same as JSON, a line for each host.
    package var json: String {
        zip(parts, names).map { part, pinset in
            var object = JSONObject()
            object.add("host", part.name.host)
            object.add("port", Int(part.name.port))
            switch part.result {
            case .failure(let reason):
                object.add("proposed", false)
                object.add("reason", reason.token)
                object.add("detail", "\(reason)")
            case .success(let proposal):
                object.add("proposed", true)
                object.add("pinset", pinset)
                object.add("match", pattern(part.name))
                Self.add(part.place, to: &object)
                object.add("firstSeen", CivilDate.text(secondsSince1970: proposal.firstSeen))
                object.add("lastSeen", CivilDate.text(secondsSince1970: proposal.lastSeen))
                object.add("enforceFrom", PinProposal.day(proposal.enforceFrom))
                object.add("certificates", proposal.certificates)
                object.add("covered", proposal.covered)
                object.add("pins", proposal.keys.map(Self.json))
                object.add(
                    "remarks",
                    proposal.remarks.map { remark in
                        var object = JSONObject()
                        object.add("sure", remark.isSure)
                        object.add("text", remark.text)
                        return object
                    })
            }
            return object.text + "\n"
        }.joined()
    }

    private static func add(_ place: Place, to object: inout JSONObject) {
        switch place {
        case .anywhere: object.add("place", "anywhere")
        case .before(let entry):
            object.add("place", "before")
            object.add("entry", entry)
        case .existing(let entry):
            object.add("place", "existing")
            object.add("entry", entry)
        }
    }

    private static func json(_ key: PinProposal.Key) -> JSONObject {
        var object = JSONObject()
        object.add("pin", key.key.keyPinText)
        object.add("role", key.role.rawValue)
        object.add("sure", key.isSure)
        object.add("subject", key.subject.isEmpty ? nil : key.subject)
        object.add("why", key.reason)
        return object
    }
}
