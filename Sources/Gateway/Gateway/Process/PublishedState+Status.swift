import CLinux
import CacheStore
import Clocks
import PinfoldEngine
import PinfoldMetrics

// The state of everything, for the administrative address.
extension PublishedState {
    func status() -> StatusReport {
        let reload = reload.withLock { $0 }
        let (shared, workers) = running
        let readiness = readiness()
        let isDraining = readiness == .draining
        let accepting = shared?.accepting.counts ?? [:]
        let store = shared?.store?.statistics()
        func gauge(_ gauge: WorkerGauge) -> Int {
            Int(max(0, workers.reduce(0) { $0 + $1.value(gauge) }))
        }
        return StatusReport(
            readiness: readiness, version: version, revision: revision, pid: Int(getpid()),
            started: Int64(clamping: process.startMilliseconds), now: Clock.wallMilliseconds(),
            workers: workers.count,
            configuration: StatusReport.Configuration(
                file: file, generation: Int(shared?.generationInForce ?? reload.generation),
                loaded: Int64(clamping: reload.loadedMilliseconds), warnings: reload.warnings,
                hosts: reload.entries, pinsets: reload.pinsets.count,
                unusableFiles: reload.files.compactMap {
                    if case .unusable = $0.outcome { $0.path } else { nil }
                },
                needRestart: reload.needRestart),
            policy: policyReport,
            lastReload: reload.last,
            listeners: reload.listeners.map { listener in
                let open = accepting[listener.key] ?? 0
                return StatusReport.Listener(
                    name: listener.name, address: listener.address, kind: listener.kind,
                    isSecure: listener.isSecure, isAccepting: open >= listener.sockets)
            },
            servers: servers(reload.serverSets),
            load: StatusReport.Load(
                connections: shared?.clientConnections.load(ordering: .relaxed) ?? 0,
                requests: gauge(.exchangesInFlight), tunnels: gauge(.tunnelsOpen),
                serverConnections: gauge(.upstreamConnectionsOpen)),
            memory: memory(store, reload),
            disk: disk(store, reload),
            shared: sharedCache(reload),
            draining: isDraining ? reload.draining : nil)
    }

    /// The configuration in force, and what its files say by now.
    func configuration(_ look: ConfigurationLook, isFull: Bool) -> ConfigurationReport {
        // First what takes time: the rest is then as new as it can be.
        let files = look.files()
        return ConfigurationReport(
            isFull: isFull, status: status(), lastRefused: reload.withLock { $0.lastRefused },
            text: look.text(), files: files)
    }

    func servers(_ sets: [ServerSet]) -> [StatusReport.Server] {
        let now = Clock.monotonicMilliseconds()
        return sets.flatMap { set in
            set.servers.enumerated().map { index, server in
                let configured = set.configuration.servers[index]
                let standing = server.standing(weight: configured.weight, at: now)
                let isUp = standing == .up || standing == .draining
                return StatusReport.Server(
                    listener: set.listener, url: server.url, state: standing.rawValue,
                    isBackup: configured.isBackup, weight: configured.weight,
                    requests: server.requestsUnderWay, cause: isUp ? nil : server.cause)
            }
        }
    }

    private func memory(_ store: StoreStatistics?, _ reload: Reload) -> StatusReport.Tier {
        StatusReport.Tier(
            state: store == nil ? "off" : "on", path: nil, bytes: store?.memoryBytes ?? 0,
            limitBytes: store == nil ? 0 : Int(clamping: reload.memoryLimit),
            entries: store?.memoryEntries ?? 0)
    }

    /// As the process began with it.
    private func sharedCache(_ reload: Reload) -> StatusReport.SharedCache? {
        guard let level = cache.withLock({ $0 })?.level,
            let configuration = reload.begunWith?.cache.shared
        else { return nil }
        let figures = level.figures()
        let reason = figures.isReady ? nil : figures.reason
        return StatusReport.SharedCache(
            state: figures.isReady ? "on" : reason == nil ? "opening" : "off",
            engine: configuration.placeText, reason: reason?.rawValue,
            detail: reason == nil || figures.detail.isEmpty ? nil : figures.detail,
            name: String(decoding: level.options.gateway, as: UTF8.self),
            members: figures.members)
    }

    private func disk(_ store: StoreStatistics?, _ reload: Reload) -> StatusReport.Tier {
        let state = (store?.diskState ?? .off(.disabled)).word
        let isUsed = state != "off"
        return StatusReport.Tier(
            state: state, path: isUsed ? reload.cachePath : nil,
            bytes: Int(store?.diskBytes ?? 0),
            limitBytes: isUsed ? Int(clamping: reload.diskLimit) : 0,
            entries: store?.diskEntries ?? 0)
    }
}

/// A listening address as it is published.
struct PublishedListener: Sendable {
    var name: String
    var address: String
    var kind: String
    var isSecure: Bool
    /// How many workers have a socket of it.
    var sockets: Int

    var key: AcceptingListeners.Key {
        AcceptingListeners.Key(name: name, isAdmin: kind == "admin")
    }

    init(_ socket: ListenerSocket, isSecure: Bool, sockets: Int) {
        name = socket.name
        address = "\(socket.address)"
        switch socket.role {
        case .reverse, .balanced: kind = "reverse"
        case .admin: kind = "admin"
        case .transparent: kind = "transparent"
        case .forward, .bound, .proxied, .proof:
            kind = socket.speaks == .socks5 ? "socks5" : "forward"
        }
        self.isSecure = isSecure
        self.sockets = sockets
    }
}

extension PolicySnapshot {
    /// TLS with the clients of a listening socket; `nil` for clear text.
    func clientTLS(of socket: ListenerSocket) -> ClientTLS? {
        socket.isAdmin ? adminTLS : clientTLS(ofListener: socket.name)
    }
}
