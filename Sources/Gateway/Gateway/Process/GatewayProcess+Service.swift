import Clocks
import EventLoop
import Logging
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import Supervision

// The gateway as a service: what the manager that started it gave to it, and is told.
extension GatewayProcess {
    /// Logs what the gateway may use of the machine, and from where that is.
    func logShare() {
        let share = MachineShare.ofProcess()
        var metadata: Logger.Metadata = [
            "workers": "\(workerCount)",
            "workersFrom": isCountedByCores ? "\(share.coresSource)" : "configuration",
            "cacheMemory": "\(configuration.cache.isEnabled ? configuration.cache.memoryBytes : 0)",
            "buffers": "\(configuration.limits.bufferBytes)",
        ]
        if let memory = share.memory {
            metadata["memoryLimit"] = "\(memory.bytes)"
            metadata["memoryLimitFrom"] = "\(memory.file)"
        }
        logger.info("resources", metadata: metadata)
    }

    private var isCountedByCores: Bool {
        if case .auto = configuration.workers { true } else { false }
    }

    /// Closes the passed sockets that nothing in the configuration names.
    func closeUnusedSockets() {
        for socket in sockets.closeUnused(by: configuration) {
            logger.warning(
                "a socket from the service manager is closed: no listener uses it",
                metadata: ["socket": "\(PassedAddress.prefix)\(socket.name)"])
        }
    }

    /// The first worker has a socket of each listener.
    func publishListeners(_ perWorker: [[ListenerSocket]], to shared: SharedServices) {
        let own = OwnListeners(
            perWorker[0].filter { $0.path == nil }.map(\.endpoint) + sockets.endpointsOfIPv4)
        shared.engine.ownListeners.withLock { $0 = own }
        shared.engine.ownConnections.watch(perWorker[0].contains { $0.role == .transparent })
    }

    /// Logs the listeners that have not been logged yet.
    func announce(_ perWorker: [[ListenerSocket]]) {
        let former = announced
        announced = []
        for socket in perWorker[0] {
            let text = "\(socket.name) \(socket.address)"
            guard announced.insert(text).inserted, !former.contains(text) else { continue }
            var metadata: Logger.Metadata = [
                "listener": "\(socket.name)", "address": "\(socket.address)",
            ]
            if let name = socket.passedAs { metadata["socket"] = "\(PassedAddress.prefix)\(name)" }
            logger.info("listening", metadata: metadata)
        }
    }

    /// Waits until every worker's loop turns: all of its listeners then accept connections.
    /// - Returns: whether all do; `false` if one has ended.
    func workersTurn(_ shared: SharedServices) -> Bool {
        shared.turns.ask { [mailboxes] round in
            for mailbox in mailboxes { mailbox.post(.answer(round: round)) }
        }
        let pause: Int64 = 20_000_000
        while !shared.turns.waitForAll(until: Clock.monotonicNanoseconds() + pause) {
            if runningWorkers < workerCount { return false }
        }
        return true
    }

    /// What a shutdown still waits for, in words.
    var underWay: String {
        let (exchanges, tunnels) = published.underWay()
        let requests = max(0, exchanges - tunnels)
        func text(_ count: Int64, _ what: String) -> String {
            "\(count) \(what)\(count == 1 ? "" : "s")"
        }
        return "waiting for \(text(requests, "request")), \(text(tunnels, "tunnel"))"
    }
}

extension PublishedState {
    /// Exchanges in progress, and those of them that are tunnels.
    func underWay() -> (exchanges: Int64, tunnels: Int64) {
        workerMetrics.reduce((0, 0)) { sum, worker in
            (
                sum.0 + worker.value(.exchangesInFlight), sum.1 + worker.value(.tunnelsOpen)
            )
        }
    }
}
