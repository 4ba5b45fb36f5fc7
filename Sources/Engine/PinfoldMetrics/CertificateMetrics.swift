/// A certificate of the gateway itself.
public struct CertificateMetrics: Sendable, Equatable {
    /// The value of the label `use`; that of servers' certificates is `upstream`.
    public var use: String
    /// The absolute path of its file.
    public var file: String
    /// When it expires, in seconds since 1970.
    public var notAfter: Int64

    /// A certificate with these values.
    public init(use: String, file: String, notAfter: Int64) {
        self.use = use
        self.file = file
        self.notAfter = notAfter
    }
}

/// A file with a list that must be replaced in time.
public struct ListMetrics: Sendable, Equatable {
    /// The absolute path of the file.
    public var file: String
    /// In seconds since 1970.
    public var time: Int64

    /// A list with these values.
    public init(file: String, time: Int64) {
        self.file = file
        self.time = time
    }
}

extension ExpositionWriter {
    /// When lists of revoked certificates are out of date, and of when those of logs are.
    mutating func writeLists(revocation: [ListMetrics], logs: [ListMetrics]) {
        family(
            "pinfold_crl_next_update_timestamp_seconds", .gauge,
            help: "When the first list of revoked certificates in a file is out of date.",
            unit: "seconds")
        for list in revocation { sample(LabelText("file", list.file), signed: list.time) }
        family(
            "pinfold_log_list_timestamp_seconds", .gauge,
            help: "Of when a list of Certificate Transparency logs is.", unit: "seconds")
        for list in logs { sample(LabelText("file", list.file), signed: list.time) }
    }

    /// When certificates expire: those of servers, by host entry, and the gateway's own. A moment,
    /// not the time that is left: it changes only with the certificate, and says the same to
    /// whoever reads it late.
    mutating func writeCertificates(_ hosts: [HostSeries], _ own: [CertificateMetrics]) {
        family(
            "pinfold_certificate_not_after_timestamp_seconds", .gauge,
            help: "When a certificate expires; for the servers of a host entry, the first one.",
            unit: "seconds")
        for host in hosts {
            guard let expiry = host.earliestEnd(at: HostLayout.certificates) else { continue }
            begin(host.labels)
            label("use", "upstream")
            end(signed: expiry)
        }
        for certificate in own {
            begin(LabelText("file", certificate.file))
            label("use", certificate.use)
            end(signed: certificate.notAfter)
        }
        family(
            "pinfold_chain_not_after_timestamp_seconds", .gauge,
            help: "When the first certificate expires in the chains that verified servers.",
            unit: "seconds")
        for host in hosts {
            guard let expiry = host.earliestEnd(at: HostLayout.chains) else { continue }
            sample(host.labels, signed: expiry)
        }
    }
}

extension HostSeries {
    /// The earliest expiry that workers have recorded lately, in seconds since 1970; `nil` if there
    /// is none.
    func earliestEnd(at cell: Int) -> Int64? {
        let ends = blocks.compactMap { EarliestEnd.read($0, at: cell) }
        guard let latest = ends.map({ $0.begin }).max() else { return nil }
        // A worker that has not seen a server for a long time may still have a certificate that has
        // since been renewed.
        return ends.filter { latest - $0.begin < 2 * EarliestEnd.period }.map { $0.end }.min()
    }
}
