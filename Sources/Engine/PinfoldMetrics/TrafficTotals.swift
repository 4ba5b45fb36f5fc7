/// A histogram at a moment, or between two.
public struct Distribution: Sendable {
    /// By which bounds values are counted.
    enum Scale { case durations, phases }

    private var cells = InlineArray<22, UInt64>(repeating: 0)
    private let scale: Scale

    init(_ scale: Scale) { self.scale = scale }

    private var buckets: HistogramBuckets {
        switch scale {
        case .durations: .durations
        case .phases: .phases
        }
    }

    mutating func add(_ block: CounterCells, at start: Int) {
        for index in 0..<HistogramBuckets.cells { cells[index] &+= block[start + index] }
    }

    /// How many values there are.
    public var count: UInt64 {
        (0..<HistogramBuckets.sumCell).reduce(0) { $0 &+ cells[$1] }
    }

    /// What has been added since an earlier moment.
    public func since(_ earlier: Distribution?) -> Distribution {
        guard let earlier else { return self }
        var difference = self
        for index in 0..<HistogramBuckets.cells {
            // Counters of a name begin anew if the name has been away for long.
            difference.cells[index] =
                cells[index] >= earlier.cells[index] ? cells[index] - earlier.cells[index] : 0
        }
        return difference
    }

    /// The value, in microseconds, that so many thousandths of all values do not exceed, as closely
    /// as the buckets tell; `nil` without values.
    public func quantile(_ thousandths: UInt64) -> UInt64? {
        let all = count
        guard all > 0 else { return nil }
        let wanted = max(1, (all * thousandths + 999) / 1000)
        var passed: UInt64 = 0
        for bucket in 0..<HistogramBuckets.sumCell {
            let here = cells[bucket]
            if passed + here >= wanted {
                let low = bucket > 0 ? buckets.bound(bucket - 1) ?? 0 : 0
                guard let high = buckets.bound(bucket) else { return low }
                return low + (high - low) * (wanted - passed) / max(1, here)
            }
            passed += here
        }
        return nil
    }
}

/// What all exchanges have counted together.
public struct TrafficTotals: Sendable {
    /// All exchanges.
    public var exchanges: UInt64 = 0
    /// Those that were refused, failed or cut off.
    public var failures: UInt64 = 0
    /// Those that the cache answered, and those for which it was asked.
    public var hits: UInt64 = 0
    public var lookups: UInt64 = 0
    /// Bytes from and to clients.
    public var received: UInt64 = 0
    public var sent: UInt64 = 0
    /// How often accepting was paused because descriptors had run out.
    public var acceptPauses: UInt64 = 0
    /// How long those took that were no tunnels or streams.
    public var durations = Distribution(.durations)

    /// Nothing.
    public init() {}
}

/// What the exchanges of a host entry have counted, and what is known of its servers.
public struct HostTraffic: Sendable {
    /// The entry's label.
    public var label: String
    public var exchanges: UInt64 = 0
    public var failures: UInt64 = 0
    /// How many of them by the reason's index, without those that have not happened.
    public var reasons: [Int: UInt64] = [:]
    /// TLS alerts of clients that rejected a certificate issued for one of its hosts.
    public var rejections: UInt64 = 0
    /// By result.
    public var tunnels: [TunnelResult: UInt64] = [:]
    /// What they spent their time on; what has not happened is absent.
    public var phases: [Phase: Distribution] = [:]
    /// Connections to its servers, those of them that are idle, and exchanges that wait for one.
    public var open: Int64 = 0
    public var idle: Int64 = 0
    public var waiting: Int64 = 0
    /// When the first of its servers' certificates expires, and the first in their chains, in
    /// seconds since 1970; `nil` if none was seen lately.
    public var certificateEnd: Int64?
    public var chainEnd: Int64?

    /// An entry without traffic.
    public init(label: String) { self.label = label }
}

extension MetricsSnapshot {
    /// The counts of all exchanges together. It takes time linear in the number of routes with
    /// traffic: some microseconds each.
    public var traffic: TrafficTotals {
        var totals = TrafficTotals()
        visitRoutes { _, block in add(block, to: &totals) }
        for worker in workers {
            totals.received &+= worker.value(.clientBytesReceived)
            totals.sent &+= worker.value(.clientBytesSent)
            totals.acceptPauses &+= worker.value(.acceptPauses)
            for reason in 0..<worker.dimensions.reasons {
                totals.failures &+= worker.failures(reason: reason)
            }
        }
        return totals
    }

    /// The counts by host entry: of those that have had any.
    public var hostTraffic: [HostTraffic] {
        var found: [UInt32: HostTraffic] = [:]
        for (index, label) in hosts.inForceAndOther {
            var traffic = HostTraffic(label: label)
            var hasAny = false
            for worker in workers {
                guard let block = worker.reading(index, of: worker.phases) else { continue }
                hasAny = true
                for phase in Phase.allCases {
                    traffic.phases[phase, default: Distribution(.phases)].add(
                        block, at: PhaseLayout.histogram(phase))
                }
            }
            traffic.phases = traffic.phases.filter { $0.value.count > 0 }
            let series = HostSeries(
                labels: .none, blocks: workers.compactMap { $0.reading(index, of: $0.hosts) })
            if !series.blocks.isEmpty {
                hasAny = true
                add(series, to: &traffic)
            }
            if hasAny { found[index.slot] = traffic }
        }
        let inForce = Set(hosts.inForceAndOther.map { $0.index })
        let reasons = workers.first?.dimensions.reasons ?? 0
        visitRoutes { host, block in
            let exchanges = Self.exchanges(in: block)
            guard exchanges.all > 0, inForce.contains(host.index) else { return }
            var traffic = found[host.index.slot] ?? HostTraffic(label: host.label)
            traffic.exchanges &+= exchanges.all
            for reason in 0..<reasons where block[RouteLayout.failures + reason] > 0 {
                traffic.reasons[reason, default: 0] &+= block[RouteLayout.failures + reason]
            }
            found[host.index.slot] = traffic
        }
        return found.values.sorted { $0.label < $1.label }
    }

    private func add(_ series: HostSeries, to traffic: inout HostTraffic) {
        traffic.failures = series.total(at: HostLayout.failures)
        traffic.rejections = series.total(at: HostLayout.rejections)
        for result in TunnelResult.allCases {
            let count = series.total(at: HostLayout.tunnels + Int(result.rawValue))
            if count > 0 { traffic.tunnels[result] = count }
        }
        traffic.open = series.total(.open)
        traffic.idle = series.total(.idle)
        traffic.waiting = series.total(.waiting)
        traffic.certificateEnd = series.earliestEnd(at: HostLayout.certificates)
        traffic.chainEnd = series.earliestEnd(at: HostLayout.chains)
    }

    /// Calls `body` with every block of a route that has had exchanges.
    private func visitRoutes(
        _ body: (_ host: (index: LabelIndex, label: String), CounterCells) -> Void
    ) {
        // Names that are not in force (any more) count as well: otherwise the sums would jump when
        // a configuration removes a name, or brings it back.
        let other = (index: LabelIndex.other, label: LabelTable.overflowLabel)
        let hosts = hosts.all + [other]
        for listener in listeners.all + [other] {
            for host in hosts {
                let route = RouteIndex(listener: listener.index, host: host.index)
                for worker in workers {
                    if let block = worker.block(route: route) { body(host, block) }
                }
            }
        }
    }

    private func add(_ block: CounterCells, to totals: inout TrafficTotals) {
        let exchanges = Self.exchanges(in: block)
        totals.exchanges &+= exchanges.all
        totals.hits &+= exchanges.hits
        totals.lookups &+= exchanges.lookups
        totals.durations.add(block, at: RouteLayout.duration)
    }

    private static func exchanges(
        in block: CounterCells
    ) -> (all: UInt64, hits: UInt64, lookups: UInt64) {
        var (all, hits, lookups): (UInt64, UInt64, UInt64) = (0, 0, 0)
        for cell in stride(from: 0, to: RouteLayout.duration, by: RouteLayout.caches) {
            for cache in CacheResult.allCases {
                let count = block[cell + Int(cache.rawValue)]
                all &+= count
                switch cache {
                case .hit, .hitStale, .revalidated, .collapsed:
                    hits &+= count
                    lookups &+= count
                case .miss, .uncacheable: lookups &+= count
                case .none, .bypass: break
                }
            }
        }
        return (all, hits, lookups)
    }
}
