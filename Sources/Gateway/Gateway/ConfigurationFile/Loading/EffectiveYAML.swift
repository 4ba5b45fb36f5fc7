import HTTPCore
import PinfoldConfiguration
import Trust

extension ConfigurationSnapshot {
    /// The whole configuration as YAML, with every default filled in and every path absolute. It
    /// is a valid configuration that loads to an equal snapshot. Of secrets (the administrative
    /// token, the interception authority's key), only the file is printed, and of environment
    /// variables only `${NAME}`.
    package func effectiveYAML() -> String {
        var yaml = YAMLText()
        for section in SectionName.allCases { write(section, to: &yaml) }
        return EffectiveVariables.written(in: yaml.text, variables)
    }

    private func write(_ section: SectionName, to yaml: inout YAMLText) {
        let key = section.rawValue
        switch section {
        // What is printed has all of them.
        case .include: yaml.line(0, "\(key): []")
        case .watch: yaml.line(0, "\(key): \(watch)")
        case .workers:
            switch workers {
            case .auto(let cores):
                yaml.line(0, "\(key): auto  # one per core that may be used here, \(cores)")
            case .fixed(let count): yaml.line(0, "\(key): \(count)")
            }
        case .via: if let via { yaml.line(0, "\(key): \(YAMLText.quoted(via.text))") }
        case .listeners:
            yaml.line(0, "\(key):")
            let keys = ListenerConfiguration.table(hasExplicitClients: true)
            for listener in listeners { yaml.element(1, keys, listener) }
        case .admin: yaml.section(section, AdminConfiguration.table, admin)
        case .authentication:
            yaml.section(section, AuthenticationConfiguration.table, authentication)
        case .access: yaml.section(section, AccessConfiguration.table, access)
        case .parents:
            yaml.line(0, parents.isEmpty ? "\(key): {}" : "\(key):")
            for parent in parents {
                let keys = ParentConfiguration.table.flow(parent) ?? "{}"
                yaml.line(1, "\(YAMLText.quoted(parent.name)): \(keys)")
            }
        case .ways: yaml.section(section, WaysConfiguration.table, ways)
        case .hosts:
            yaml.line(0, hosts.entries.isEmpty ? "\(key): []" : "\(key):")
            let keys = HostEntry.table(pinsets: pinsets.map(\.pinset.name))
            for entry in hosts.entries { yaml.element(1, keys, entry) }
        case .pinsets:
            yaml.line(0, pinsets.isEmpty ? "\(key): {}" : "\(key):")
            for entry in pinsets {
                yaml.line(1, "\(YAMLText.quoted(entry.pinset.name)):")
                yaml.lines(2, PinsetEntry.table, entry)
            }
        case .pins: yaml.section(section, PinObservationConfiguration.table, pinObservation)
        case .interception:
            yaml.section(section, InterceptionConfiguration.table, interception)
        case .tls: yaml.line(0, "\(key): \(UpstreamTLS.table.flow(tls) ?? "{}")")
        case .cache: yaml.section(section, CacheConfiguration.table, cache)
        case .resolver: yaml.section(section, ResolverConfiguration.table, resolver)
        case .activity: yaml.section(section, ActivityConfiguration.table, activity)
        case .limits: yaml.section(section, LimitsConfiguration.table, limits)
        case .timeouts: yaml.section(section, TimeoutsConfiguration.table, timeouts)
        case .errorReplies:
            yaml.section(section, ErrorRepliesConfiguration.table, errorReplies)
        case .log: yaml.section(section, LogConfiguration.table, log)
        case .tracing: yaml.section(section, TracingConfiguration.table, tracing)
        case .policy:
            if let policy { yaml.section(section, PolicyConfiguration.table, policy) }
            if let policyInForce { yaml.line(0, "# \(policyInForce.summary)") }
        }
    }
}

extension PolicyInForce {
    /// What it has added, for people.
    package var summary: String {
        func count(_ number: Int, _ one: String, _ more: String) -> String {
            "\(number) \(number == 1 ? one : more)"
        }
        return "serial \(serial), expires \(CivilDate.text(secondsSince1970: expires)): the last "
            + "\(count(hosts, "entry", "entries")) of hosts, "
            + "\(count(pinsets, "pinset", "pinsets")) and \(count(rules, "rule", "rules")) are its"
    }
}

extension SectionName {
    /// The keys of the section or of its elements, with their defaults, for the tests that compare
    /// the documentation with them, or `nil` if the section has no keys.
    var described: [DescribedKey]? {
        switch self {
        case .include, .watch, .workers, .via: nil
        case .listeners:
            ListenerConfiguration.table(hasExplicitClients: true).described(
                ListenerConfiguration(
                    name: "", address: SnapshotReader.defaultListener.address, kind: .forward))
        case .admin: AdminConfiguration.table.described(AdminConfiguration())
        case .authentication:
            AuthenticationConfiguration.table.described(AuthenticationConfiguration())
        case .access: AccessConfiguration.table.described(AccessConfiguration())
        case .parents: ParentConfiguration.table.described(ParentConfiguration(name: ""))
        case .ways: WaysConfiguration.table.described(WaysConfiguration())
        case .hosts: HostEntry.table(pinsets: []).described(HostEntry())
        case .pinsets: PinsetEntry.table.described(PinsetEntry(pinset: Pinset(name: "")))
        case .pins: PinObservationConfiguration.table.described(PinObservationConfiguration())
        case .interception: InterceptionConfiguration.table.described(InterceptionConfiguration())
        case .tls: UpstreamTLS.table.described(UpstreamTLS())
        case .cache: CacheConfiguration.table.described(CacheConfiguration())
        case .resolver: ResolverConfiguration.table.described(ResolverConfiguration())
        case .activity: ActivityConfiguration.table.described(ActivityConfiguration())
        case .limits: LimitsConfiguration.table.described(LimitsConfiguration())
        case .timeouts: TimeoutsConfiguration.table.described(TimeoutsConfiguration())
        case .errorReplies: ErrorRepliesConfiguration.table.described(ErrorRepliesConfiguration())
        case .log: LogConfiguration.table.described(LogConfiguration())
        case .tracing: TracingConfiguration.table.described(TracingConfiguration())
        case .policy: PolicyConfiguration.table.described(PolicyConfiguration())
        }
    }
}
