/// What a worker holds for one host entry at a time.
package enum HostGauge: Int, Sendable, CaseIterable {
    /// Connections to its servers.
    case open
    /// Those of them that no exchange uses.
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

/// Where what lies in a worker's cells of host entries.
enum HostLayout {
    /// Cells of a host entry: its gauges, the end of its latest server certificate, what clients
    /// rejected, the end of the latest verified chain, and exchanges that failed, and
    /// intercepted tunnels that clients gave up.
    static var cells: Int { 8 }
    static var notAfter: Int { 3 }
    static var rejections: Int { 4 }
    static var chain: Int { 5 }
    static var failures: Int { 6 }
    static var givenUp: Int { 7 }
}

extension WorkerMetrics {
    /// A host entry's cells for what is only told of itself; nil: its slot has another name by now.
    private func own(_ host: LabelIndex) -> CounterCells? {
        hosts.forWriting(host.slot, owner: SlotOwner.of(host))
    }

    /// Adds to a gauge of a host entry, and to that of all together.
    package func adjust(_ gauge: HostGauge, host: LabelIndex, by change: Int64) {
        adjust(gauge.total, by: change)
        own(host)?.add(UInt64(bitPattern: change), to: gauge.rawValue)
    }

    /// Notes when the certificate that a server of a host entry presented ends, in seconds since
    /// 1970.
    package func noteCertificate(host: LabelIndex, notAfter: Int64) {
        own(host)?.set(UInt64(max(0, notAfter)), at: HostLayout.notAfter)
    }

    /// Notes when the first certificate ends of the chain that a server of a host entry was
    /// verified by, in seconds since 1970.
    package func noteChain(host: LabelIndex, notAfter: Int64) {
        own(host)?.set(UInt64(max(0, notAfter)), at: HostLayout.chain)
    }

    /// Counts a client that does not accept the certificate that was issued for a host.
    package func countRejection(host: LabelIndex) {
        block(host, of: hosts).add(1, to: HostLayout.rejections)
    }

    /// Counts a client that has given up an intercepted tunnel to a host without a request.
    package func countGivenUp(host: LabelIndex) {
        block(host, of: hosts).add(1, to: HostLayout.givenUp)
    }

    /// How often clients did not accept certificates issued for hosts of an entry, from any thread.
    package func rejections(host: LabelIndex) -> UInt64 { value(host, HostLayout.rejections) }

    /// A gauge's value for a host entry, from any thread.
    package func value(_ gauge: HostGauge, host: LabelIndex) -> Int64 {
        Int64(bitPattern: value(host, gauge.rawValue))
    }

    /// When the latest certificate ends, in seconds since 1970; nil: none was seen. From any
    /// thread.
    package func certificateEnd(host: LabelIndex) -> Int64? { end(host, HostLayout.notAfter) }

    /// When the first certificate of the latest verified chain ends, in seconds since 1970; nil:
    /// none was verified. From any thread.
    package func chainEnd(host: LabelIndex) -> Int64? { end(host, HostLayout.chain) }

    private func value(_ host: LabelIndex, _ cell: Int) -> UInt64 {
        reading(host, of: hosts)?[cell] ?? 0
    }

    private func end(_ host: LabelIndex, _ cell: Int) -> Int64? {
        let end = value(host, cell)
        return end > 0 ? Int64(end) : nil
    }
}

/// A host entry whose figures are shown: its label, and its cells of the workers that have any.
private struct HostSeries {
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
    fileprivate func hostSeries() -> [HostSeries] {
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
        writeCertificates(hosts, snapshot.service.wallSeconds)
        family(
            "pinfold_interception_rejections", .counter,
            help: "TLS alerts of clients that refused the certificate issued for a host, by entry.")
        for host in hosts { sample(host.labels, host.total(at: HostLayout.rejections)) }
        family(
            "pinfold_interception_given_up", .counter,
            help: "Intercepted tunnels that clients gave up without a request, by entry.")
        for host in hosts { sample(host.labels, host.total(at: HostLayout.givenUp)) }
    }

    private mutating func writeCertificates(_ hosts: [HostSeries], _ now: Int64) {
        family(
            "pinfold_host_certificate_expiry_seconds", .gauge,
            help: "Time left for the latest certificate that a server of a host entry presented.",
            unit: "seconds")
        writeEnds(hosts, HostLayout.notAfter, now)
        family(
            "pinfold_host_chain_expiry_seconds", .gauge,
            help: "Time left for the latest chain that a server of a host entry was verified by.",
            unit: "seconds")
        writeEnds(hosts, HostLayout.chain, now)
    }

    private mutating func writeEnds(_ hosts: [HostSeries], _ cell: Int, _ now: Int64) {
        for host in hosts {
            // Of several workers' the one that ends last is the latest.
            guard let end = host.blocks.map({ $0[cell] }).max(), end > 0 else { continue }
            sample(host.labels, signed: Int64(end) - now)
        }
    }
}
