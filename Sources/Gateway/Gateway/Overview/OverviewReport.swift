import Activity
import Documents
import HTTPCore
import PinfoldMetrics

/// The activity indicator as it is shown.
struct ActivityReport: Sendable, Equatable {
    var state: ActivityState
    var count: Int
    var delays: ActivityDelays

    init(_ tracker: ActivityTracker) {
        (state, count, delays) = (tracker.state, tracker.count, tracker.delays)
    }

    static let shape = ObjectShape<ActivityReport>(
        "The activity indicator.",
        [
            .word("state", ActivityState.allCases.map { "\($0.label)" }, "Its state.") {
                "\($0.state.label)"
            },
            .flag("isVisible", "Whether it is shown.") { $0.state.isVisible },
            .number("count", "Exchanges in flight, as it last saw them.") { $0.count },
            .number(
                "activationDelayMilliseconds", "How long there is activity before it is shown."
            ) { Int($0.delays.activationMilliseconds) },
            .number("completionDelayMilliseconds", "How long there is none before it is hidden.") {
                Int($0.delays.completionMilliseconds)
            },
        ])
}

extension TrafficHistory.Sample {
    static let shape = ObjectShape<TrafficHistory.Sample>(
        "What happened in some seconds.",
        [
            .time("time", "When they ended.") { $0.time },
            .number("milliseconds", "How long they were.") { Int($0.milliseconds) },
            .number("requests", "Exchanges that ended.") { Int(clamping: $0.exchanges) },
            .number("failed", "Those of them that were refused, failed or cut off.") {
                Int(clamping: $0.failures)
            },
            .number("hits", "Those of them that the cache answered.") { Int(clamping: $0.hits) },
            .number("lookups", "Those for which it was asked.") { Int(clamping: $0.lookups) },
            .optionalNumber("p50_us", "Microseconds that half of the requests did not exceed.") {
                $0.median.map { Int(clamping: $0) }
            },
            .optionalNumber("p99_us", "Microseconds that 99 % of the requests did not exceed.") {
                $0.p99.map { Int(clamping: $0) }
            },
            .number("inFlight", "Exchanges in flight at the end.") { $0.inFlight },
            .number("tunnels", "Those of them that were tunnels.") { $0.tunnels },
            .number("receivedBytes", "Bytes from clients.") { Int(clamping: $0.received) },
            .number("sentBytes", "Bytes to clients.") { Int(clamping: $0.sent) },
            .number("busyPercent", "How busy the workers were, on average.") { $0.busyPercent },
        ])

    var busyPercent: Int { busy.isEmpty ? 0 : busy.reduce(0, +) / busy.count }
}

/// What changes all the time: the latest sample, and what is in progress.
struct OverviewPulse: Sendable {
    /// `nil` in the first seconds.
    var sample: TrafficHistory.Sample?
    var load: OverviewReport.Load
    var activity: ActivityReport

    static let shape = ObjectShape<OverviewPulse>(
        "The latest sample, and what is in progress.",
        [
            .optionalObject("sample", TrafficHistory.Sample.shape) { $0.sample },
            .object("load", OverviewReport.Load.shape) { $0.load },
            .list("workers", OverviewReport.Worker.shape, "The workers.") { $0.load.workers },
            .object("activity", ActivityReport.shape) { $0.activity },
        ])
}

/// The gateway at a glance.
struct OverviewReport: Sendable {
    /// What is in progress, beside its limits.
    struct Load: Sendable {
        var requests = 0
        var connections = 0
        var connectionsLimit = 0
        var tunnels = 0
        var upstreamConnections = 0
        var upstreamConnectionsLimit = 0
        var waiting = 0
        var workers: [Worker] = []
    }

    struct Worker: Sendable {
        var index: Int
        /// In hundredths; `nil` in the first seconds.
        var busyPercent: Int?
        var longestMicroseconds: Int64
    }

    var status: StatusReport
    var hostName: String
    var samples: [TrafficHistory.Sample]
    var load: Load
    var activity: ActivityReport
    var attention: [Attention]
    /// This gateway's name in its fleet; `nil` if its cache is not shared.
    var fleet: String?

    static let shape = ObjectShape<OverviewReport>(
        "The gateway at a glance.",
        [
            .text("name", "The machine's name.") { $0.hostName },
            .optionalText(
                "fleet", "Its name among the gateways that share its cache; absent without any."
            ) { $0.fleet },
            .text("version", "The version of the program.") { $0.status.version },
            .text("revision", "The commit that it was built from.") { $0.status.revision },
            .word("readiness", ["ready", "starting", "draining"], "Whether new work is accepted.") {
                "\($0.status.readiness.label)"
            },
            .text("explanation", "The state in words.") { $0.status.readiness.explanation },
            .time("started", "When the process started.") { $0.status.started },
            .time("now", "The time of the report.") { $0.status.now },
            .number("generation", "The number of the configuration: each reload adds one.") {
                $0.status.configuration.generation
            },
            .time("loaded", "When it was loaded.") { $0.status.configuration.loaded },
            .optionalText("lastError", "Why the latest reload was refused.") {
                $0.status.lastReload?.errors.first?.text
            },
            .number("interval", "Seconds from one sample to the next.") { _ in
                Int(TrafficHistory.intervalMilliseconds / 1000)
            },
            .list(
                "samples", TrafficHistory.Sample.shape,
                "The last five minutes, the oldest sample first."
            ) { $0.samples },
            .object("load", Load.shape) { $0.load },
            .list("workers", Worker.shape, "The workers.") { $0.load.workers },
            .object("activity", ActivityReport.shape) { $0.activity },
            .list("attention", Attention.shape, "What needs attention, the worst first.") {
                $0.attention
            },
        ])
}

extension OverviewReport.Load {
    static let shape = ObjectShape<OverviewReport.Load>(
        "What is in progress.",
        [
            .number("requests", "Exchanges in flight, tunnels among them.") { $0.requests },
            .number("connections", "Connections of clients.") { $0.connections },
            .number("connectionsLimit", "Their limit (limits.connections).") {
                $0.connectionsLimit
            },
            .number("tunnels", "Tunnels.") { $0.tunnels },
            .number("upstreamConnections", "Connections to servers, without those of tunnels.") {
                $0.upstreamConnections
            },
            .number("upstreamConnectionsLimit", "Their limit (limits.connections).") {
                $0.upstreamConnectionsLimit
            },
            .number("waiting", "Exchanges that wait for a connection to a server.") {
                $0.waiting
            },
        ])
}

extension OverviewReport.Worker {
    static let shape = ObjectShape<OverviewReport.Worker>(
        "A worker.",
        [
            .number("index", "Its number, from 0.") { $0.index },
            .optionalNumber("busyPercent", "How busy it was in the latest sample.") {
                $0.busyPercent
            },
            .number(
                "longestTurn_us", "Microseconds for which it lately did not look for new events."
            ) { Int(clamping: $0.longestMicroseconds) },
        ])
}
