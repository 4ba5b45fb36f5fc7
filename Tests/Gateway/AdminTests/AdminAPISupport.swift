import Documents
import HTTPCore
import JSONSchema
import PinfoldMetrics

@testable import Gateway

extension AdminSource {
    /// A source whose API reports a gateway at rest, and ends every reload at once.
    init(
        metrics: @escaping @Sendable () -> MetricsSnapshot = {
            MetricsSnapshot(workers: [], service: ServiceMetrics())
        },
        readiness: @escaping @Sendable () -> ServiceReadiness = { .ready },
        outcome: ReloadOutcome = .draining
    ) {
        self.init(
            metrics: metrics, readiness: readiness, status: { .atRest }, reload: { $0(outcome) },
            upgrade: { $0(.failed("no program")) })
    }
}

extension StatusReport {
    /// A gateway that has just started and has nothing to do.
    static let atRest = StatusReport(
        readiness: .ready, version: "1.2.3", revision: "abc", pid: 7, started: 1_000_000,
        now: 1_002_500, workers: 2,
        configuration: Configuration(
            file: nil, generation: 1, loaded: 1_000_500, warnings: [], hosts: 0, pinsets: 0,
            unusableFiles: []),
        lastReload: nil, listeners: [],
        load: Load(connections: 0, requests: 0, tunnels: 0, serverConnections: 0),
        memory: Tier(state: "on", path: nil, bytes: 0, limitBytes: 1, entries: 0),
        disk: Tier(state: "off", path: nil, bytes: 0, limitBytes: 0, entries: 0), draining: nil)

    /// One that has everything that a report may have.
    static var busy: StatusReport {
        var report = atRest
        report.readiness = .draining
        report.configuration.file = "/etc/pinfold/\"odd\".yaml"
        report.configuration.warnings = [.sample]
        report.configuration.unusableFiles = ["/etc/pinfold/crl.pem"]
        report.lastReload = Reload(time: 1_001_000, errors: [.sample, ConfigurationFinding("x")])
        report.listeners = ["forward", "reverse", "admin"].map {
            Listener(
                name: $0, address: "127.0.0.1:1", kind: $0, isSecure: true, isAccepting: false)
        }
        report.load = Load(connections: 3, requests: 2, tunnels: 1, serverConnections: 4)
        report.disk = Tier(state: "on", path: "/cache", bytes: 5, limitBytes: 9, entries: 1)
        report.draining = Draining(since: 1_002_000, closesListeners: 1_002_100, ends: 1_032_100)
        return report
    }
}

extension ConfigurationFinding {
    static let sample = ConfigurationFinding(
        ConfigurationError(
            origin: .file(name: "a.yaml", line: 3), key: "hosts[0].match", problem: "is wrong",
            expected: "a pattern"))
}

extension DocumentValue {
    /// The schema, in which every object may have only the members that it declares.
    var strict: DocumentValue {
        switch self {
        case .array(let values): return .array(values.map(\.strict))
        case .dictionary(let dictionary):
            var strict = DocumentDictionary()
            for member in dictionary.members { strict[member.key] = member.value.strict }
            if strict["properties"] != nil { strict["additionalProperties"] = .boolean(false) }
            return .dictionary(strict)
        default: return self
        }
    }
}

/// Why a JSON text does not conform to a schema; `nil` if it does.
func complaint(about text: [UInt8], by schema: DocumentValue) throws -> String? {
    let compiled = try JSONSchema(Array(schema.strict.description.utf8))
    do {
        try text.withUnsafeBytes { try compiled.check($0) }
        return nil
    } catch {
        return "\(error)"
    }
}
