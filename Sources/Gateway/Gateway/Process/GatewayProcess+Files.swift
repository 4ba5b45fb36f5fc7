import Clocks
import Logging
import PinfoldConfiguration
import Threads

// Files that are reloaded when they change: the configuration's own, with everything, and those
// that can be replaced without rereading it.
extension GatewayProcess {
    /// How long the main thread waits for a signal before it looks after the rest.
    var controlMilliseconds: Int {
        if successor != nil { return Self.handoverMilliseconds }
        if reading != nil || service.isReloading || predecessor != nil {
            return FileReading.intervalMilliseconds
        }
        if configuration.policy != nil { return Self.policyMilliseconds }
        if inputsWatch.isActive { return ConfigurationWatch.intervalMilliseconds }
        return watched.isEmpty
            ? FreedMemory.intervalMilliseconds : WatchedFiles.intervalMilliseconds
    }

    /// Begins to watch the files of a configuration that has just been read.
    func watch(_ configuration: ConfigurationSnapshot) {
        watched.watch(configuration.watchedFiles)
        // What is being read was named by the previous configuration.
        reading = nil
        publishFiles()
    }

    /// Watches what a configuration was read from, with or without success, if the one in force
    /// wants that.
    ///
    /// - Parameter isInForce: Whether it is the one in force. Then those files are left out that
    ///   are read again by themselves.
    func watch(_ inputs: ConfigurationInputs, isInForce: Bool) {
        let others = isInForce ? Set(configuration.watchedFiles.joined()) : []
        let problem = inputsWatch.follow(
            inputs, isOn: configuration.watch, except: others, at: Clock.monotonicMilliseconds())
        guard let problem else { return }
        logger.warning(
            "the system does not tell about changes: configuration files are looked at each second",
            metadata: ["error": "\(problem.reason)"])
    }

    /// Begins to read the files that have changed, or puts in force what has been read.
    func checkFiles() {
        if let reading {
            guard let found = reading.taken() else { return }
            self.reading = nil
            use(found, of: reading.change)
        } else if let change = watched.change(at: Clock.monotonicMilliseconds()) {
            do throws(Thread.StartError) {
                reading = try FileReading(change, configuration)
            } catch {
                use(FileReading.read(change, configuration), of: change)
            }
        }
    }

    /// Puts those changed files in force that can be used.
    private func use(_ found: RefreshedConfiguration, of change: WatchedFiles.Change) {
        let now = Clock.monotonicMilliseconds()
        var failure: String?
        if found.snapshot != configuration {
            do {
                let (generation, _) = try adopt(found.snapshot)
                logger.notice(
                    "changed configuration files are now in effect",
                    metadata: ["generation": "\(generation)"])
            } catch {
                failure = "\(error)"
            }
        } else {
            // It has the same effect, but may be newer: a list of logs has a time, too.
            configuration = found.snapshot
            let (certificates, lists) = (
                OwnCertificate.all(of: found.snapshot), DatedLists(of: found.snapshot)
            )
            published.reload.withLock { reload in
                reload.configuration = found.snapshot
                reload.ownCertificates = certificates
                reload.lists = lists
            }
        }
        // The result of a retry without changes has already been logged.
        if !change.isRetry || failure == nil {
            for warning in found.warnings { logger.warning("configuration: \(warning)") }
        }
        let turns = watched.note(change, at: now) { paths in
            var reasons = found.problems.filter { $0.paths == paths }.map(\.description)
            if let failure { reasons.append(failure) }
            if !reasons.isEmpty { return .unusable(reasons) }
            return found.outdated.isDisjoint(with: paths) ? .current : .outdated
        }
        publishFiles()
        log(turns)
    }

    /// Logs one line for each change of a set of files.
    private func log(_ turns: [WatchedFiles.Turn]) {
        for turn in turns where turn.isRestored {
            let paths = configuration.variables.concealed(
                in: turn.paths.joined(separator: ", "))
            logger.notice(
                "a configuration file can be used again", metadata: ["file": "\(paths)"])
        }
        var logged: Set<String> = []
        for reason in turns.flatMap(\.reasons) where logged.insert(reason).inserted {
            logger.error(
                "a configuration file has changed and cannot be used; the old content stays in use",
                metadata: ["error": "\(reason)"])
        }
    }

    /// The maximum number of watched files in metrics.
    private static let fileLimit = 1000

    private func publishFiles() {
        let files = watched.outcomes.prefix(Self.fileLimit).map { file in
            (path: configuration.variables.concealed(in: file.path), outcome: file.outcome)
        }
        let (areUsable, refusals) = (watched.areUsable, watched.unusableCount)
        published.reload.withLock {
            $0.files = files
            $0.filesAreUsable = areUsable
            $0.fileRefusals = refusals
        }
    }
}
