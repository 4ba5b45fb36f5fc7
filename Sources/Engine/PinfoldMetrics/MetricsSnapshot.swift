/// Everything that a scrape reads, collected by the gateway at the moment of the scrape.
public struct MetricsSnapshot: Sendable {
    /// The counters of every thread that counts.
    public var workers: [WorkerMetrics]
    /// Names of listeners.
    public var listeners: LabelTable
    /// Names of host entries.
    public var hosts: LabelTable
    /// Pinset labels.
    public var pinsets: LabelTable
    /// The tokens of the reasons, by index: those of the error body and the access log.
    public var reasons: [String]
    /// The tokens of the reasons not to store, by index.
    public var notStored: [String]
    /// Metrics of the whole gateway.
    public var service: ServiceMetrics
    /// The last values of a process that this one has succeeded; `nil` without one.
    public var former: FormerCounters?

    /// A snapshot of these parts.
    public init(
        workers: [WorkerMetrics], listeners: LabelTable = LabelTable(),
        hosts: LabelTable = LabelTable(), pinsets: LabelTable = LabelTable(),
        reasons: [String] = [], notStored: [String] = [], service: ServiceMetrics
    ) {
        self.workers = workers
        self.listeners = listeners
        self.pinsets = pinsets
        self.reasons = reasons
        self.notStored = notStored
        self.hosts = hosts
        self.service = service
    }

    /// The exposition of everything, in a format.
    public func exposition(_ format: ExpositionFormat) -> [UInt8] {
        // A host entry with traffic through one listener has about as much. What is not needed is
        // not touched, and takes no memory.
        let expected = (64 + 12 * hosts.inForce.count) << 10
        var writer = ExpositionWriter(format: format, expected: expected)
        writer.writeExchanges(self)
        writer.writeWorkerFamilies(self)
        writer.writeHosts(self)
        writer.writeService(service)
        let own = writer.finish()
        return former?.added(to: own) ?? own
    }
}
