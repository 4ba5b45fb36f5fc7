/// The gauges of a worker for one host entry.
public enum HostGauge: Int, Sendable, CaseIterable {
    /// Connections to its servers.
    case open
    /// Connections that no exchange uses.
    case idle
    /// Exchanges that wait for one.
    case waiting

    /// The gauge of all host entries together.
    var total: WorkerGauge {
        switch self {
        case .open: .upstreamConnectionsOpen
        case .idle: .upstreamConnectionsIdle
        case .waiting: .poolWaiting
        }
    }
}

/// The layout of a worker's cells of host entries.
enum HostLayout {
    /// The cells of a host entry: its gauges, rejections by clients, failed exchanges, intercepted
    /// tunnels that clients gave up, the earliest expiry of its servers' certificates and of the
    /// chains by which they were verified, and its tunnels by result.
    static var cells: Int { tunnels + TunnelResult.allCases.count }
    static var rejections: Int { 3 }
    static var failures: Int { 4 }
    static var givenUp: Int { 5 }
    static var certificates: Int { 6 }
    static var chains: Int { 9 }
    static var tunnels: Int { 12 }
}

/// The earliest expiry recorded recently: in the current period and the one before it. In this way
/// an entry's servers do not hide each other's, and a renewed certificate is forgotten.
enum EarliestEnd {
    /// In seconds.
    static let period: Int64 = 3600

    // Cells from the first on.
    static var current: Int { 0 }
    static var before: Int { 1 }
    /// When the current period began, in seconds since 1970.
    static var begin: Int { 2 }

    /// The earliest expiry recorded in a block from the cell `first` on, and when its period began,
    /// both in seconds since 1970; `nil` if there is none. From any thread.
    static func read(_ cells: CounterCells, at first: Int) -> (end: Int64, begin: Int64)? {
        let (current, earlier) = (cells[first], cells[first + before])
        guard current > 0 else { return nil }
        return (
            Int64(earlier > 0 ? min(current, earlier) : current), Int64(cells[first + begin])
        )
    }
}

extension WorkerMetrics {
    /// A host entry's own cells; `nil` if its slot has another name by now.
    private func own(_ host: LabelIndex) -> CounterCells? {
        hosts.forWriting(host.slot, owner: SlotOwner.of(host))
    }

    /// Adds to a gauge of a host entry, and to the total gauge.
    public func adjust(_ gauge: HostGauge, host: LabelIndex, by change: Int64) {
        adjust(gauge.total, by: change)
        own(host)?.add(UInt64(bitPattern: change), to: gauge.rawValue)
    }

    /// Records when a certificate presented by a server of a host entry expires, trusted or not.
    /// - Parameters:
    ///   - notAfter: in seconds since 1970.
    ///   - now: in seconds since 1970.
    public func noteCertificate(host: LabelIndex, notAfter: Int64, at now: Int64) {
        note(notAfter, at: now, host: host, HostLayout.certificates)
    }

    /// Records when the first certificate expires of the chain by which a server of a host entry
    /// was verified.
    /// - Parameters:
    ///   - notAfter: in seconds since 1970.
    ///   - now: in seconds since 1970.
    public func noteChain(host: LabelIndex, notAfter: Int64, at now: Int64) {
        note(notAfter, at: now, host: host, HostLayout.chains)
    }

    private func note(_ end: Int64, at now: Int64, host: LabelIndex, _ first: Int) {
        guard let cells = own(host) else { return }
        // Nothing is noted where there is 0.
        let end = UInt64(max(1, end))
        let age = now - Int64(cells[first + EarliestEnd.begin])
        if cells[first] > 0, (0..<EarliestEnd.period).contains(age) {
            if end < cells[first] { cells.set(end, at: first) }
            return
        }
        let isNext = (0..<2 * EarliestEnd.period).contains(age)
        cells.set(isNext ? cells[first] : 0, at: first + EarliestEnd.before)
        cells.set(end, at: first)
        cells.set(UInt64(max(0, now)), at: first + EarliestEnd.begin)
    }

    /// Counts a client that rejects the certificate issued for a host.
    public func countRejection(host: LabelIndex) {
        block(host, of: hosts).add(1, to: HostLayout.rejections)
    }

    /// Counts a client that has given up an intercepted tunnel to a host without a request.
    public func countGivenUp(host: LabelIndex) {
        block(host, of: hosts).add(1, to: HostLayout.givenUp)
    }

    /// Counts a tunnel to a host whose result is known.
    public func countTunnel(_ result: TunnelResult, host: LabelIndex) {
        block(host, of: hosts).add(1, to: HostLayout.tunnels + Int(result.rawValue))
    }

    /// How often clients rejected certificates issued for hosts of an entry. From any thread.
    public func rejections(host: LabelIndex) -> UInt64 { value(host, HostLayout.rejections) }

    /// A gauge's value for a host entry, from any thread.
    public func value(_ gauge: HostGauge, host: LabelIndex) -> Int64 {
        Int64(bitPattern: value(host, gauge.rawValue))
    }

    private func value(_ host: LabelIndex, _ cell: Int) -> UInt64 {
        reading(host, of: hosts)?[cell] ?? 0
    }
}

/// A host entry with metrics: its label, and its cells in the workers that have any.
struct HostSeries {
    var labels: LabelText
    var blocks: [CounterCells]

    func total(at cell: Int) -> UInt64 {
        var total: UInt64 = 0
        for block in blocks { total &+= block[cell] }
        return total
    }

    func total(_ gauge: HostGauge) -> Int64 { Int64(bitPattern: total(at: gauge.rawValue)) }
}

extension MetricsSnapshot {
    /// The host entries in force, from the start; `other` only once something is counted with it.
    func hostSeries() -> [HostSeries] {
        hosts.inForceAndOther.compactMap { host in
            let blocks = workers.compactMap { $0.reading(host.index, of: $0.hosts) }
            guard host.index != .other || !blocks.isEmpty else { return nil }
            return HostSeries(labels: LabelText("host", host.label), blocks: blocks)
        }
    }
}

extension ExpositionWriter {
    /// The pool and the certificates by host entry.
    mutating func writeHosts(_ snapshot: MetricsSnapshot) {
        let hosts = snapshot.hostSeries()
        family(
            "pinfold_host_connections", .gauge,
            help: "Connections to the servers of a host entry, in use and idle.")
        for host in hosts {
            let idle = host.total(.idle)
            begin(host.labels)
            label("state", "in_use")
            end(signed: host.total(.open) &- idle)
            begin(host.labels)
            label("state", "idle")
            end(signed: idle)
        }
        family(
            "pinfold_host_waiting", .gauge,
            help: "Exchanges waiting for a connection to a server of a host entry.")
        for host in hosts { sample(host.labels, signed: host.total(.waiting)) }
        family(
            "pinfold_host_failures", .counter,
            help: "Exchanges with hosts of an entry that were refused, failed or cut off.")
        for host in hosts { sample(host.labels, host.total(at: HostLayout.failures)) }
        writePhases(snapshot)
        writeCertificates(hosts, snapshot.service.certificates)
        writeLists(
            revocation: snapshot.service.revocationLists, logs: snapshot.service.logLists)
        family(
            "pinfold_host_tunnels", .counter,
            help: "Tunnels that clients asked for, by host entry and how they were judged.")
        for host in hosts {
            for result in TunnelResult.allCases {
                begin(host.labels)
                label("result", result.label)
                end(host.total(at: HostLayout.tunnels + Int(result.rawValue)))
            }
        }
        family(
            "pinfold_interception_rejections", .counter,
            help: "TLS alerts of clients that refused the certificate issued for a host, by entry.")
        for host in hosts { sample(host.labels, host.total(at: HostLayout.rejections)) }
        family(
            "pinfold_interception_given_up", .counter,
            help: "Intercepted tunnels that clients gave up without a request, by entry.")
        for host in hosts { sample(host.labels, host.total(at: HostLayout.givenUp)) }
    }

    /// What exchanges spent their time on; phases that have not happened have no series.
    private mutating func writePhases(_ snapshot: MetricsSnapshot) {
        family(
            "pinfold_host_phase_duration_seconds", .histogram,
            help: "What exchanges with hosts of an entry spent their time on, by phase.",
            unit: "seconds")
        let scale = HistogramScale(.phases, inMillionths: true)
        for host in snapshot.hosts.inForceAndOther {
            let blocks = snapshot.workers.compactMap { $0.reading(host.index, of: $0.phases) }
            guard !blocks.isEmpty else { continue }
            for phase in Phase.allCases {
                var totals = HistogramTotals()
                for block in blocks { totals.add(block, at: PhaseLayout.histogram(phase)) }
                guard totals.count > 0 else { continue }
                var labels = LabelText("host", host.label)
                labels.append("phase", phase.label)
                histogram(labels, totals, scale)
            }
        }
    }
}
