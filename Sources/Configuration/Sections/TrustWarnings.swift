/// What is valid about hosts and pinsets and yet leaves a server less protected than its author
/// probably believes.
extension SnapshotReader {
    /// A pinset that no entry of `hosts` names protects nothing.
    func warnOfUnusedPinsets(_ field: Field?, _ pinsets: [PinsetEntry], _ hosts: [HostEntry]) {
        guard let field, case .mapping(let written) = field.node.content else { return }
        let used = Set(hosts.flatMap(\.pinsets))
        for (index, entry) in pinsets.enumerated() where !used.contains(index) {
            let name = entry.pinset.name
            guard let key = written.first(where: { $0.key == name }) else { continue }
            validation.warn(
                key.keyOrigin, Section.path(field.path, name),
                "no entry of hosts uses this pinset, so it protects nothing; name it in the "
                    + "pinsets of the entry that it is for")
        }
    }
}
