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
    /// rejected, and the end of the latest verified chain.
    static var cells: Int { 6 }
    static var notAfter: Int { 3 }
    static var rejections: Int { 4 }
    static var chain: Int { 5 }
}

extension WorkerMetrics {
    private func place(host: Int, _ cell: Int) -> Int {
        let last = dimensions.hosts - 1
        return (host >= 0 && host < last ? host : last) * HostLayout.cells + cell
    }

    /// Adds to a gauge of a host entry, by the index of its name, and to that of all together.
    package func adjust(_ gauge: HostGauge, host: Int, by change: Int64) {
        adjust(gauge.total, by: change)
        hosts.add(UInt64(bitPattern: change), to: place(host: host, gauge.rawValue))
    }

    /// Notes when the certificate that a server of a host entry presented ends, in seconds since
    /// 1970.
    package func noteCertificate(host: Int, notAfter: Int64) {
        hosts.set(UInt64(max(0, notAfter)), at: place(host: host, HostLayout.notAfter))
    }

    /// Notes when the first certificate ends of the chain that a server of a host entry was
    /// verified by, in seconds since 1970.
    package func noteChain(host: Int, notAfter: Int64) {
        hosts.set(UInt64(max(0, notAfter)), at: place(host: host, HostLayout.chain))
    }

    /// Counts a client that does not accept the certificate that was issued for a host.
    package func countRejection(host: Int) {
        hosts.add(1, to: place(host: host, HostLayout.rejections))
    }

    /// How often clients did not accept certificates issued for hosts of an entry, from any thread.
    package func rejections(host: Int) -> UInt64 { hosts[place(host: host, HostLayout.rejections)] }

    /// A gauge's value for a host entry, from any thread.
    package func value(_ gauge: HostGauge, host: Int) -> Int64 {
        Int64(bitPattern: hosts[place(host: host, gauge.rawValue)])
    }

    /// When the latest certificate ends, in seconds since 1970; nil: none was seen. From any
    /// thread.
    package func certificateEnd(host: Int) -> Int64? { end(host, HostLayout.notAfter) }

    /// When the first certificate of the latest verified chain ends, in seconds since 1970; nil:
    /// none was verified. From any thread.
    package func chainEnd(host: Int) -> Int64? { end(host, HostLayout.chain) }

    private func end(_ host: Int, _ cell: Int) -> Int64? {
        let end = hosts[place(host: host, cell)]
        return end > 0 ? Int64(end) : nil
    }
}

extension ExpositionWriter {
    /// The pool and the certificates by host entry.
    mutating func writeHosts(_ snapshot: MetricsSnapshot) {
        let hosts = Array(snapshot.hosts.labels.indices) + [snapshot.hosts.overflowIndex]
        func sum(_ gauge: HostGauge, _ host: Int) -> Int64 {
            snapshot.workers.reduce(0) { $0 &+ $1.value(gauge, host: host) }
        }
        family(
            "pinfold_host_connections", .gauge,
            help: "Connections to the servers of a host entry, in use and idle.")
        for host in hosts {
            let idle = sum(.idle, host)
            for (state, count) in [("in_use", sum(.open, host) &- idle), ("idle", idle)] {
                var labels = LabelText("host", snapshot.hosts[host])
                labels.append("state", state)
                sample(labels, signed: count)
            }
        }
        family(
            "pinfold_host_waiting", .gauge,
            help: "Exchanges waiting for a connection to a server of a host entry.")
        for host in hosts {
            sample(LabelText("host", snapshot.hosts[host]), signed: sum(.waiting, host))
        }
        writeCertificates(hosts, snapshot)
        family(
            "pinfold_interception_rejections", .counter,
            help: "TLS alerts of clients that refused the certificate issued for a host, by entry.")
        for host in hosts {
            let count = snapshot.workers.reduce(UInt64(0)) { $0 &+ $1.rejections(host: host) }
            sample(LabelText("host", snapshot.hosts[host]), count)
        }
    }

    private mutating func writeCertificates(_ hosts: [Int], _ snapshot: MetricsSnapshot) {
        family(
            "pinfold_host_certificate_expiry_seconds", .gauge,
            help: "Time left for the latest certificate that a server of a host entry presented.",
            unit: "seconds")
        writeEnds(hosts, snapshot) { $0.certificateEnd(host: $1) }
        family(
            "pinfold_host_chain_expiry_seconds", .gauge,
            help: "Time left for the latest chain that a server of a host entry was verified by.",
            unit: "seconds")
        writeEnds(hosts, snapshot) { $0.chainEnd(host: $1) }
    }

    private mutating func writeEnds(
        _ hosts: [Int], _ snapshot: MetricsSnapshot, _ end: (WorkerMetrics, Int) -> Int64?
    ) {
        for host in hosts {
            // Of several workers' the one that ends last is the latest.
            let ends = snapshot.workers.compactMap { end($0, host) }
            guard let end = ends.max() else { continue }
            sample(
                LabelText("host", snapshot.hosts[host]), signed: end - snapshot.service.wallSeconds)
        }
    }
}
