import HTTPCore
import PinfoldEngine

/// The state of the gateway at one moment.
package struct StatusReport: Sendable {
    /// A listening address.
    package struct Listener: Sendable {
        package var name: String
        /// The address that it listens on: `address:port`, or `unix:` and a path.
        package var address: String
        /// `forward`, `reverse` or `admin`.
        package var kind: String
        /// Whether its clients speak TLS.
        package var isSecure: Bool
        /// Whether it accepts connections, on every worker that it has.
        package var isAccepting: Bool
    }

    /// One of several servers of a reverse listener.
    package struct Server: Sendable {
        /// The listener's name.
        package var listener: String
        package var url: String
        /// `up`, `down`, `ejected` or `draining`.
        package var state: String
        package var isBackup: Bool
        package var weight: Int
        /// Requests under way.
        package var requests: Int
        /// Why it was last found not to work; `nil` if it is up.
        package var cause: String?
    }

    /// The configuration in force.
    package struct Configuration: Sendable {
        /// Its file; `nil` for the built-in defaults.
        package var file: String?
        /// Its number: each reload adds one.
        package var generation: Int
        /// When it was loaded, in milliseconds since 1970.
        package var loaded: Int64
        package var warnings: [ConfigurationFinding]
        package var hosts: Int
        package var pinsets: Int
        /// The watched files that cannot be used; what was in force before stays.
        package var unusableFiles: [String]
        /// The sections that are not in force before a restart.
        package var needRestart: [String] = []
    }

    /// The latest reload.
    package struct Reload: Sendable {
        /// When it ended, in milliseconds since 1970.
        package var time: Int64
        /// Why the configuration was refused; empty if it was applied.
        package var errors: [ConfigurationFinding]
    }

    /// A tier of the cache.
    package struct Tier: Sendable {
        /// `off`, `opening`, `on` or `failed`.
        package var state: String
        /// The directory; `nil` for memory.
        package var path: String?
        package var bytes: Int
        package var limitBytes: Int
        package var entries: Int
    }

    /// The level of the cache that is shared with other gateways.
    package struct SharedCache: Sendable {
        /// `off`, `opening` or `on`.
        package var state: String
        /// Where the engine is.
        package var engine: String
        /// Why it is off, as a token and in words; `nil` unless it is.
        package var reason: String?
        package var detail: String?
        /// What this gateway is called in the fleet.
        package var name: String
        /// How many gateways there are, this one included; 0 if that is not known.
        package var members: Int
    }

    /// What is in progress.
    package struct Load: Sendable {
        /// Connections of clients.
        package var connections: Int
        package var requests: Int
        package var tunnels: Int
        /// Connections to servers, without those of tunnels.
        package var serverConnections: Int
    }

    /// The end that has begun.
    package struct Draining: Sendable {
        /// When it began, in milliseconds since 1970.
        package var since: Int64
        /// When listeners close or have closed (`timeouts.drainDelay`), likewise.
        package var closesListeners: Int64
        /// When what is still in progress is cut off (`timeouts.grace`), likewise.
        package var ends: Int64
    }

    package var readiness: ServiceReadiness
    package var version: String
    package var revision: String
    package var pid: Int
    /// When the process started, in milliseconds since 1970.
    package var started: Int64
    /// The time of the report, likewise.
    package var now: Int64
    package var workers: Int
    package var configuration: Configuration
    /// `nil` if none is configured.
    package var policy: PolicyReport?
    /// `nil` if there was none.
    package var lastReload: Reload?
    package var listeners: [Listener]
    /// The servers of reverse listeners that have several.
    package var servers: [Server] = []
    package var load: Load
    package var memory: Tier
    package var disk: Tier
    /// `nil` if none is configured.
    package var shared: SharedCache?
    /// `nil` unless the gateway is shutting down.
    package var draining: Draining?
}

extension StatusReport {
    /// Its shape.
    package static let shape = ObjectShape<StatusReport>(
        "The state of the gateway at one moment.",
        [
            .word("state", ["ready", "starting", "draining"], "Whether new work is accepted.") {
                "\($0.readiness.label)"
            },
            .text("explanation", "The state in words.") { $0.readiness.explanation },
            .text("version", "The version of the program.") { $0.version },
            .text("revision", "The commit that it was built from.") { $0.revision },
            .number("pid", "The number of its process.") { $0.pid },
            .time("started", "When the process started.") { $0.started },
            .number("uptimeSeconds", "How long it has been running.") {
                Int(($0.now - $0.started) / 1000)
            },
            .number("workers", "Its threads that serve clients.") { $0.workers },
            .object("configuration", configuration) { $0.configuration },
            .optionalObject("policy", PolicyReport.shape) { $0.policy },
            .optionalObject("lastReload", reload) { $0.lastReload },
            .list("listeners", listener, "Its addresses, the administrative one last.") {
                $0.listeners
            },
            .list(
                "servers", server, "The servers of reverse listeners that have several."
            ) { $0.servers },
            .object("load", load) { $0.load },
            .object("cache", cache) { $0 },
            .optionalObject("draining", draining) { report in
                report.draining.map { ($0, report.load) }
            },
        ])

    private static let configuration = ObjectShape<Configuration>(
        "The configuration in force.",
        [
            .optionalText("file", "Its file; absent for the built-in defaults.") { $0.file },
            .number("generation", "Its number: each reload adds one.") { $0.generation },
            .time("loaded", "When it was loaded.") { $0.loaded },
            .number("hosts", "The entries of `hosts`.") { $0.hosts },
            .number("pinsets", "The entries of `pinsets`.") { $0.pinsets },
            .list("warnings", ConfigurationFinding.shape, "The warnings about it.") {
                $0.warnings
            },
            .texts(
                "unusableFiles",
                "Files that have changed and cannot be used: their old content stays in use."
            ) { $0.unusableFiles },
            .texts("needRestart", "Sections of it that are not in force before a restart.") {
                $0.needRestart
            },
        ])

    static let reload = ObjectShape<Reload>(
        "The latest reload; absent if there was none.",
        [
            .time("time", "When it ended.") { $0.time },
            .word("result", ["applied", "refused"], "What came of it.") {
                $0.errors.isEmpty ? "applied" : "refused"
            },
            .optionalList("errors", ConfigurationFinding.shape, "Why it was refused.") {
                $0.errors
            },
        ])

    private static let listener = ObjectShape<Listener>(
        "A listening address.",
        [
            .text("name", "Its name.") { $0.name },
            .text("address", "The address and port, or `unix:` and a path.") { $0.address },
            .word(
                "kind", ["forward", "reverse", "socks5", "transparent", "admin"], "What it is for."
            ) { $0.kind },
            .flag("tls", "Whether its clients speak TLS.") { $0.isSecure },
            .flag("accepting", "Whether it accepts connections.") { $0.isAccepting },
        ])

    private static let server = ObjectShape<Server>(
        "One of several servers of a reverse listener.",
        [
            .text("listener", "The listener's name.") { $0.listener },
            .text("url", "Its URL.") { $0.url },
            .word(
                "state", ServerState.Standing.allCases.map(\.rawValue),
                "Whether it is asked: up; down by its checks; ejected for a while, because it "
                    + "failed requests; or draining, with a weight of 0."
            ) { $0.state },
            .flag("backup", "Whether it is asked only while none of the others can be.") {
                $0.isBackup
            },
            .number("weight", "Its share of the requests, in proportion.") { $0.weight },
            .number("requests", "Requests that are under way there.") { $0.requests },
            .optionalText("cause", "Why it was last found not to work; absent while it is up.") {
                $0.cause
            },
        ])

    private static let load = ObjectShape<Load>(
        "What is in progress, without requests to the administrative address.",
        [
            .number("connections", "Connections of clients.") { $0.connections },
            .number("requests", "Requests, including those that opened tunnels.") { $0.requests },
            .number("tunnels", "Tunnels.") { $0.tunnels },
            .number(
                "serverConnections",
                "Connections to servers, idle ones included, without those of tunnels."
            ) { $0.serverConnections },
        ])

    private static let tier = ObjectShape<Tier>(
        "A tier of the cache.",
        [
            .word(
                "state", ["off", "opening", "on", "handed-over", "failed"], "Whether it is in use."
            ) { $0.state },
            .optionalText("path", "The directory of its database.") { $0.path },
            .number("bytes", "The bytes in use.") { $0.bytes },
            .number("limitBytes", "The bytes that it may use.") { $0.limitBytes },
            .number("entries", "Stored responses.") { $0.entries },
        ])

    private static let cache = ObjectShape<StatusReport>(
        "The cache.",
        [
            .object("memory", tier) { $0.memory }, .object("disk", tier) { $0.disk },
            .optionalObject("shared", shared) { $0.shared },
        ])

    private static let shared = ObjectShape<SharedCache>(
        "The level that is shared with other gateways; absent without cache.shared.",
        [
            .word("state", ["off", "opening", "on"], "Whether it is in use.") { $0.state },
            .text("engine", "Where the engine is.") { $0.engine },
            .optionalText("reason", "Why it is off; absent unless it is.") { $0.reason },
            .optionalText("detail", "The same in words.") { $0.detail },
            .text("name", "What this gateway is called in the fleet.") { $0.name },
            .number(
                "members",
                "Gateways that share it and were there lately, this one included; 0 if that is not "
                    + "known."
            ) { $0.members },
        ])

    private static let draining = ObjectShape<(Draining, Load)>(
        "The end that has begun; absent otherwise.",
        [
            .time("since", "When it began.") { $0.0.since },
            .time("closesListeners", "When the listeners close, or have closed.") {
                $0.0.closesListeners
            },
            .time("ends", "When what is still in progress is cut off.") { $0.0.ends },
            .object("waitsFor", load) { $0.1 },
        ])
}

extension AdminResource {
    /// `GET /api/v1/status`
    static func status(_ report: @escaping @Sendable () -> StatusReport) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/status", caller: .operator, name: "status",
            summary: "the state of the gateway",
            responses: [
                Response(
                    status: 200, description: "The state.", schema: StatusReport.shape.schema)
            ],
            answer: { _ in .json(report(), as: StatusReport.shape) })
    }
}
