import HTTPCore
import PinfoldConfiguration
import Trust

extension ConfigurationLoader {
    /// A local configuration with a policy, by the same checks as any other: all of it, or an
    /// error.
    ///
    /// - Parameter document: `nil` while there is none.
    package func adding(
        _ document: PolicyDocument?, to local: LocalConfiguration
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        var loaded = local.loaded
        loaded.local = local
        guard let settings = loaded.snapshot.policy else {
            guard let document, document.isRequired else { return loaded }
            throw ConfigurationErrors(
                errors: [
                    ConfigurationError(
                        origin: .file(name: local.files.first ?? document.name, line: 0),
                        key: SectionName.policy.rawValue, problem: "is missing",
                        expected: "url and publicKeys, for a policy to be verified")
                ], inputs: loaded.inputs)
        }
        guard let document else {
            if settings.afterExpiry == .refuse {
                loaded.snapshot.access.rules.insert(.withoutPolicy, at: 0)
            }
            return loaded
        }
        let (envelope, signers) = try verified(document, settings, loaded.inputs)
        var environment = environment
        environment.lists = loaded.snapshot.access.lists
        let validation = ConfigurationValidation(
            environment: environment, folder: local.folder)
        var name = document.name
        while local.files.contains(name) { name += " (policy)" }
        validation.inputs = loaded.inputs
        validation.files = local.files + [name]
        var merge = PolicyMerge(validation: validation)
        var snapshot: ConfigurationSnapshot
        do throws(ConfigurationErrors) {
            snapshot = try read(
                envelope, named: name, over: local, by: &merge, validation)
        } catch {
            var errors = error
            errors.errors = error.errors.map { error in
                var error = error
                if error.origin.file == name { error.key = merge.ownPath(error.key) }
                return error
            }
            throw errors
        }
        snapshot.policyInForce = PolicyInForce(
            serial: envelope.serial, hash: envelope.hash, expires: envelope.expires, keys: signers,
            hosts: snapshot.hosts.entries.count - snapshot.hosts.localCount,
            pinsets: snapshot.pinsets.count - loaded.snapshot.pinsets.count,
            rules: snapshot.access.rules.count - loaded.snapshot.access.rules.count)
        if settings.afterExpiry == .refuse, environment.now >= envelope.expires {
            snapshot.access.rules.insert(.afterExpiry, at: 0)
        }
        loaded.snapshot = snapshot
        loaded.document = document
        loaded.warnings = validation.sortedWarnings.map { warning in
            var warning = warning
            if warning.origin.file == name { warning.key = merge.ownPath(warning.key) }
            return warning
        }
        return loaded
    }

    /// A configuration that was read before, with another policy. Its own files are not read
    /// again, but those that they name are: they may have changed, and are in force.
    ///
    /// - Parameters:
    ///   - lists: those in force, as for ``ConfigurationEnvironment/lists``.
    ///   - now: in seconds since 1970.
    package static func adding(
        _ document: PolicyDocument?, toAnew local: LocalConfiguration, lists: [AccessList],
        now: Int64
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        var environment = local.environment
        (environment.lists, environment.now) = (lists, now)
        let loader = ConfigurationLoader(environment: environment)
        let validation = ConfigurationValidation(
            environment: environment, folder: local.folder)
        validation.inputs = local.loaded.inputs
        validation.files = local.files
        let read = try loader.local(local.root, validation)
        var loaded = try loader.adding(document, to: read)
        loaded.hasIncludes = local.loaded.hasIncludes
        return loaded
    }

    /// A configuration that has just been read, with a policy.
    package static func adding(
        _ document: PolicyDocument?, to loaded: LoadedConfiguration
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        guard let local = loaded.local else { return loaded }
        var added = try ConfigurationLoader(environment: local.environment)
            .adding(document, to: local)
        added.hasIncludes = loaded.hasIncludes
        return added
    }

    private func verified(
        _ document: PolicyDocument, _ settings: PolicyConfiguration, _ inputs: ConfigurationInputs
    ) throws(ConfigurationErrors) -> (PolicyEnvelope, [PolicyPublicKey]) {
        func errors(_ line: Int, _ problem: String, _ expected: String) -> ConfigurationErrors {
            ConfigurationErrors(
                errors: [
                    ConfigurationError(
                        origin: .file(name: document.name, line: line), key: "",
                        problem: problem, expected: expected)
                ], inputs: inputs)
        }
        let envelope: PolicyEnvelope
        do throws(PolicyFormatError) {
            envelope = try PolicyEnvelope(document.bytes)
        } catch {
            throw errors(error.line ?? 0, error.problem, error.expected)
        }
        do throws(PolicySignatureError) {
            return (envelope, try envelope.signers(among: settings.publicKeys))
        } catch {
            throw errors(0, error.text, "a signature by one of policy.publicKeys")
        }
    }

    private func read(
        _ envelope: PolicyEnvelope, named name: String, over local: LocalConfiguration,
        by merge: inout PolicyMerge, _ validation: ConfigurationValidation
    ) throws(ConfigurationErrors) -> ConfigurationSnapshot {
        let document: ConfigNode
        do throws(ConfigurationError) {
            document = try YAMLDocument.parse(Array(envelope.signed), name: name)
        } catch {
            throw ConfigurationErrors(errors: [error], inputs: validation.inputs)
        }
        PolicyTree(validation: validation).check(document)
        try requireNoErrors(validation)
        var root = local.root
        merge.add(document, to: &root)
        try requireNoErrors(validation)
        let narrowing = PolicyNarrowing(local.loaded.snapshot)
        validation.policy = PolicyReading(file: name, narrowing)
        let reader = SnapshotReader(validation: validation)
        var snapshot = reader.snapshot(root)
        try requireNoErrors(validation)
        reader.checkPolicy(root, snapshot, narrowing)
        try requireNoErrors(validation)
        snapshot.variables = validation.variables(writtenIn: root)
        return snapshot
    }
}

extension SnapshotReader {
    /// Reports each key with which a policy would widen the local configuration.
    fileprivate func checkPolicy(
        _ root: ConfigNode, _ snapshot: ConfigurationSnapshot, _ narrowing: PolicyNarrowing
    ) {
        let top = Field(node: root, path: "", validation: validation)
        let local = narrowing.local
        let elements = top.key("hosts")?.elements ?? []
        if let index = PolicyNarrowing.entryWithTooManyPins(in: snapshot) {
            let entry = elements.indices.contains(index) ? elements[index] : top
            return (entry.key("pinsets") ?? entry).fail(
                "the entries have too many pins",
                expected: "at most \(PolicyNarrowing.maximumPins) in the pinsets of all entries")
        }
        for index in snapshot.hosts.localCount..<snapshot.hosts.entries.count {
            let found = narrowing.widenings(
                of: snapshot.hosts.entries[index], pinsets: snapshot.pinsets)
            report(found, in: elements.indices.contains(index) ? elements[index] : top)
        }
        for reach in narrowing.reaches(of: snapshot) {
            let entry = elements.indices.contains(reach.entry) ? elements[reach.entry] : top
            report([reach.widening], in: entry)
        }
        for pinset in snapshot.pinsets.dropFirst(local.pinsets.count) {
            let field = top.key("pinsets")?.key(pinset.pinset.name) ?? top
            report(narrowing.widenings(of: pinset), in: field)
        }
        let access = top.key("access") ?? top
        report(narrowing.widenings(of: snapshot.access), in: access)
        let rules = access.key("rules")?.elements ?? []
        for index in local.access.rules
            .count..<max(
                local.access.rules.count, snapshot.access.rules.count)
        {
            report(
                narrowing.widenings(of: snapshot.access.rules[index]),
                in: rules.indices.contains(index) ? rules[index] : access)
        }
        checkRest(top, snapshot, local)
    }

    private func report(_ found: [PolicyWidening], in field: Field) {
        for widening in found {
            var place = field
            for part in widening.key.pathInside { place = place.key(part) ?? place }
            place.fail(widening.problem, expected: widening.expected)
        }
    }

    /// Everything else must be as it was: whatever there is besides `hosts`, `pinsets` and
    /// `access`, and the local part of these.
    private func checkRest(
        _ top: Field, _ snapshot: ConfigurationSnapshot, _ local: ConfigurationSnapshot
    ) {
        var rest = snapshot
        rest.hosts = local.hosts
        rest.pinsets = local.pinsets
        rest.access = local.access
        rest.variables = local.variables
        let isSame =
            rest == local
            && snapshot.hosts.entries.prefix(snapshot.hosts.localCount)
                .elementsEqual(local.hosts.entries)
            && snapshot.pinsets.starts(with: local.pinsets)
        if !isSame {
            top.fail(
                "files of the configuration have changed, and mean something else together with "
                    + "the policy than before", expected: "a reload of the configuration first")
        }
    }
}

extension AccessRule {
    /// What refuses every request where a policy is needed: names that no configuration can give
    /// to a rule.
    static let withoutPolicy = refusal("(no policy)")
    static let afterExpiry = refusal("(policy expired)")

    private static func refusal(_ name: String) -> AccessRule {
        var rule = AccessRule()
        rule.name = name
        var denial = AccessDenial()
        denial.status = 503
        rule.action = .deny(denial)
        return rule
    }
}
