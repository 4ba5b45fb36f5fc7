/// Something that one configuration does and another does not, or not in the same way.
package struct ConfigurationDifference: Sendable, Hashable {
    package enum Kind: String, Sendable {
        case added, removed, changed
        /// Something else applies, because of the order.
        case reordered
    }

    /// A value that differs.
    package struct Detail: Sendable, Hashable {
        /// The key, such as `tls.minimum`; empty for a list that is the subject itself.
        package var key: String
        /// The values, if it is no list, or one in which the order counts; `nil` if it is not set.
        package var before: String?
        package var after: String?
        /// The elements of a list.
        package var added: [String] = []
        package var removed: [String] = []
        /// What the new value means, if that is worth saying.
        package var meaning: String?

        /// `tunnel was auto, is inspect (the server of a tunnel is verified first)`.
        package var text: String {
            var text = added.isEmpty && removed.isEmpty ? values : elements
            if let meaning { text += " (\(meaning))" }
            return text
        }

        private var values: String {
            "\(key) was \(before ?? "not set"), is \(after ?? "not set")"
        }

        private var elements: String {
            let parts = [(added, "added"), (removed, "removed")].filter { !$0.0.isEmpty }
            return key + ": "
                + parts.map { "\(Self.listed($0.0)) \($0.1)" }.joined(separator: ", ")
        }

        /// Some of the elements.
        static func listed(_ texts: [String]) -> String {
            let shown = texts.prefix(8).joined(separator: ", ")
            return texts.count > 8 ? "\(shown) and \(texts.count - 8) more" : shown
        }
    }

    /// The section, or `access.rules` and `access.lists`.
    package var section: String
    /// What in the section it is about: names, or patterns of hosts; empty for the section itself.
    package var subjects: [String] = []
    package var kind = Kind.changed
    /// What there is to say besides.
    package var note: String?
    package var details: [Detail] = []

    /// What differs, on one line and one more for each detail if there are several.
    package var lines: [String] {
        var line = section
        if !subjects.isEmpty { line += ": \(Detail.listed(subjects))" }
        var parts: [String] = []
        if kind != .changed { parts.append(kind.rawValue) }
        if let note { parts.append(note) }
        if kind == .changed, note == nil, details.count == 1 {
            return ["\(line): \(details[0].text)"]
        }
        if !parts.isEmpty { line += ": \(parts.joined(separator: "; "))" }
        return [line + (details.isEmpty ? "" : ":")] + details.map { "  \($0.text)" }
    }

    /// What differs.
    package var text: String { lines.joined(separator: "\n") }
}
