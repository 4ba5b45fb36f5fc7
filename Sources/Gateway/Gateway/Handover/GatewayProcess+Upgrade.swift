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
        case .ready(let version):
            successorVersion = version
            successor.accept()
            return true
        }
    }

    /// Called when the workers accept no more.
    func handedOver() {
        guard let successor else { return }
        let pid = successor.process.pid
        sockets.leavesFile = true
        service.handOver(to: pid)
        logger.notice(
            "upgrade: the successor serves, this process finishes",
            metadata: ["pid": "\(pid)", "version": "\(successorVersion)"])
        sendCounters()
        upgrades.end(.handedOver(pid: Int(pid), version: successorVersion))
    }

    private func handOverCache(in folder: String, to successor: Successor) {
        let channel = successor.channel
        guard let store = shared?.store, folder == configuration.cache.path else {
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
            guard error.code != EPIPE else { return }
            logger.warning(
                "the successor's counters do not begin where these end",
                metadata: ["error": "\(error)"])
        }
    }

    /// How the successor has failed; `nil` while it runs, and if it was told to end.
    func successorFailure() -> Ended? { successor?.hasFailed() }

    /// Serves again, because the successor is gone.
    func resume(after end: Ended) throws {
        sockets.leavesFile = false
        let perWorker = try sockets.open(configuration, again: true)
        successor = nil
        takeBackCache()
        service.takeBack()
        logger.error(
            "the successor is gone; this process serves again", metadata: ["reason": "\(end)"])
        for (mailbox, sockets) in zip(mailboxes, perWorker) { mailbox.post(.resume(sockets)) }
    }

    /// Everything is there but the clients: from now on they come here, and no more to the
    /// predecessor.
    func takeOver(_ perWorker: [[ListenerSocket]]) {
        guard let predecessor else { return }
        predecessor.closeUnused()
        predecessor.ready(version: published.version)
        for (mailbox, sockets) in zip(mailboxes, perWorker) { mailbox.post(.listen(sockets)) }
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
        let isStopped = wait(
            atMost: Self.stopAtOnceMilliseconds, until: { shared?.accepting.isNone ?? true })
        handedOver()
        if isStopped { stopAtOnce() }
        var end: Ended?
        var counted = Clock.monotonicMilliseconds()
        let interrupted = wait(
            atMost: grace,
            until: {
                let now = Clock.monotonicMilliseconds()
                if now - counted >= Self.countingMilliseconds {
                    counted = now
                    sendCounters()
                }
                end = successorFailure()
                return end != nil || hasEnded() || hasDrained
            })
        if interrupted { stopAtOnce() }
        if let end {
            do {
                try resume(after: end)
                return false
            } catch {
                logger.critical("cannot serve again", metadata: ["error": "\(error)"])
            }
        }
        sockets.close()
        stop()
        sendCounters()
        return true
    }
}
