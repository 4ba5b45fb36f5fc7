import CLinux
import CacheStore
import Clocks
import Logging
import Supervision

// Starting a successor, and handing over to it.
extension GatewayProcess {
    typealias Ended = ChildProcess.Ended

    /// Starts a successor, unless one is being started.
    func upgrade() {
        guard successor == nil else { return }
        do throws(Successor.Failure) {
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

    private func failed(_ failure: Successor.Failure) {
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
}
