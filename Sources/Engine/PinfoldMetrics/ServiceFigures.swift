/// Figures that belong to the whole gateway, not to a worker: read from their owners at the moment
/// of a scrape.
package struct ServiceFigures: Sendable {
    /// The memory tier of the cache; `nil` if the cache is off.
    package var memoryTier: CacheTierFigures?
    /// Bytes of the heap in which the memory tier's larger entries lie, holes included; 0 without.
    package var memoryHeapBytes: UInt64 = 0
    /// The disk tier of the cache; `nil` if none is configured.
    package var diskTier: CacheTierFigures?
    /// The disk tier's files and what happened to them; `nil` without a disk tier.
    package var disk: DiskFigures?
    /// What waits for the store thread; `nil` without a disk tier.
    package var storeQueue: StoreQueueFigures?
    /// The state of the disk tier, one of `DiskTierState`.
    package var diskState: DiskTierState = .off
    /// Lines of the access log.
    package var accessLog = AccessLogFigures()
    /// Lines of the operational log.
    package var operationalLog = OperationalLogFigures()
    /// Certificates issued for intercepted tunnels.
    package var interception = InterceptionFigures()
    /// Reports of pin failures.
    package var pinReports = PinReportFigures()
    /// The activity indicator's state and transitions.
    package var activity: StateFigure?
    /// The reachability of each host entry's servers.
    package var reachability: [ReachabilityFigures] = []
    /// The pinsets of the configuration in force.
    package var pinsets: [PinsetFigures] = []
    /// The certificates that the gateway itself shows.
    package var ownCertificates: [OwnCertificateFigures] = []
    /// The number of the configuration in force: 1 at the start, one more by each reload.
    package var configurationGeneration: UInt64 = 1
    /// Whether the latest reload was taken over, and no file that is watched is unusable; `true`
    /// before the first.
    package var lastReloadSucceeded = true
    /// The files that are taken up when they change, each once.
    package var watchedFiles: [WatchedFileFigures] = []
    /// How often such files had changed and could not be used.
    package var fileRefusals: UInt64 = 0
    /// When the configuration in force was taken over, in milliseconds since 1970.
    package var configurationLoadedMilliseconds: UInt64 = 0
    /// The moment of the scrape, in seconds since 1970.
    package var wallSeconds: Int64 = 0
    /// `limits.upstreamPerHost`: connections to one server at most; nil before the start.
    package var connectionLimit: UInt64?
    /// `limits.pending`: exchanges that may wait for a connection to one server.
    package var waitingLimit: UInt64?
    /// Whether the gateway takes new work: its listeners are up and it is not draining.
    package var isReady = true

    /// Figures at zero, to be filled in.
    package init() {}
}

/// A certificate that the gateway itself shows, or issues with.
package struct OwnCertificateFigures: Sendable, Equatable {
    /// Whom it is shown to; the label value.
    package enum Use: String, Sendable {
        /// The clients of a listener.
        case listener
        /// Nobody directly: it issues the certificates for intercepted tunnels.
        case authority
        /// Servers that ask for one.
        case client
    }

    package var use: Use
    /// The absolute path of its file.
    package var file: String
    /// When it ends, in seconds since 1970.
    package var notAfter: Int64

    /// A certificate of these figures.
    package init(use: Use, file: String, notAfter: Int64) {
        self.use = use
        self.file = file
        self.notAfter = notAfter
    }
}

/// What is in force of a file that is taken up when it changes.
package enum WatchedFileState: UInt8, Sendable, CaseIterable {
    /// The file as it is on disk.
    case current
    /// Something newer that the file held before, and does not hold any more.
    case outdated
    /// What it held before: as it is on disk it cannot be used.
    case unusable

    /// The label value: `current`, `outdated`, `unusable`.
    package var label: StaticString {
        switch self {
        case .current: "current"
        case .outdated: "outdated"
        case .unusable: "unusable"
        }
    }
}

/// A file that is taken up when it changes.
package struct WatchedFileFigures: Sendable, Equatable {
    /// Its absolute path.
    package var path: String
    package var state: WatchedFileState

    package init(path: String, state: WatchedFileState) {
        self.path = path
        self.state = state
    }
}

/// A pinset of the configuration in force.
package struct PinsetFigures: Sendable, Equatable {
    /// Its label.
    package var label: String
    /// Its pins, each once; the last may stand for all that are not told apart.
    package var pins: [PinFigure]
    /// Whether a server that no pin matches is refused.
    package var isEnforced: Bool
    /// When its time is over, in seconds since 1970; nil: never.
    package var expires: Int64?
    /// Whether its pins are only reported once its time is over.
    package var isReportedAfter: Bool

    /// A pinset of these figures.
    package init(
        label: String, pins: [PinFigure] = [], isEnforced: Bool = true, expires: Int64? = nil,
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
package struct CacheTierFigures: Sendable, Equatable {
    /// Bytes that the entries take up.
    package var bytes: UInt64 = 0
    /// The configured limit of `bytes`.
    package var limitBytes: UInt64 = 0
    /// How many entries there are.
    package var entries: UInt64 = 0
    /// Entries removed to make room, since the start.
    package var evictions: UInt64 = 0

    /// A tier of these figures.
    package init(
        bytes: UInt64 = 0, limitBytes: UInt64 = 0, entries: UInt64 = 0, evictions: UInt64 = 0
    ) {
        self.bytes = bytes
        self.limitBytes = limitBytes
        self.entries = entries
        self.evictions = evictions
    }
}

/// The disk tier's files and what happened to them.
package struct DiskFigures: Sendable, Equatable {
    /// Bytes of the database's file.
    package var databaseBytes: UInt64 = 0
    /// Bytes of its write-ahead log's file.
    package var logBytes: UInt64 = 0
    /// Responses written, since the start.
    package var writes: UInt64 = 0
    /// Responses removed because there were too many bytes, since the start.
    package var evictedForBytes: UInt64 = 0
    /// Responses removed because there were too many of them.
    package var evictedForEntries: UInt64 = 0
    /// Responses removed because there were too many variants of one URL.
    package var evictedForVariants: UInt64 = 0
    /// Times that the database was begun anew: it was damaged, or its files were gone.
    package var restarts: UInt64 = 0

    /// Figures at zero, to be filled in.
    package init() {}
}

/// What waits for the thread that writes the disk tier.
package struct StoreQueueFigures: Sendable, Equatable {
    /// Bytes queued now.
    package var bytes: UInt64 = 0
    /// Operations queued now.
    package var operations: UInt64 = 0
    /// Responses that were not stored because the queue was full, since the start.
    package var dropped: UInt64 = 0
    /// Entries that failed their checksum and were dropped, since the start.
    package var damaged: UInt64 = 0

    /// A queue of these figures.
    package init(
        bytes: UInt64 = 0, operations: UInt64 = 0, dropped: UInt64 = 0, damaged: UInt64 = 0
    ) {
        self.bytes = bytes
        self.operations = operations
        self.dropped = dropped
        self.damaged = damaged
    }
}

/// Whether the disk tier works.
package enum DiskTierState: UInt8, Sendable, CaseIterable {
    /// Not configured.
    case off
    /// The store thread is still opening the database.
    case opening
    /// Reads and writes.
    case on
    /// Turned off after a failure: the disk is full, or the file is locked or damaged.
    case failed

    /// The label value: `off`, `opening`, `on`, `failed`.
    package var label: StaticString {
        switch self {
        case .off: "off"
        case .opening: "opening"
        case .on: "on"
        case .failed: "failed"
        }
    }
}

/// Certificates for intercepted tunnels. All but the first two count since the start.
package struct InterceptionFigures: Sendable, Equatable {
    /// Certificates kept now.
    package var kept: UInt64 = 0
    /// Names that wait for theirs now.
    package var waiting: UInt64 = 0
    /// Certificates issued.
    package var issued: UInt64 = 0
    /// Handshakes that were given a certificate that was kept.
    package var hits: UInt64 = 0
    /// Handshakes that shared the signature that another one waited for.
    package var coalesced: UInt64 = 0
    /// Handshakes that got no certificate.
    package var failures: UInt64 = 0

    /// Figures at zero, to be filled in.
    package init() {}
}

/// What became of the access log's lines, since the start.
package struct AccessLogFigures: Sendable, Equatable {
    /// Lines written.
    package var written: UInt64 = 0
    /// Lines dropped: the queue was full, or writing failed.
    package var dropped: UInt64 = 0

    /// These numbers of lines.
    package init(written: UInt64 = 0, dropped: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
    }
}

/// What became of the operational log's lines, since the start.
package struct OperationalLogFigures: Sendable, Equatable {
    /// Lines written.
    package var written: UInt64 = 0
    /// Lines dropped: the queue was full, or writing failed.
    package var dropped: UInt64 = 0
    /// Messages not written because there were too many like them; their number was written.
    package var suppressed: UInt64 = 0

    /// These numbers of lines.
    package init(written: UInt64 = 0, dropped: UInt64 = 0, suppressed: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
        self.suppressed = suppressed
    }
}

/// A state machine as metrics: one gauge per state, of which one is 1, and a counter per state
/// entered.
package struct StateFigure: Sendable, Equatable {
    /// One state: its label value, and how often it was entered.
    package struct Entry: Sendable, Equatable {
        /// The label value.
        package var label: String
        /// How often it was entered from another state.
        package var transitions: UInt64

        /// A state of this name.
        package init(label: String, transitions: UInt64) {
            self.label = label
            self.transitions = transitions
        }
    }

    /// The states, in the order in which they are listed.
    package var states: [Entry]
    /// The index of the state now.
    package var current: Int

    /// A machine in the state `current` of `states`.
    package init(states: [Entry], current: Int) {
        self.states = states
        self.current = current
    }
}

/// The reachability of a host entry's servers.
package struct ReachabilityFigures: Sendable {
    /// One state of reachability.
    package struct State: Sendable {
        /// The label value.
        package var label: StaticString
        /// Servers that are in it now.
        package var servers: UInt64
        /// How often servers have entered it from another one.
        package var transitions: UInt64

        /// A state of these figures.
        package init(label: StaticString, servers: UInt64, transitions: UInt64) {
            self.label = label
            self.servers = servers
            self.transitions = transitions
        }
    }

    /// The host entry's name.
    package var label: String
    /// All states, in the order in which they are listed.
    package var states: [State]

    /// The figures of what is named `label`.
    package init(label: String, states: [State]) {
        self.label = label
        self.states = states
    }
}

/// The operating system's figures of the process.
package struct ProcessFigures: Sendable, Equatable {
    /// User and system time, in microseconds.
    package var cpuMicroseconds: UInt64 = 0
    /// Memory in RAM, in bytes.
    package var residentBytes: UInt64 = 0
    /// Address space, in bytes.
    package var virtualBytes: UInt64 = 0
    /// Descriptors open.
    package var openDescriptors: UInt64 = 0
    /// The soft limit of descriptors; `nil` if there is none.
    package var maximumDescriptors: UInt64?
    /// When the process started, in milliseconds since 1970.
    package var startMilliseconds: UInt64 = 0

    /// Figures at zero, to be filled in.
    package init() {}
}

/// The build.
package struct BuildFigures: Sendable, Equatable {
    /// The version, as `pinfold --version` prints it.
    package var version: String
    /// The commit, or `unknown`.
    package var revision: String
    /// The compiler's version, or `unknown`.
    package var swiftVersion: String

    /// A build of these names.
    package init(version: String, revision: String = "unknown", swiftVersion: String = "unknown") {
        self.version = version
        self.revision = revision
        self.swiftVersion = swiftVersion
    }
}
