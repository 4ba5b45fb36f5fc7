import HTTPCore
import PinfoldConfiguration

/// Checks a tree of nodes and converts it to a snapshot with all defaults. After an error, reading
/// continues with the default value, so that one load finds all errors. The result is valid only
/// if the validation has no errors at the end.
struct SnapshotReader {
    let validation: ConfigurationValidation

    /// The maximum number of worker threads.
    static let maximumWorkers = 256

    /// Reads a whole document.
    func snapshot(_ root: ConfigNode) -> ConfigurationSnapshot {
        let top = Field(node: root, path: "", validation: validation)
            .section(keys: SectionName.allCases.map(\.rawValue), later: SectionName.later)
        let access = access(top?[.access])
        let hasClients = hasExplicitClients(top?[.access])
        let defaultTLS = read(top?[.tls], by: UpstreamTLS.table, over: UpstreamTLS()).values
        let pinsets = pinsets(top?[.pinsets])
        let admin = admin(top?[.admin])
        let listeners = listeners(
            top?[.listeners], hasExplicitClients: hasClients, admin: admin,
            adminField: top?[.admin])
        let hosts = hosts(top?[.hosts], pinsets: pinsets, over: defaultTLS)
        let parents = parents(top?[.parents])
        let ways = read(top?[.ways], by: WaysConfiguration.table, over: WaysConfiguration()).values
        let interception = interception(top?[.interception], hosts, in: top?[.hosts])
        warnOfForeignLists(top?[.tls], defaultTLS)
        if let elements = top?[.hosts]?.elements, elements.count == hosts.count {
            for (element, entry) in zip(elements, hosts) {
                warnOfForeignLists(element.key("tls"), entry.tls)
                warnOfUnverifiedChains(element, entry, pinsets)
            }
        }
        warnOfUnusedPinsets(top?[.pinsets], pinsets, hosts)
        warnOfShadowedPatterns(top?[.hosts], hosts)
        var snapshot = ConfigurationSnapshot(
            workers: workers(top?[.workers]),
            via: top?[.via]?.gatewayName(),
            listeners: listeners,
            admin: admin,
            authentication: read(
                top?[.authentication], by: AuthenticationConfiguration.table,
                over: AuthenticationConfiguration()
            ).values,
            access: access,
            hosts: table(of: hosts, in: top?[.hosts]),
            pinsets: pinsets,
            interception: interception,
            tls: defaultTLS,
            cache: cache(top?[.cache]),
            resolver: resolver(top?[.resolver]),
            activity: read(
                top?[.activity], by: ActivityConfiguration.table, over: ActivityConfiguration()
            ).values,
            limits: limits(top?[.limits]),
            timeouts: read(
                top?[.timeouts], by: TimeoutsConfiguration.table, over: TimeoutsConfiguration()
            ).values,
            log: read(top?[.log], by: LogConfiguration.table, over: LogConfiguration()).values)
        if let watch = top?[.watch]?.boolean() { snapshot.watch = watch }
        (snapshot.parents, snapshot.ways) = (parents, ways)
        snapshot.errorReplies = errorReplies(top?[.errorReplies])
        snapshot.tracing = tracing(top?[.tracing])
        snapshot.pinObservation = pinObservation(top?[.pins])
        snapshot.policy = policy(top?[.policy])
        checkWays(top, snapshot)
        warnOfBypasses(top?[.hosts], snapshot)
        checkRuleReach(top?[.hosts], snapshot)
        checkAccessRules(top?[.access], snapshot)
        checkAuthentication(top?[.authentication], top?[.listeners], snapshot)
        warnOfUnservedSockets(top?[.listeners], snapshot)
        warnOfClosedPorts(top?[.listeners], snapshot)
        warnOfNames(top, snapshot)
        warnOfIdleInterception(top?[.interception], snapshot)
        checkUpstreams(top?[.listeners], snapshot)
        warnOfRefusedUpstreams(top?[.listeners], snapshot)
        warnOfReportFolder(top?[.cache], snapshot)
        checkPolicyEngine(top?[.policy], snapshot)
        warnOfPolicyFolder(top?[.policy], snapshot)
        warnOfMemory(top?[.cache], top?[.limits], snapshot)
        return snapshot
    }

    private func workers(_ field: Field?) -> WorkerCount {
        let auto = WorkerCount.auto(
            cores: min(Self.maximumWorkers, max(1, validation.environment.cores)))
        guard let field else { return auto }
        if case .scalar("auto", _) = field.node.content { return auto }
        guard case .scalar(let text, _) = field.node.content, Int(text) == nil else {
            return field.integer(in: 1...Self.maximumWorkers).map(WorkerCount.fixed) ?? auto
        }
        field.fail(
            "\(quoted(text)) is not a number of threads",
            expected: "auto, or a whole number from 1 to \(Self.maximumWorkers)")
        return auto
    }
}
