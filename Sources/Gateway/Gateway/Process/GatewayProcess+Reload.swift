import Clocks
import Logging
import PinfoldConfiguration

// Reading the configuration again, for SIGHUP and for the administrative address.
extension GatewayProcess {
    /// A successor that is being started reads the configuration itself; if it does not get ready,
    /// this process does.
    func reloadUnlessUpgrading() {
        if successor == nil { reload() } else { reloadIsDue = true }
    }

    func reload() {
        let waiting = reloads.take()
        service.reloading()
        var inputs = ConfigurationInputs()
        do {
            let former = configuration
            let loaded = try load(configuration.access.lists)
            inputs = loaded.inputs
            let findings = loaded.warnings.map { ConfigurationFinding($0) }
            let needRestart = sectionsThatNeedRestart(loaded.snapshot)
            let (generation, perWorker) = try adopt(loaded.snapshot, from: inputs) {
                log(loaded.warnings)
                reloadEnded(errors: [], warnings: findings, needRestart: needRestart)
            }
            adoptPolicy(of: loaded)
            watch(loaded.snapshot)
            watch(inputs, isInForce: true)
            announce(perWorker)
            service.reloaded(
                generation: generation, listeners: loaded.snapshot.listeners.count)
            logger.notice("configuration reloaded", metadata: ["generation": "\(generation)"])
            let outcome = ReloadOutcome.applied(
                ReloadOutcome.Applied(
                    generation: Int(generation),
                    changed: former.sectionsThatDiffer(from: loaded.snapshot),
                    removed: ConfigurationRemoval.all(from: former, to: loaded.snapshot)
                        .flatMap { removal in removal.names.map { "\(removal.section): \($0)" } },
                    needRestart: needRestart, warnings: findings,
                    differences: waiting.isEmpty
                        ? []
                        : ConfigurationDifference.all(from: former, to: loaded.snapshot)
                            .map(\.text)))
            shared?.whenInForce(generation) { for reply in waiting { reply(outcome) } }
        } catch {
            let errors = ConfigurationFinding.all(of: error)
            reloadEnded(errors: errors, warnings: nil)
            service.notReloaded()
            watch((error as? ConfigurationErrors)?.inputs ?? inputs, isInForce: false)
            logger.error(
                "configuration not reloaded; the previous one remains in effect",
                metadata: ["error": "\(error)"])
            for reply in waiting { reply(.refused(errors)) }
        }
    }

    /// Reads the configuration, and says what would change if it were put in force. On any thread.
    static func tryReload(_ published: PublishedState, _ load: Load) -> ReloadOutcome {
        let (current, begunWith, generation) = published.reload.withLock {
            ($0.configuration, $0.begunWith, $0.generation)
        }
        guard let current, let begunWith else { return .draining }
        let loaded: LoadedConfiguration
        do throws(ConfigurationErrors) {
            loaded = try load(current.access.lists)
        } catch {
            return .refused(ConfigurationFinding.all(of: error))
        }
        let next = loaded.snapshot
        return .tried(
            ReloadOutcome.Applied(
                generation: Int(generation), changed: current.sectionsThatDiffer(from: next),
                removed: ConfigurationRemoval.all(from: current, to: next)
                    .flatMap { removal in removal.names.map { "\(removal.section): \($0)" } },
                needRestart: next.keysThatNeedRestart(
                    after: begunWith, workers: published.running.workers.count,
                    hasAccessLog: published.running.shared?.accessLog != nil),
                warnings: loaded.warnings.map { ConfigurationFinding($0) },
                differences: ConfigurationDifference.all(from: current, to: next).map(\.text)))
    }

    /// - Parameters:
    ///   - warnings: those about the configuration that is in force now; `nil` if it is the same as
    ///     before.
    ///   - needRestart: its sections that are not in force before a restart, likewise.
    private func reloadEnded(
        errors: [ConfigurationFinding], warnings: [ConfigurationFinding]?,
        needRestart: [String]? = nil
    ) {
        let ended = StatusReport.Reload(time: Clock.wallMilliseconds(), errors: errors)
        published.reload.withLock { reload in
            reload.last = ended
            if !errors.isEmpty { reload.lastRefused = ended }
            if let warnings { reload.warnings = warnings }
            if let needRestart { reload.needRestart = needRestart }
        }
    }
}
