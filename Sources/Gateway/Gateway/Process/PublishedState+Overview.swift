import Activity
import CLinux
import Clocks
import EventLoop
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics

// What the overview shows, drawn from what the metrics and the status are drawn from.
extension PublishedState {
    /// The counts of all workers now; `nil` before the start.
    func reading() -> TrafficHistory.Reading? {
        let (shared, workers) = running
        guard let shared else { return nil }
        let underWay = underWay()
        return TrafficHistory.Reading(
            time: Clock.wallMilliseconds(), moment: Clock.monotonicMilliseconds(),
            totals: counters(shared, workers).traffic,
            inFlight: Int(clamping: max(0, underWay.exchanges)),
            tunnels: Int(clamping: max(0, underWay.tunnels)),
            busyNanoseconds: shared.turnTimes.map { $0.busyNanoseconds() })
    }

    /// What host entries have counted.
    func hostTraffic() -> [HostTraffic] {
        let (shared, workers) = running
        guard let shared else { return [] }
        return counters(shared, workers).hostTraffic
    }

    private func counters(_ shared: SharedServices, _ workers: [WorkerMetrics]) -> MetricsSnapshot {
        MetricsSnapshot(
            workers: workers, listeners: shared.labels.listenerSnapshot,
            hosts: shared.labels.snapshot, service: ServiceMetrics())
    }

    /// The pinsets in force with their counts.
    func pinsetMetrics() -> [PinsetMetrics] {
        let shared = running.shared
        return reload.withLock { $0.pinsets }.map { pinset in
            var pinset = pinset
            pinset.count(shared?.labels.pinMatches(pinset: pinset.label) ?? [:])
            return pinset
        }
    }

    func activityReport() -> ActivityReport {
        ActivityReport(running.shared?.activity.snapshot ?? ActivityTracker())
    }

    /// What is in progress.
    /// - Parameter busy: of the workers in the latest sample, in hundredths.
    func load(_ busy: [Int] = []) -> OverviewReport.Load {
        let shared = running.shared
        var load = OverviewReport.Load()
        load.requests = gauge(.exchangesInFlight)
        load.connections = shared?.clientConnections.load(ordering: .relaxed) ?? 0
        load.connectionsLimit = reload.withLock { $0.limits.connections }
        load.upstreamConnectionsLimit = load.connectionsLimit
        load.tunnels = gauge(.tunnelsOpen)
        load.upstreamConnections = gauge(.upstreamConnectionsOpen)
        load.waiting = gauge(.poolWaiting)
        load.workers = (shared?.turnTimes ?? []).enumerated().map { index, times in
            OverviewReport.Worker(
                index: index, busyPercent: busy.indices.contains(index) ? busy[index] : nil,
                longestMicroseconds: times.longestNanoseconds() / 1000)
        }
        return load
    }

    private func gauge(_ gauge: WorkerGauge) -> Int {
        Int(max(0, running.workers.reduce(0) { $0 + $1.value(gauge) }))
    }

    // MARK: Reports

    func overview(_ history: GatewayObserver.History) -> OverviewReport {
        let status = status()
        let samples = history.traffic.samples
        let load = load(samples.last?.busy ?? [])
        var finder = AttentionFinder(now: status.now / 1000)
        finder.look(at: status)
        // Lists are replaced every few days. Because of one of revoked certificates that has not
        // been, servers are refused; one of logs is merely old.
        for end in calendar(hostTraffic()) where !end.isOfList || end.time <= status.now {
            guard end.kind != "logs" else {
                finder.look(atOldLogs: end.name)
                continue
            }
            let (what, kind, isEntry, isPinset) = Self.words(of: end)
            finder.look(
                atEnd: end.time / 1000, of: what, kind, entry: isEntry ? end.name : nil,
                pinset: isPinset ? end.name : nil)
        }
        if let fleet = fleet.withLock({ $0 }) { finder.look(at: fleet.lastView) }
        finder.look(
            atPaused: gauge(.acceptPaused), pauses: samples.reduce(0) { $0 &+ $1.acceptPauses })
        finder.look(at: load.connections, of: load.connectionsLimit, "client connections")
        for host in hosts(history).hosts { finder.look(at: host) }
        return OverviewReport(
            status: status, hostName: Self.machineName, samples: samples, load: load,
            activity: activityReport(), attention: finder.sorted,
            fleet: fleet.withLock { $0 }?.shownName)
    }

    private static func words(
        of end: PinsReport.End
    ) -> (what: String, kind: Attention.Kind, isEntry: Bool, isPinset: Bool) {
        switch end.kind {
        case "upstream": ("a server's certificate", .certificate, true, false)
        case "chain": ("a certificate in a server's chain", .certificate, true, false)
        case "pinset": ("pinset \(end.name)", .pinset, false, true)
        case "crl": ("the list of revoked certificates \(end.name)", .certificate, false, false)
        default: ("the gateway's certificate \(end.name)", .certificate, false, false)
        }
    }

    private static var machineName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(
            decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func hosts(_ history: GatewayObserver.History) -> HostsReport {
        let reload = reload.withLock { $0 }
        let base = history.hosts.base
        var reports: [String: HostReport] = [:]
        for traffic in hostTraffic() {
            reports[traffic.label] = HostReport(
                now: traffic, before: base?.entries[traffic.label])
        }
        for entry in reload.hosts {
            var report =
                reports[entry.label] ?? HostReport(now: HostTraffic(label: entry.label))
            report.reachable = entry.count(in: .reachable)
            report.notReachable = entry.count(in: .notReachable)
            report.unreachable = entry.known.filter { $0.state == .notReachable }.map(\.server)
            report.unknown = entry.count(in: .unknown)
            reports[entry.label] = report
        }
        for (label, pinsets) in reload.entryPinsets { reports[label]?.pinsets = pinsets }
        let seconds = base.map { (Clock.monotonicMilliseconds() - $0.moment) / 1000 } ?? 0
        return HostsReport(
            seconds: seconds, hosts: reports.values.sorted(by: HostReport.precedes))
    }

    func pins(
        _ history: GatewayObserver.History, _ flows: FlowAdministration, isFull: Bool
    ) -> PinsReport {
        let reload = reload.withLock { $0 }
        let traffic = hostTraffic()
        let sets = pinsetMetrics().map { pinset in
            PinsReport.Set(
                metrics: pinset,
                keys: pinset.pins.map {
                    PinsReport.Key(
                        pin: $0.text, matches: $0.matches,
                        lastMatch: history.pins.lastMatch(of: $0.text, in: pinset.label))
                },
                results: pinResults(pinset.label),
                entries: reload.entryPinsets.filter { $0.value.contains(pinset.label) }
                    .map(\.key).sorted())
        }
        let unverified = traffic.compactMap { host -> PinsReport.Unverified? in
            let tunnels = (host.tunnels[.relayed] ?? 0) &+ (host.tunnels[.passed] ?? 0)
            return tunnels > 0
                ? PinsReport.Unverified(entry: host.label, tunnels: tunnels) : nil
        }
        let names = flows.names
        let views = flows.ring.snapshot.flows.map { FlowView($0, names, isFull: isFull) }
        return PinsReport(
            isFull: isFull, sets: sets,
            unverified: unverified.sorted { $0.tunnels > $1.tunnels },
            hosts: PinsReport.hosts(in: views, isFull: isFull),
            observed: running.shared?.pinObserver?.summaries ?? [], calendar: calendar(traffic))
    }

    private func pinResults(_ name: String) -> [PinResult: UInt64] {
        let (shared, workers) = running
        guard let index = shared?.labels.pinsetSnapshot.inForce.first(where: { $0.label == name })
        else { return [:] }
        var results: [PinResult: UInt64] = [:]
        for result in PinResult.allCases {
            for worker in workers {
                results[result, default: 0] &+= worker.pinEvaluations(
                    pinset: index.index, result: result)
            }
        }
        return results
    }

    /// What ends, the soonest first.
    private func calendar(_ traffic: [HostTraffic]) -> [PinsReport.End] {
        let reload = reload.withLock { $0 }
        var ends: [PinsReport.End] = []
        func add(_ end: Int64?, _ kind: String, _ name: String) {
            if let end { ends.append(PinsReport.End(time: end * 1000, kind: kind, name: name)) }
        }
        for host in traffic {
            add(host.certificateEnd, "upstream", host.label)
            // The server's own certificate is usually the first of its chain to end.
            if host.chainEnd != host.certificateEnd { add(host.chainEnd, "chain", host.label) }
        }
        for own in reload.ownCertificates { add(own.notAfter, own.use.rawValue, own.file) }
        for pinset in reload.pinsets { add(pinset.expires, "pinset", pinset.label) }
        ends += reload.lists.ends
        return ends.sorted { ($0.time, $0.name) < ($1.time, $1.name) }
    }

    func reachability() -> ReachabilityReport {
        ReachabilityReport(
            entries: reload.withLock { $0.hosts }.map { ReachabilityReport.Entry($0) },
            servers: status().servers)
    }
}

extension ConfigurationSnapshot {
    /// The names of the pinsets of each host entry, by its label.
    var pinsetNamesByEntry: [String: [String]] {
        var names: [String: [String]] = [:]
        for entry in hosts.entries {
            for index in entry.pinsets {
                let name = pinsets[index].pinset.name
                if !names[entry.label, default: []].contains(name) {
                    names[entry.label, default: []].append(name)
                }
            }
        }
        return names
    }
}
