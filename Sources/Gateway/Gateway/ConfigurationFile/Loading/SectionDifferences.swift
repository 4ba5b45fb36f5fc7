import PinfoldConfiguration

extension ConfigurationSnapshot {
    /// The names of the sections that another configuration has other values in, in the order in
    /// which they are printed.
    func sectionsThatDiffer(from other: ConfigurationSnapshot) -> [String] {
        SectionName.allCases.filter { differs(from: other, in: $0) }.map(\.rawValue)
    }

    private func differs(from other: ConfigurationSnapshot, in section: SectionName) -> Bool {
        switch section {
        // What the files include is in the other sections.
        case .include: false
        case .watch: watch != other.watch
        case .workers: workers != other.workers
        case .via: via != other.via
        case .listeners: listeners != other.listeners
        case .admin: admin != other.admin
        case .authentication: authentication != other.authentication
        case .access: access != other.access
        case .parents: parents != other.parents
        case .ways: ways != other.ways
        case .hosts: hosts != other.hosts
        case .pinsets: pinsets != other.pinsets
        case .pins: pinObservation != other.pinObservation
        case .interception: interception != other.interception
        case .tls: tls != other.tls
        case .cache: cache != other.cache
        case .resolver: resolver != other.resolver
        case .activity: activity != other.activity
        case .limits: limits != other.limits
        case .timeouts: timeouts != other.timeouts
        case .errorReplies: errorReplies != other.errorReplies
        case .log: log != other.log
        case .tracing: tracing != other.tracing
        case .policy: policy != other.policy || policyInForce != other.policyInForce
        }
    }
}
