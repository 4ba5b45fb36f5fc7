import HTTPCore
import PinObservation
import PinfoldConfiguration
import Trust

/// Proposed pins, as configuration to merge, and as JSON.
package struct ProposalDocument {
    /// What is proposed for a server, or why nothing is.
    package struct Part {
        package var name: ObservedName
        package var result: Result<PinProposal, PinProposalReason>
        package var place: ProposalPlace

        package init(
            name: ObservedName, result: Result<PinProposal, PinProposalReason>,
            place: ProposalPlace
        ) {
            self.name = name
            self.result = result
            self.place = place
        }

        fileprivate var proposal: PinProposal? { try? result.get() }
    }

    /// What is proposed for a host: one pinset for all its ports, because a server must pass every
    /// pinset of its entry.
    private struct Group {
        var host: String
        /// The name of the pinset.
        var pinset: String
        /// Those with a proposal.
        var parts: [Part] = []
        /// Those without.
        var others: [ObservedName] = []

        /// Whether a pinset of its own is printed.
        var hasOwnPinset: Bool {
            parts.contains { part in
                if case .pinned = part.place { false } else { true }
            }
        }

        /// The keys of all ports, each once.
        var keys: [PinProposal.Key] {
            var keys: [PinProposal.Key] = []
            for key in parts.compactMap(\.proposal).flatMap(\.keys)
            where !keys.contains(where: { $0.key == key.key }) {
                keys.append(key)
            }
            return keys
        }

        /// The places, each once, with the ports that are meant.
        var places: [(place: ProposalPlace, names: [ObservedName])] {
            var places: [(place: ProposalPlace, names: [ObservedName])] = []
            for part in parts {
                if let index = places.firstIndex(where: { $0.place == part.place }) {
                    places[index].names.append(part.name)
                } else {
                    places.append((part.place, [part.name]))
                }
            }
            return places
        }

        /// The patterns of an entry for the host at these ports.
        func match(_ place: ProposalPlace, _ names: [ObservedName]) -> [String] {
            places.count > 1 || place.entry?.hasPorts == true ? names.map { "\($0)" } : [host]
        }

        /// What there is to know of a pinset for several ports.
        var remarks: [String] {
            var remarks: [String] = []
            if parts.count > 1 {
                let names = parts.map { "\($0.name)" }.joined(separator: " and ")
                remarks.append(
                    "one pinset for \(names), with the keys of each: all of them are accepted "
                        + "at every port")
            }
            for name in others {
                remarks.append(
                    "not sure: nothing is proposed for \(name), which has to pass as well "
                        + "wherever the pinset applies to it")
            }
            return remarks
        }
    }

    private let parts: [Part]
    private let groups: [Group]
    private let now: Int64

    /// - Parameters:
    ///   - taken: the names of pinsets that exist.
    ///   - now: seconds since 1970.
    package init(_ parts: [Part], taken: [String], now: Int64) {
        self.parts = parts
        self.now = now
        var used = Set(taken)
        var groups: [Group] = []
        for part in parts where part.proposal != nil {
            if let index = groups.firstIndex(where: { $0.host == part.name.host }) {
                groups[index].parts.append(part)
            } else {
                let pinset = Self.pinsetName(part.name, &used)
                groups.append(Group(host: part.name.host, pinset: pinset, parts: [part]))
            }
        }
        for index in groups.indices {
            let host = groups[index].host
            groups[index].others = parts.filter { $0.proposal == nil && $0.name.host == host }
                .map(\.name)
        }
        self.groups = groups
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

    /// Whether anything is proposed.
    package var isEmpty: Bool { groups.isEmpty }

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
        for group in groups {
            for (place, names) in group.places {
                hosts += place.lines(match: group.match(place, names), pinset: group.pinset)
                if case .pinned(let entry) = place {
                    for pins in entry.pinsets { pinsets += Self.additions(to: pins, entry, group) }
                }
            }
            if group.hasOwnPinset { pinsets += Self.pinset(group) }
        }
        var lines = ["# Proposed on \(PinProposal.day(now)) from what servers have shown."]
        lines += Self.section("hosts", hosts) + Self.section("pinsets", pinsets)
        return lines.joined(separator: "\n") + "\n"
    }

    /// A section, as a comment if there is nothing in it but comments.
    private static func section(_ name: String, _ lines: [String]) -> [String] {
        guard !lines.isEmpty else { return [] }
        return [lines.contains { !$0.hasPrefix("  #") } ? "\(name):" : "# \(name):"] + lines
    }

    private static func pinset(_ group: Group) -> [String] {
        let proposals = group.parts.compactMap(\.proposal)
        var lines = ["  \(JSONText.quoted(group.pinset)):"]
        lines += evidence(group).map { "    # \($0)" }
        lines.append("    mode: publicKey")
        let day = PinProposal.day(proposals.map(\.enforceFrom).max() ?? 0)
        lines.append(
            "    # Remove this line on \(day), if nothing has been reported until then.")
        lines.append("    enforce: false")
        lines.append("    pins:")
        for key in group.keys {
            lines.append("      # \(text(key))")
            lines.append("      - \"\(key.key.keyPinText)\"")
        }
        return lines
    }

    /// What to add to a pinset that applies already: a second one would have to pass as well.
    private static func additions(
        to pins: ApplyingEntry.Pins, _ entry: ApplyingEntry, _ group: Group
    ) -> [String] {
        var lines: [String] = []
        if let known = pins.keys {
            let added = group.keys.filter { !known.contains($0.key.keyPinText) }
            lines.append(
                added.isEmpty
                    ? "The pinset \(pins.name) of the entry \(entry.label) has all these keys:"
                    : "To the pins of \(pins.name), a pinset of the entry \(entry.label), add:")
            lines += evidence(group).map { "  \($0)" }
            for key in added {
                lines += ["    \(text(key))", "    - \"\(key.key.keyPinText)\""]
            }
        } else {
            lines.append(
                "The pinset \(pins.name) of the entry \(entry.label) compares certificates: keys "
                    + "are added to it by certificate files only.")
        }
        return lines.map { "  # \($0)" }
    }

    /// When a host was seen, and what follows from it.
    private static func evidence(_ group: Group) -> [String] {
        var lines: [String] = []
        for proposal in group.parts.compactMap(\.proposal) {
            let first = PinProposal.day(proposal.firstSeen)
            let last = PinProposal.day(proposal.lastSeen)
            lines.append("\(proposal.name), seen from \(first) to \(last)")
            for remark in proposal.remarks {
                lines.append("\(remark.isSure ? "sure" : "not sure"): \(remark.text)")
            }
        }
        return lines + group.remarks
    }

    private static func text(_ key: PinProposal.Key) -> String {
        let subject = key.subject.isEmpty ? "" : " \(key.subject):"
        return "\(key.role.rawValue), \(key.isSure ? "sure" : "not sure"):\(subject) \(key.reason)"
    }

    // MARK: JSON

    /// The same as JSON, a line for each server.
    package var json: String {
        parts.map { part in
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
                if let group = groups.first(where: { $0.host == part.name.host }) {
                    Self.add(part, group, to: &object)
                }
                object.add("firstSeen", CivilDate.text(secondsSince1970: proposal.firstSeen))
                object.add("lastSeen", CivilDate.text(secondsSince1970: proposal.lastSeen))
                object.add("enforceFrom", PinProposal.day(proposal.enforceFrom))
                object.add("certificates", proposal.certificates)
                object.add("covered", proposal.covered)
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

    /// Adds what to write where.
    private static func add(_ part: Part, _ group: Group, to object: inout JSONObject) {
        let place = part.place
        let names = group.places.first { $0.place == place }?.names ?? [part.name]
        object.add("place", place.token)
        if let entry = place.entry { object.add("entry", entry.label) }
        if case .pinned(let entry) = place {
            object.add("addTo", entry.pinsets.map(\.name))
        } else {
            object.add("pinset", group.pinset)
            object.add("match", group.match(place, names))
            var keys = JSONObject()
            for key in place.keys(pinset: group.pinset) where key.name != "pinsets" {
                keys.add(key.name, key.word)
            }
            object.add("keys", keys)
        }
        if case .copied(let entry) = place { object.add("copy", entry.lost) }
        object.add("effects", place.effects)
        object.add("pins", group.keys.map(json))
        object.add("pinsetRemarks", group.remarks)
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
