import Clocks
import Logging
import PinfoldConfiguration
import PinfoldEngine

// The policy from elsewhere: what has arrived is judged, read and put in force here, by the thread
// that reloads.
extension GatewayProcess {
    /// How often the main thread looks whether a policy has arrived.
    static let policyMilliseconds = 200

    /// Makes what asks for the policy, which begins as soon as a configuration has one.
    func startFetching(
        _ policy: PolicySnapshot, _ shared: SharedServices
    ) throws(PolicyFetcher.StartError) -> PolicyFetcher {
        if let storedPolicyProblem { logger.log(.storedUnusable(storedPolicyProblem)) }
        let fetcher = PolicyFetcher(resolver: shared.resolver)
        try fetcher.prepare(for: policy.policyFetching)
        self.fetcher = fetcher
        return fetcher
    }

    /// Takes what has arrived, and looks at the clock.
    func checkPolicy() {
        if let result = fetcher?.take() { use(result) }
        guard configuration.policy != nil else { return }
        refuseAfterExpiry()
        logPolicyAlarms()
    }

    private func use(_ result: PolicyFetchResult) {
        guard let settings = configuration.policy else { return }
        let now = Clock.wallMilliseconds()
        if case .failed(let problem, _) = result {
            if policies.withStanding({ $0.fail(problem) }) { logger.log(.failing(problem)) }
            return
        }
        if policies.standing.failure != nil { logger.log(.answers) }
        switch result {
        case .interrupted, .failed: break
        case .unchanged:
            policies.withStanding { $0.confirm(at: now) }
            storeAgain()
        case .received(let bytes, let tag):
            switch PolicyDecision.of(
                bytes, after: policies.known, keys: settings.publicKeys, now: now / 1000)
            {
            case .refuse(let refusal): refuse(refusal)
            case .unchanged where policies.document != nil:
                policies.withStanding { $0.confirm(at: now) }
                fetcher?.know(tag)
                storeAgain()
            case .unchanged, .take, .signedAnew: take(bytes, from: settings, tag: tag)
            }
        }
    }

    private func refuse(_ refusal: PolicyRefusalReason) {
        // It is asked for as a whole again: what is wrong may be here.
        fetcher?.know(nil)
        let isNew = policies.withStanding { $0.refuse(refusal, at: Clock.wallMilliseconds()) }
        guard isNew else { return }
        logger.log(.refused(refusal, inForce: policies.standing.inForce))
    }

    /// Reads a policy that was verified, and puts it in force if all of it can be used.
    private func take(_ bytes: [UInt8], from settings: PolicyConfiguration, tag: [UInt8]?) {
        guard let local else { return }
        let name = MaskedYAML.withoutSecrets(url: settings.url?.description ?? "policy")
        let document = PolicyDocument(name: name, bytes: bytes)
        let loaded: LoadedConfiguration
        do throws(ConfigurationErrors) {
            loaded = try ConfigurationLoader.adding(
                document, toAnew: local, lists: configuration.access.lists,
                now: Clock.wallSeconds())
        } catch {
            let more = error.errors.count > 1 ? " (and \(error.errors.count - 1) more)" : ""
            let text = configuration.variables.concealed(
                in: (error.errors.first?.description ?? "") + more)
            return refuse(.content(text))
        }
        // First what makes an older one be refused from now on, whatever happens next.
        store(bytes)
        let generation: UInt64
        do {
            generation = try adopt(loaded.snapshot).generation
        } catch {
            return refuse(.unusable("\(error)"))
        }
        let now = Clock.wallMilliseconds()
        self.local = loaded.local
        policies.adopt(loaded.snapshot, document, at: now)
        policies.withStanding { $0.took(at: now) }
        fetcher?.know(tag)
        watch(loaded.snapshot)
        log(loaded.warnings)
        published.reload.withLock {
            $0.warnings = loaded.warnings.map { ConfigurationFinding($0) }
        }
        if let policy = loaded.snapshot.policyInForce {
            logger.log(.taken(policy, generation: generation))
        }
    }

    private func store(_ bytes: [UInt8]) {
        let problem = PolicyStore.write(bytes, to: configuration.cache.policyFile)
        _ = policies.withStanding { $0.store(problem) }
    }

    /// Tries again to store the one in force.
    private func storeAgain() {
        guard policies.standing.storing != nil, let document = policies.document else { return }
        store(document.bytes)
    }

    /// From the moment on at which the policy expires, every request is refused, if that is wanted.
    private func refuseAfterExpiry() {
        guard configuration.policy?.afterExpiry == .refuse,
            policies.standing.isExpired(at: Clock.wallMilliseconds()),
            !configuration.access.rules.contains(.afterExpiry)
        else { return }
        var next = configuration
        next.access.rules.insert(.afterExpiry, at: 0)
        do {
            _ = try adopt(next)
        } catch {
            logger.error(
                "the policy has expired, but requests cannot be refused because of that",
                metadata: ["error": "\(error)"])
        }
    }

    /// Logs alarms when they begin and when they end.
    private func logPolicyAlarms() {
        let standing = policies.standing
        guard let report = PolicyReport(standing, now: Clock.wallMilliseconds()) else { return }
        let present = report.alarms
        for (alarm, text) in present where !policyAlarms.contains(alarm) {
            // Refusals have a line of their own.
            if alarm != .refused { logger.log(.raised(alarm, text)) }
        }
        let now = Set(present.map(\.alarm))
        for alarm in PolicyAlarm.allCases where policyAlarms.contains(alarm) && !now.contains(alarm)
        {
            logger.log(.ended(alarm))
        }
        policyAlarms = now
    }

    /// A configuration that was read from its files is in force.
    func adoptPolicy(of loaded: LoadedConfiguration) {
        local = loaded.local
        policies.adopt(loaded.snapshot, loaded.document, at: Clock.wallMilliseconds())
        policyAlarms.formIntersection(loaded.snapshot.policy == nil ? [] : PolicyAlarm.allCases)
        if loaded.snapshot.policyInForce == nil { fetcher?.know(nil) }
    }
}
