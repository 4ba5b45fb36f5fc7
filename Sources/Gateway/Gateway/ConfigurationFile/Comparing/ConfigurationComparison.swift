import AccessPolicy
import Authentication
import PinfoldConfiguration
import Trust

extension ConfigurationDifference {
    /// What differs in effect between two configurations, in the order of the sections. What is
    /// written in another way, a default that is written out, and an order that makes no difference
    /// are none.
    ///
    /// Values of environment variables are as they are printed by `pinfold check`.
    package static func all(
        from old: ConfigurationSnapshot, to new: ConfigurationSnapshot
    ) -> [ConfigurationDifference] {
        SectionName.allCases.flatMap { ConfigurationComparison(old: old, new: new).differences($0) }
            .map { $0.concealing([old.variables, new.variables]) }
    }
}

extension ConfigurationSnapshot {
    /// The keys whose changes take effect only after a restart.
    ///
    /// - Parameters:
    ///   - old: the configuration before.
    ///   - workers: how many threads were started under it; by default as many as it says.
    ///   - hasAccessLog: whether an access log was opened; by default as it says.
    package func keysThatNeedRestart(
        after old: ConfigurationSnapshot, workers: Int? = nil, hasAccessLog: Bool? = nil
    ) -> [String] {
        var keys: [String] = []
        if self.workers.count != workers ?? old.workers.count { keys.append("workers") }
        if !cache.hasSameStore(as: old.cache) { keys.append("cache") }
        if resolver != old.resolver { keys.append("resolver") }
        if activity != old.activity { keys.append("activity") }
        if (log.access != nil) != hasAccessLog ?? (old.log.access != nil) {
            keys.append("log.access")
        }
        return keys
    }
}

private struct ConfigurationComparison {
    typealias Detail = ConfigurationDifference.Detail

    let old: ConfigurationSnapshot
    let new: ConfigurationSnapshot

    func differences(_ section: SectionName) -> [ConfigurationDifference] {
        switch section {
        // What the files include is in the other sections.
        case .include: []
        case .watch: value(section, "\(old.watch)", "\(new.watch)")
        case .workers: value(section, "\(old.workers.count)", "\(new.workers.count)")
        case .via: value(section, old.via?.text, new.via?.text)
        case .listeners:
            named(section, old.listeners, new.listeners, \.name) {
                NodeComparison.node(ListenerConfiguration.table(hasExplicitClients: true), $0)
            }
        case .admin: values(section, AdminConfiguration.table, \.admin)
        case .authentication:
            values(section, AuthenticationConfiguration.table, \.authentication, besides: users)
        case .access: access
        case .parents:
            named(section, old.parents, new.parents, \.name) {
                NodeComparison.node(ParentConfiguration.table, $0)
            }
        case .ways: values(section, WaysConfiguration.table, \.ways)
        case .hosts: HostDifferences(old: old, new: new, inherited: tls).all
        case .pinsets:
            named(section, old.pinsets, new.pinsets, \.pinset.name, note: use) {
                NodeComparison.node(PinsetEntry.table, $0)
            }
        case .pins: values(section, PinObservationConfiguration.table, \.pinObservation)
        case .interception: values(section, InterceptionConfiguration.table, \.interception)
        case .tls: values(section, UpstreamTLS.table, \.tls)
        case .cache: values(section, CacheConfiguration.table, \.cache)
        case .resolver: values(section, ResolverConfiguration.table, \.resolver)
        case .activity: values(section, ActivityConfiguration.table, \.activity)
        case .limits: values(section, LimitsConfiguration.table, \.limits)
        case .timeouts: values(section, TimeoutsConfiguration.table, \.timeouts)
        case .errorReplies: values(section, ErrorRepliesConfiguration.table, \.errorReplies)
        case .log: values(section, LogConfiguration.table, \.log)
        case .tracing: values(section, TracingConfiguration.table, \.tracing)
        case .policy: policy
        }
    }

    // MARK: Values

    private func value(
        _ section: SectionName, _ before: String?, _ after: String?
    ) -> [ConfigurationDifference] {
        if before == after { return [] }
        let note = "was \(before ?? "not set"), is \(after ?? "not set")"
        return [ConfigurationDifference(section: section.rawValue, note: note)]
    }

    /// The keys of a section.
    private func values<Values: Equatable>(
        _ section: SectionName, _ table: KeyTable<Values>,
        _ place: KeyPath<ConfigurationSnapshot, Values>, besides: [Detail] = []
    ) -> [ConfigurationDifference] {
        let (former, present) = (old[keyPath: place], new[keyPath: place])
        guard former != present else { return [] }
        var comparison = NodeComparison(section.rawValue)
        comparison.compare(
            NodeComparison.node(table, former), NodeComparison.node(table, present))
        var details = comparison.details + besides
        if details.isEmpty, !isSameInEffect(former, present) { details = [.ofFiles] }
        return details.map {
            ConfigurationDifference(section: section.rawValue, details: [$0])
        }
    }

    private var tls: [Detail] { values(.tls, UpstreamTLS.table, \.tls).flatMap(\.details) }

    /// Elements with names, whose order has no effect.
    private func named<Element: Equatable>(
        _ section: SectionName, _ old: [Element], _ new: [Element], _ nameOf: (Element) -> String,
        note: (String) -> String? = { _ in nil }, _ node: (Element) -> ConfigNode
    ) -> [ConfigurationDifference] {
        var found: [ConfigurationDifference] = []
        for element in new {
            let (name, present) = (nameOf(element), node(element).without("name"))
            var difference = ConfigurationDifference(
                section: section.rawValue, subjects: [name], note: note(name))
            if let former = old.first(where: { nameOf($0) == name }) {
                guard former != element else { continue }
                var comparison = NodeComparison(section.rawValue)
                comparison.compare(node(former).without("name"), present)
                difference.details = comparison.details
                if difference.details.isEmpty {
                    guard !isSameInEffect(former, element) else { continue }
                    difference.details = [.ofFiles]
                }
            } else {
                difference.kind = .added
                difference.note = [difference.note, NodeComparison.text(present)]
                    .compactMap { $0 }.joined(separator: "; ")
            }
            found.append(difference)
        }
        for element in old {
            let gone = nameOf(element)
            guard !new.contains(where: { nameOf($0) == gone }) else { continue }
            found.append(
                ConfigurationDifference(
                    section: section.rawValue, subjects: [gone], kind: .removed))
        }
        return found
    }

    /// Which entries use a pinset.
    private func use(ofPinset name: String) -> String? {
        guard let index = new.pinsets.firstIndex(where: { $0.pinset.name == name }) else {
            return nil
        }
        let labels = new.hosts.entries.filter { $0.pinsets.contains(index) }.map(\.label)
        return labels.isEmpty ? "no entry of hosts uses it" : "used by \(Detail.listed(labels))"
    }

    // MARK: Access

    private var access: [ConfigurationDifference] {
        guard old.access != new.access else { return [] }
        var (former, present) = (old.access, new.access)
        (former.rules, former.lists, present.rules, present.lists) = ([], [], [], [])
        var comparison = NodeComparison("access")
        comparison.compare(
            NodeComparison.node(AccessConfiguration.table, former),
            NodeComparison.node(AccessConfiguration.table, present))
        return comparison.details.map { ConfigurationDifference(section: "access", details: [$0]) }
            + RuleDifferences(old: old.access.rules, new: new.access.rules).all + lists
    }

    private var lists: [ConfigurationDifference] {
        var found: [ConfigurationDifference] = []
        func texts(_ list: AccessList?) -> String? {
            list.map { "\($0.domains.nameCount) names and \($0.domains.networkCount) networks" }
        }
        for list in new.access.lists {
            let former = old.access.lists.first { $0.name == list.name }
            guard former != list else { continue }
            var difference = ConfigurationDifference(
                section: "access.lists", subjects: [list.name],
                kind: former == nil ? .added : .changed)
            if let former {
                var comparison = NodeComparison("access.lists")
                comparison.compare(
                    NodeComparison.node(AccessList.table, former),
                    NodeComparison.node(AccessList.table, list))
                difference.details = comparison.details
                if former.domains != list.domains {
                    let (before, after) = (texts(former), texts(list))
                    difference.details.append(
                        before == after
                            ? Detail(key: "content", before: before, after: "as many others")
                            : Detail(key: "content", before: before, after: after))
                }
            } else {
                difference.note = texts(list)
            }
            found.append(difference)
        }
        for list in old.access.lists
        where !new.access.lists.contains(where: { $0.name == list.name }) {
            found.append(
                ConfigurationDifference(
                    section: "access.lists", subjects: [list.name], kind: .removed))
        }
        return found
    }

    // MARK: Policy

    /// Where it comes from, and which one is in it; what that says is in the other sections.
    private var policy: [ConfigurationDifference] {
        func node(_ configuration: ConfigurationSnapshot) -> ConfigNode? {
            configuration.policy.map { NodeComparison.node(PolicyConfiguration.table, $0) }
        }
        func serial(_ configuration: ConfigurationSnapshot) -> String? {
            configuration.policyInForce.map { "\($0.serial)" }
        }
        let section = SectionName.policy.rawValue
        var found: [ConfigurationDifference] = []
        switch (node(old), node(new)) {
        case (nil, nil): break
        case (nil, let present?):
            found.append(
                ConfigurationDifference(
                    section: section, kind: .added, note: NodeComparison.text(present)))
        case (_?, nil): found.append(ConfigurationDifference(section: section, kind: .removed))
        case (let former?, let present?):
            var comparison = NodeComparison(section)
            comparison.compare(former, present)
            found += comparison.details.map {
                ConfigurationDifference(section: section, details: [$0])
            }
        }
        if serial(old) != serial(new) {
            let detail = Detail(key: "serial", before: serial(old), after: serial(new))
            found.append(ConfigurationDifference(section: section, details: [detail]))
        }
        return found
    }

    // MARK: Users

    /// Who can prove who they are, and who is in which group.
    private var users: [Detail] {
        let (former, present) = (old.authentication, new.authentication)
        var comparison = NodeComparison("authentication")
        comparison.compare(texts: former.userNames, present.userNames, "users")
        comparison.compare(texts: former.groupNames, present.groupNames, "groups")
        var details = comparison.details
        for user in present.userNames where former.userNames.contains(user) {
            let groups = (former.groups(of: user), present.groups(of: user))
            comparison = NodeComparison("authentication")
            comparison.compare(texts: groups.0, groups.1, "user \(user).groups")
            details += comparison.details
            if former.users?.hash(of: user) != present.users?.hash(of: user) {
                details.append(
                    Detail(key: "user \(user)'s password", before: "another", after: "changed"))
            }
            guard details.count < 100 else { break }
        }
        return details
    }
}

extension AuthenticationConfiguration {
    fileprivate func groups(of user: String) -> [String] {
        (identity(ofUser: user)?.groups ?? []).sorted()
    }
}

extension ConfigurationDifference {
    /// The same without the values of variables.
    fileprivate func concealing(_ variables: [UsedVariables]) -> ConfigurationDifference {
        func concealed(_ text: String) -> String {
            variables.reduce(text) { $1.concealed(in: $0) }
        }
        var difference = self
        difference.subjects = subjects.map(concealed)
        difference.note = note.map(concealed)
        difference.details = details.map { detail in
            var detail = detail
            detail.before = detail.before.map(concealed)
            detail.after = detail.after.map(concealed)
            detail.added = detail.added.map(concealed)
            detail.removed = detail.removed.map(concealed)
            return detail
        }
        return difference
    }
}
