import CLinux
import CacheStore
import Clocks
import Logging
import Supervision

// Starting a successor, and handing over to it.
extension GatewayProcess {
    typealias Ended = ChildProcess.Ended

    /// How often the main thread looks whether a successor is ready.
    static let handoverMilliseconds = 10
    /// How long a successor waits until the cache's index is read.
    static let cacheMilliseconds = 60_000
    /// How often a successor is told what the counters are.
    static let countingMilliseconds: Int64 = 1000
    /// How long a process that has handed over goes on at least.
    static let administrationMilliseconds: Int64 = 1000

    /// Starts a successor, unless one is being started.
    func upgrade() {
        guard successor == nil else { return }
        do throws(Successor.StartError) {
            guard let invocation else {
                throw .failed("the process does not know how it was started")
            }
            let started = try Successor(
                of: invocation, sockets: sockets.handed, now: Clock.monotonicMilliseconds())
            successor = started
            sendCounters()
            logger.notice(
                "upgrade: a successor is starting",
                metadata: [
                    "program": "\(invocation.program.path)", "pid": "\(started.process.pid)",
                ])
        } catch {
            failed(error)
        }
    }

    private func failed(_ failure: Successor.StartError) {
        successor = nil
        takeBackCache()
        logger.error(
            "upgrade failed; this process goes on", metadata: ["error": "\(failure)"])
        upgrades.end(.failed("\(failure)"))
        guard reloadIsDue else { return }
        reloadIsDue = false
        reload()
    }

    /// This process is to end: a successor that is not ready ends, too.
    func abandonUpgrade() {
        successor?.process.end()
        successor = nil
    }

    /// Whether the successor serves.
    func hasSuccessor() -> Bool {
        guard let successor else { return false }
        switch successor.check(now: Clock.monotonicMilliseconds()) {
        case .starting: return false
        case .needsCache(let folder):
            handOverCache(in: folder, to: successor)
            return false
        case .failed(let failure):
            failed(failure)
            return false
        case .ready(let version, let unused):
            successorVersion = version
            sockets.release(unused)
            sendCounters()
            sendTicketKeys(to: successor)
            successor.accept()
            return true
        }
    }

    /// Called when the workers accept no more.
    func handedOver() {
        guard let successor else { return }
        let pid = successor.process.pid
        sockets.leavesFiles = true
        // Whoever handed over to this process need not take its place.
        predecessor?.leave()
        service.handOver(to: pid)
        logger.notice(
            "upgrade: the successor serves, this process finishes",
            metadata: ["pid": "\(pid)", "version": "\(successorVersion)"])
        sendCounters()
        upgrades.end(.handedOver(pid: Int(pid), version: successorVersion))
        if reloadIsDue {
            // It may have read the configuration before the change.
            reloadIsDue = false
            kill(pid, SIGHUP)
        }
        reloads.close()
    }

    private func handOverCache(in folder: String, to successor: Successor) {
        let channel = successor.channel
        guard let store = shared?.store, folder == store.folder else {
            return Successor.send(.nothing, through: channel)
        }
        hasHandedOverCache = true
        store.handOverDisk(keepingLock: true) { Successor.send($0, through: channel) }
    }

    /// The successor, which has the cache's database, is gone.
    private func takeBackCache() {
        guard hasHandedOverCache else { return }
        hasHandedOverCache = false
        shared?.store?.takeBackDisk { [logger] isOn in
            if !isOn { logger.warning("the cache's database cannot be taken back yet") }
        }
    }

    /// Tells the successor what the counters are: its own begin there.
    func sendCounters() {
        guard let successor else { return }
        do throws(MessageSocket.CallError) {
            try successor.send(counters: published.metrics().exposition(.text))
        } catch {
            // If it has ended, that is found out elsewhere.
            guard !error.isOfClosedEnd else { return }
            logger.warning(
                "the successor's counters do not begin where these end",
                metadata: ["error": "\(error)"])
        }
    }

    /// Gives it the keys of session tickets, so that clients resume their sessions there.
    private func sendTicketKeys(to successor: Successor) {
        do throws(MessageSocket.CallError) {
            try successor.send(ticketKeys)
        } catch {
            // If it has ended, that is found out elsewhere.
            guard !error.isOfClosedEnd else { return }
            logger.warning(
                "the successor does not resume the sessions of this process's clients",
                metadata: ["error": "\(error)"])
        }
    }

    /// Nobody serves after this process: whoever comes may have the addresses.
    private func leaveAddresses() {
        sockets.close()
        DrainingProcess.announce()
    }

    /// How the successor has failed; `nil` while it runs, and if it was told to end.
    func successorFailure() -> Ended? { successor?.hasFailed() }

    /// Serves again, because the successor is gone.
    func resume(after end: Ended) throws {
        sockets.leavesFiles = false
        let perWorker = try sockets.open(configuration, again: true)
        successor = nil
        takeBackCache()
        service.takeBack()
        logger.error(
            "the successor is gone; this process serves again", metadata: ["reason": "\(end)"])
        for (mailbox, sockets) in zip(mailboxes, perWorker) { mailbox.post(.resume(sockets)) }
        reloads.open()
        published.observer.withLock { $0 }?.takeReaders()
        if reloadIsDue {
            reloadIsDue = false
            reload()
        }
    }

    /// Everything is there but the clients: from now on they come here, and no more to the
    /// predecessor.
    func takeOver() {
        guard let predecessor else { return }
        guard !signals.isToEnd else {
            predecessor.failed("the new process was told to end")
            // It goes on, so its end is not waited for.
            self.predecessor = nil
            return
        }
        predecessor.ready(version: published.version)
        predecessor.passOnTicketKeys(to: ticketKeys)
        sockets.leavesFiles = false
        checkPredecessor()
        for mailbox in mailboxes { mailbox.post(.accept) }
        logger.notice("taken over", metadata: ["predecessor": "\(predecessor.pid)"])
        checkPredecessor()
    }

    func checkPredecessor() {
        guard let predecessor else { return }
        let hasEnded = predecessor.receive()
        if let counters = predecessor.takeCounters() {
            published.former.withLock { $0 = counters }
        }
        guard hasEnded else { return }
        logger.info("the predecessor has ended", metadata: ["predecessor": "\(predecessor.pid)"])
        self.predecessor = nil
    }

    /// Finishes what is in progress, while the successor serves.
    /// - Returns: whether the process ends; `false` if the successor has, and this process serves
    ///   again.
    func finish() -> Bool {
        let grace = configuration.timeouts.graceMilliseconds
        for mailbox in mailboxes { mailbox.post(.handOver) }
        published.observer.withLock { $0 }?.endReaders()
        let isStopped = wait(
            atMost: Self.stopAtOnceMilliseconds, until: { shared?.accepting.isNone ?? true })
        handedOver()
        // Whoever ends this process while it hands over means the service.
        if isStopped, let successor { kill(successor.process.pid, SIGTERM) }
        let begun = Clock.monotonicMilliseconds()
        var (end, counted, signals): (Ended?, Int64, Int) = (nil, begun, isStopped ? 1 : 0)
        // One signal is for the service, which the successor is; a second one is for this process.
        while signals < 2, end == nil {
            let rest = begun + grace - Clock.monotonicMilliseconds()
            let isInterrupted = wait(
                atMost: max(0, rest),
                until: {
                    let now = Clock.monotonicMilliseconds()
                    if now - counted >= Self.countingMilliseconds {
                        counted = now
                        checkPredecessor()
                        sendCounters()
                    }
                    end = successorFailure()
                    if successor?.isLeaving ?? false { leaveAddresses() }
                    // Connections of the administration are not counted: they get a moment.
                    let isOver = hasDrained && now - begun >= Self.administrationMilliseconds
                    return end != nil || hasEnded() || isOver
                })
            guard isInterrupted else { break }
            signals += 1
        }
        if signals >= 2 { stopAtOnce() }
        if let end {
            do {
                try resume(after: end)
                return false
            } catch {
                logger.critical("cannot serve again", metadata: ["error": "\(error)"])
                exitCode = 1
            }
        }
        sockets.close()
        stop()
        sendCounters()
        return true
    }
}
