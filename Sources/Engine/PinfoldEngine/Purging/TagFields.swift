import CacheStore
import PinfoldConfiguration

/// The fields that have tags of responses, as far as the configuration names them.
extension PolicySnapshot {
    var tagFields: [String] {
        configuration.hosts.entries.flatMap { entry in
            ([entry.cache] + entry.paths.map(\.cache)).flatMap { $0.tagFields ?? [] }
        }
    }
}

extension SharedEnvironment {
    /// A policy is in force from now on: its fields of tags are those by which is purged.
    func useTagFields(of policy: PolicySnapshot) {
        guard let store else { return }
        let fields = policy.tagFields
        if !fields.isEmpty { store.addTagFields(fields) }
    }
}
