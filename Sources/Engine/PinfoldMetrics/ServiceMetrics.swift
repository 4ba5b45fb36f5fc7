/// Metrics of the whole gateway, not of a worker, read from their owners at the moment of a scrape.
public struct ServiceMetrics: Sendable {
    /// The memory tier of the cache; `nil` if the cache is disabled.
    public var memoryTier: CacheTierMetrics?
    /// Bytes of the heap for the memory tier's larger entries, including holes; 0 if there is none.
    public var memoryHeapBytes: UInt64 = 0
    /// The disk tier of the cache; `nil` if none is configured.
    public var diskTier: CacheTierMetrics?
    /// The disk tier's files and what happened to them; `nil` without a disk tier.
    public var disk: DiskMetrics?
    /// The queue of the store thread; `nil` without a disk tier.
    public var storeQueue: StoreQueueMetrics?
    /// The state of the disk tier, one of `DiskTierState`.
    public var diskState: DiskTierState = .off
    /// Lines of the access log.
    public var accessLog = AccessLogMetrics()
    /// Lines of the operational log.
    public var operationalLog = OperationalLogMetrics()
    /// Certificates issued for intercepted tunnels.
    public var interception = InterceptionMetrics()
    /// Reports of pin failures.
    public var pinReports = PinReportMetrics()
    /// The activity indicator's state and transitions.
    public var activity: StateMetric?
    /// The reachability of each host entry's servers.
    public var reachability: [ReachabilityMetrics] = []
    /// The pinsets of the configuration in force.
    public var pinsets: [PinsetMetrics] = []
    /// The certificates that the gateway itself presents.
    public var ownCertificates: [OwnCertificateMetrics] = []
    /// The number of the configuration in force: 1 at the start, incremented by each reload.
    public var configurationGeneration: UInt64 = 1
    /// Whether the latest reload succeeded and no watched file is unusable; `true` before the
    /// first.
    public var lastReloadSucceeded = true
    /// The watched files, each once.
    public var watchedFiles: [WatchedFileMetrics] = []
    /// How often watched files had changed but could not be used.
    public var fileRefusals: UInt64 = 0
    /// When the configuration in force was loaded, in milliseconds since 1970.
    public var configurationLoadedMilliseconds: UInt64 = 0
    /// The moment of the scrape, in seconds since 1970.
    public var wallSeconds: Int64 = 0
    /// `limits.upstreamPerHost`: the limit on connections to one server; `nil` before the start.
    public var connectionLimit: UInt64?
    /// `limits.pending`: the limit on exchanges waiting for a connection to one server.
    public var waitingLimit: UInt64?
    /// Whether the gateway accepts new work: its listeners are up and it is not draining.
    public var isReady = true

    /// Metrics at zero, to be filled in.
    public init() {}
}

/// A certificate that the gateway itself presents, or issues with.
public struct OwnCertificateMetrics: Sendable, Equatable {
    /// To what it is presented: the label value.
    public enum Use: String, Sendable {
        /// The clients of a listener.
        case listener
        /// Not presented: it issues the certificates for intercepted tunnels.
        case authority
        /// Servers that request one.
        case client
    }

    public var use: Use
    /// The absolute path of its file.
    public var file: String
    /// When it expires, in seconds since 1970.
    public var notAfter: Int64

    /// A certificate of these metrics.
    public init(use: Use, file: String, notAfter: Int64) {
        self.use = use
        self.file = file
        self.notAfter = notAfter
    }
}

/// The state of a watched file.
public enum WatchedFileState: UInt8, Sendable, CaseIterable {
    /// The file's current content is in force.
    case current
    /// A newer content that the file had before is in force.
    case outdated
    /// Its previous content is in force: the current one cannot be used.
    case unusable

    /// The label value: `current`, `outdated`, `unusable`.
    public var label: StaticString {
        switch self {
        case .current: "current"
        case .outdated: "outdated"
        case .unusable: "unusable"
        }
    }
}

/// A watched file.
public struct WatchedFileMetrics: Sendable, Equatable {
    /// Its absolute path.
    public var path: String
    public var state: WatchedFileState

    public init(path: String, state: WatchedFileState) {
        self.path = path
        self.state = state
    }
}

/// A pinset of the configuration in force.
public struct PinsetMetrics: Sendable, Equatable {
    /// Its label.
    public var label: String
    /// Its pins, each once; the last may stand for all pins without a counter of their own.
    public var pins: [PinMetrics]
    /// Whether a server that no pin matches is refused.
    public var isEnforced: Bool
    /// When it expires, in seconds since 1970; `nil` if never.
    public var expires: Int64?
    /// Whether its pins are only reported once it has expired.
    public var isReportedAfter: Bool

    /// A pinset of these metrics.
    public init(
        label: String, pins: [PinMetrics] = [], isEnforced: Bool = true, expires: Int64? = nil,
        isReportedAfter: Bool = false
    ) {
        self.label = label
        self.pins = pins
        self.isEnforced = isEnforced
        self.expires = expires
        self.isReportedAfter = isReportedAfter
    }
}

/// One tier of the cache.
public struct CacheTierMetrics: Sendable, Equatable {
    /// Bytes used by the entries.
    public var bytes: UInt64 = 0
    /// The configured limit of `bytes`.
    public var limitBytes: UInt64 = 0
    /// The number of entries.
    public var entries: UInt64 = 0
    /// Entries removed to make room, since the start.
    public var evictions: UInt64 = 0

    /// A tier of these metrics.
    public init(
        bytes: UInt64 = 0, limitBytes: UInt64 = 0, entries: UInt64 = 0, evictions: UInt64 = 0
    ) {
        self.bytes = bytes
        self.limitBytes = limitBytes
        self.entries = entries
        self.evictions = evictions
    }
}

/// The disk tier's files and what happened to them.
public struct DiskMetrics: Sendable, Equatable {
    /// Bytes of the database's file.
    public var databaseBytes: UInt64 = 0
    /// Bytes of its write-ahead log's file.
    public var logBytes: UInt64 = 0
    /// Responses written, since the start.
    public var writes: UInt64 = 0
    /// Responses removed because there were too many bytes, since the start.
    public var evictedForBytes: UInt64 = 0
    /// Responses removed because there were too many of them.
    public var evictedForEntries: UInt64 = 0
    /// Responses removed because there were too many variants of one URL.
    public var evictedForVariants: UInt64 = 0
    /// Times that the database was recreated: it was damaged, or its files were missing.
    public var restarts: UInt64 = 0

    /// Metrics at zero, to be filled in.
    public init() {}
}

/// The queue of the thread that writes the disk tier.
public struct StoreQueueMetrics: Sendable, Equatable {
    /// Bytes queued now.
    public var bytes: UInt64 = 0
    /// Operations queued now.
    public var operations: UInt64 = 0
    /// Responses that were not stored because the queue was full, since the start.
    public var dropped: UInt64 = 0
    /// Entries that failed their checksum and were dropped, since the start.
    public var damaged: UInt64 = 0

    /// A queue of these metrics.
    public init(
        bytes: UInt64 = 0, operations: UInt64 = 0, dropped: UInt64 = 0, damaged: UInt64 = 0
    ) {
        self.bytes = bytes
        self.operations = operations
        self.dropped = dropped
        self.damaged = damaged
    }
}

/// Whether the disk tier works.
public enum DiskTierState: UInt8, Sendable, CaseIterable {
    /// Not configured.
    case off
    /// The store thread is still opening the database.
    case opening
    /// Reads and writes.
    case on
    /// Disabled after a failure: the disk is full, or the file is locked or damaged.
    case failed

    /// The label value: `off`, `opening`, `on`, `failed`.
    public var label: StaticString {
        switch self {
        case .off: "off"
        case .opening: "opening"
        case .on: "on"
        case .failed: "failed"
        }
    }
}

/// Certificates for intercepted tunnels. All but the first two count since the start.
public struct InterceptionMetrics: Sendable, Equatable {
    /// Certificates currently kept.
    public var kept: UInt64 = 0
    /// Names currently waiting for a certificate.
    public var waiting: UInt64 = 0
    /// Certificates issued.
    public var issued: UInt64 = 0
    /// Handshakes that got a cached certificate.
    public var hits: UInt64 = 0
    /// Handshakes that shared a signature with another one.
    public var coalesced: UInt64 = 0
    /// Handshakes that got no certificate.
    public var failures: UInt64 = 0

    /// Metrics at zero, to be filled in.
    public init() {}
}

/// The access log's lines since the start, by result.
public struct AccessLogMetrics: Sendable, Equatable {
    /// Lines written.
    public var written: UInt64 = 0
    /// Lines dropped: the queue was full, or writing failed.
    public var dropped: UInt64 = 0

    /// These numbers of lines.
    public init(written: UInt64 = 0, dropped: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
    }
}

/// The operational log's lines since the start, by result.
public struct OperationalLogMetrics: Sendable, Equatable {
    /// Lines written.
    public var written: UInt64 = 0
    /// Lines dropped: the queue was full, or writing failed.
    public var dropped: UInt64 = 0
    /// Messages not written because there were too many similar ones; their number was written.
    public var suppressed: UInt64 = 0

    /// These numbers of lines.
    public init(written: UInt64 = 0, dropped: UInt64 = 0, suppressed: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
        self.suppressed = suppressed
    }
}

/// A state machine as metrics: one gauge per state, one of which is 1, and a counter per state
/// entered.
public struct StateMetric: Sendable, Equatable {
    /// One state: its label value, and how often it was entered.
    public struct Entry: Sendable, Equatable {
        /// The label value.
        public var label: String
        /// How often it was entered from another state.
        public var transitions: UInt64

        /// A state of this name.
        public init(label: String, transitions: UInt64) {
            self.label = label
            self.transitions = transitions
        }
    }

    /// The states, in the order in which they are listed.
    public var states: [Entry]
    /// The index of the current state.
    public var current: Int

    /// A machine in the state `current` of `states`.
    public init(states: [Entry], current: Int) {
        self.states = states
        self.current = current
    }
}

/// The reachability of a host entry's servers.
public struct ReachabilityMetrics: Sendable {
    /// One state of reachability.
    public struct State: Sendable {
        /// The label value.
        public var label: StaticString
        /// Servers currently in this state.
        public var servers: UInt64
        /// How often servers have entered it from another one.
        public var transitions: UInt64

        /// A state of these metrics.
        public init(label: StaticString, servers: UInt64, transitions: UInt64) {
            self.label = label
            self.servers = servers
            self.transitions = transitions
        }
    }

    /// The host entry's name.
    public var label: String
    /// All states, in the order in which they are listed.
    public var states: [State]

    /// The metrics of the host entry named `label`.
    public init(label: String, states: [State]) {
        self.label = label
        self.states = states
    }
}

/// The operating system's metrics of the process.
public struct ProcessMetrics: Sendable, Equatable {
    /// User and system time, in microseconds.
    public var cpuMicroseconds: UInt64 = 0
    /// Memory in RAM, in bytes.
    public var residentBytes: UInt64 = 0
    /// Address space, in bytes.
    public var virtualBytes: UInt64 = 0
    /// Descriptors open.
    public var openDescriptors: UInt64 = 0
    /// The soft limit of descriptors; `nil` if there is none.
    public var maximumDescriptors: UInt64?
    /// When the process started, in milliseconds since 1970.
    public var startMilliseconds: UInt64 = 0

    /// Metrics at zero, to be filled in.
    public init() {}
}

/// The build.
public struct BuildInfo: Sendable, Equatable {
    /// The version, as `pinfold --version` prints it.
    public var version: String
    /// The commit, or `unknown`.
    public var revision: String
    /// The compiler's version, or `unknown`.
    public var swiftVersion: String

    /// A build of these names.
    public init(version: String, revision: String = "unknown", swiftVersion: String = "unknown") {
        self.version = version
        self.revision = revision
        self.swiftVersion = swiftVersion
    }
}
