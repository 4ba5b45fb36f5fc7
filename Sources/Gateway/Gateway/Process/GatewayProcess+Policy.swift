import Clocks
import Logging
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import Trust

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
        checkOffers()
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
            keepStored()
        case .received(let bytes, let tag):
            switch PolicyDecision.of(
                bytes, after: policies.known, keys: settings.publicKeys, now: now / 1000)
            {
            case .refuse(let refusal): refuse(refusal)
            case .unchanged where policies.document != nil:
                policies.withStanding { $0.confirm(at: now) }
                fetcher?.know(tag)
                keepStored()
            case .unchanged, .take, .signedAnew: take(bytes, from: settings, tag: tag)
            }
        }
    }

    func refuse(_ refusal: PolicyRefusalReason) {
        // It is asked for as a whole again: what is wrong may be here.
        fetcher?.know(nil)
        let isNew = policies.withStanding { $0.refuse(refusal, at: Clock.wallMilliseconds()) }
        guard isNew else { return }
        logger.log(.refused(refusal, inForce: policies.standing.inForce))
    }

    /// Reads a policy that was verified, and puts it in force if all of it can be used.
    func take(_ bytes: [UInt8], from settings: PolicyConfiguration, tag: [UInt8]?) {
        guard let local else { return }
        let content = RefusedContent.Key(
            digest: SHA256Digest(hashing: bytes.span),
            generation: published.reload.withLock { $0.generation })
        if let refused = policies.refusedContent, content.digest != nil, refused.key == content {
            return refuse(refused.reason)
        }
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
            let reason = PolicyRefusalReason.content(text)
            policies.refusedContent = RefusedContent(key: content, reason: reason)
            return refuse(reason)
        }
        let generation: UInt64
        do {
            generation = try adopt(loaded.snapshot).generation
        } catch {
            return refuse(.unusable("\(error)"))
        }
        // Only what can be used: a start needs it.
        store(bytes)
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
        if configuration.policy?.isFromEngine ?? false, let envelope = try? PolicyEnvelope(bytes) {
            PolicyArchive(folder: configuration.cache.policyFolder).keep(envelope)
        }
        _ = policies.withStanding { $0.store(problem) }
    }

    /// Stores the one in force again if it is not where it should be: it could not be written, it
    /// has been removed, or `cache.path` is another. A newer one there is left alone.
    func keepStored() {
        guard let document = policies.document, let settings = configuration.policy else { return }
        let stored = PolicyStore.read(configuration.cache.policyFile, keys: settings.publicKeys)
        if let stored, stored.document.bytes == document.bytes {
            _ = policies.withStanding { $0.store(nil) }
            return
        }
        if let stored, let serial = policies.known?.serial, stored.envelope.serial > serial {
            return
        }
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
        fleet?.offers.judgeAgain()
        keepStored()
    }

    /// What is derived from the first configuration. A stored policy that it cannot be made with is
    /// left out, and waited for anew: without it the gateway is not ready, but tells why.
    func makeFirstPolicy(_ make: (ConfigurationSnapshot) throws -> PolicySnapshot) throws
        -> PolicySnapshot
    {
        do {
            return try make(configuration)
        } catch {
            guard configuration.policyInForce != nil, let local else { throw error }
            let loaded = try ConfigurationLoader(environment: local.environment)
                .adding(nil, to: local)
            let made = try make(loaded.snapshot)
            leaveOutStored(loaded, because: "\(error)")
            return made
        }
    }

    private func leaveOutStored(_ loaded: LoadedConfiguration, because problem: String) {
        let now = Clock.wallMilliseconds()
        configuration = loaded.snapshot
        startWarnings = loaded.warnings
        look.adopt(loaded.snapshot, generation: 1, from: nil)
        policies.adopt(loaded.snapshot, nil, at: now)
        _ = policies.withStanding { $0.refuse(.unusable(problem), at: now) }
        storedPolicyProblem = problem
    }
}

/// What was refused last because of its content, which is not read again under one configuration:
/// that can take a while.
struct RefusedContent: Sendable {
    struct Key: Sendable, Equatable {
        var digest: SHA256Digest?
        var generation: UInt64
    }

    var key: Key
    var reason: PolicyRefusalReason
}
