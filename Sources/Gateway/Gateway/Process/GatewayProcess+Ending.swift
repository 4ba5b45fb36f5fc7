import CLinux
import CacheStore
import Clocks
import EventLoop
import Logging
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import Supervision

// The end of the process: at a signal, or because it cannot work.
extension GatewayProcess {
    /// How often the main thread checks whether the workers are done.
    static let pollMilliseconds: Int32 = 20
    /// How often a process that drains looks whether another one has its administrative address.
    static let successorMilliseconds: Int64 = 100
    /// How long the workers may take to end after their last exchange, and after a second signal,
    /// which they see in their next turn. Neither is waited for longer: otherwise one that hangs
    /// would keep the process from ever ending.
    static let stopMilliseconds: Int64 = 5000
    static let stopAtOnceMilliseconds: Int64 = 1000
    /// How long those who read events have to hear of the end.
    static let readersMilliseconds: Int64 = 500
    /// The most that the process needs after its workers were told to end.
    static let endMilliseconds = stopMilliseconds + 10_000
    /// The time limit for the log and the reports after a second signal.
    static let closeAtOnceMilliseconds: Int64 = 100

    func drain() {
        let delay = configuration.timeouts.drainDelayMilliseconds
        let grace = configuration.timeouts.graceMilliseconds
        logger.info("draining", metadata: ["delay": "\(delay)ms", "grace": "\(grace)ms"])
        service.stopping(withinMilliseconds: delay + grace + Self.endMilliseconds)
        let now = Clock.wallMilliseconds()
        published.reload.withLock {
            $0.draining = StatusReport.Draining(
                since: now, closesListeners: now + delay, ends: now + delay + grace)
        }
        predecessor?.leave()
        reloads.close()
        upgrades.close()
        // Load balancers poll /readyz now and then: until they have, connections are still
        // accepted.
        shared?.isDraining.store(true, ordering: .relaxed)
        if wait(atMost: delay, for: { "not ready, and still accepting" }, until: hasEnded) {
            stopAtOnce()
        }
        // A successor that is there, or comes, stores from now on.
        shared?.store?.handOverDisk(keepingLock: false)
        sockets.close()
        DrainingProcess.announce()
        for mailbox in mailboxes { mailbox.post(.drain) }
        var looked = Clock.monotonicMilliseconds()
        var isAlone = true
        let interrupted = wait(
            atMost: grace, for: { underWay },
            until: {
                let now = Clock.monotonicMilliseconds()
                if isAlone, now - looked >= Self.successorMilliseconds {
                    looked = now
                    isAlone = !sockets.hasSuccessorAtAdministration
                    if !isAlone {
                        published.observer.withLock { $0 }?.endReaders()
                        mailboxes[0].post(.endAdministration)
                    }
                }
                // What a predecessor still serves would be cut off by a service manager.
                checkPredecessor()
                return hasEnded() || hasDrained && predecessor == nil
            })
        if interrupted { stopAtOnce() }
        stop()
    }

    /// Ends the workers.
    func stop() {
        if endReaders() { stopAtOnce() }
        for mailbox in mailboxes { mailbox.post(.stop) }
        service.workersEnd(shared)
        let interrupted = wait(atMost: Self.stopMilliseconds, until: hasEnded)
        guard !interrupted, hasEnded() else { stopAtOnce() }
        running.join()
    }

    /// Tells those who read events that it ends, and gives them a moment to hear it; `true` if a
    /// signal requests a stop meanwhile.
    private func endReaders() -> Bool {
        guard let observer = published.observer.withLock({ $0 }) else { return false }
        observer.endReaders()
        return wait(
            atMost: Self.readersMilliseconds, until: { observer.hasNoReaders || hasEnded() })
    }

    func hasEnded() -> Bool { running.count == 0 }

    /// Waits for a condition, on the clock for deadlines; `true` if a signal requests a stop
    /// meanwhile.
    ///
    /// - Parameter what: what is waited for, for the service manager.
    func wait(
        atMost milliseconds: Int64, for what: () -> String? = { nil }, until condition: () -> Bool
    ) -> Bool {
        var clock = LoopClock(monotonic: Clock.monotonicMilliseconds())
        let end = clock.now + milliseconds
        while !condition(), clock.now < end {
            if service.isHeard, let what = what() {
                service.draining(what, remaining: end - clock.now)
            }
            switch signals.wait(milliseconds: Int(Self.pollMilliseconds)) {
            case .terminate, .interrupt: return true
            case .reload, .reopenLogs, .upgrade, .none: break
            }
            clock.advance(to: Clock.monotonicMilliseconds(), waited: Self.pollMilliseconds)
        }
        return false
    }

    /// Ends the process whatever the workers and the disk are doing. The cache's database is
    /// consistent at any time; pending writes are lost.
    ///
    /// - Parameter hasFailed: whether the gateway ends because it cannot work.
    func stopAtOnce(hasFailed: Bool = false) -> Never {
        logger.warning("stopping immediately")
        service.workersEnd(shared)
        for mailbox in mailboxes { mailbox.post(.stop) }
        let end = Clock.monotonicMilliseconds() + Self.stopAtOnceMilliseconds
        while running.count > 0, Clock.monotonicMilliseconds() < end { usleep(1000) }
        let hung = running.count
        if hung > 0 {
            logger.critical("workers did not stop in time", metadata: ["workers": "\(hung)"])
        } else {
            running.join()
        }
        sockets.removeFiles()
        shared?.accessLog?.close(withinMilliseconds: Int(Self.closeAtOnceMilliseconds))
        shared?.pinReporter?.close(withinMilliseconds: Self.closeAtOnceMilliseconds)
        operationalLog.close(withinMilliseconds: Self.closeAtOnceMilliseconds)
        _exit(hung == 0 && !hasFailed ? 0 : 1)
    }

    var hasDrained: Bool { shared?.haveAllDrained ?? false }
}
