extension HostPattern {
    /// Hosts that it matches, one of each kind that other patterns may tell apart, as long as none
    /// of them has the label in its name; none of a pattern for everything.
    ///
    /// - Parameter label: a label of a host name.
    package func examples(label: String) -> [String] {
        switch reach {
        case .exact: exactName.map { [$0] } ?? []
        case .oneLabel(let name): ["\(label).\(name)"]
        case .anyDepth(let name): [name, "\(label).\(name)", "\(label).\(label).\(name)"]
        case .everything: []
        }
    }

    /// Whether some host and port matches both patterns.
    package func overlaps(_ other: HostPattern) -> Bool {
        if let port, let otherPort = other.port, port != otherPort { return false }
        let (mine, others) = (atEveryPort, other.atEveryPort)
        if mine == .everything || others == .everything { return true }
        // No name ends like that (RFC 6761 §6.4).
        let label = "pinfold-invalid"
        return mine.examples(label: label).contains { others.matches(host: $0.utf8.span, port: 0) }
            || others.examples(label: label).contains { mine.matches(host: $0.utf8.span, port: 0) }
    }
}
