import PinfoldConfiguration
import PinfoldMetrics
import Trust

/// The files with lists that must be replaced in time: of revoked certificates, and of the logs of
/// Certificate Transparency.
struct DatedLists: Sendable, Equatable {
    /// With the end of the first list in each file.
    private(set) var revocation: [ListMetrics] = []
    /// With the time of each list.
    private(set) var logs: [ListMetrics] = []

    init() {}

    /// Those that a configuration names, each file once.
    init(of configuration: ConfigurationSnapshot) {
        for tls in [configuration.tls] + configuration.hosts.entries.map(\.tls) {
            for file in tls.crls where !revocation.contains(where: { $0.file == file.path }) {
                guard let end = file.ends.min() else { continue }
                revocation.append(ListMetrics(file: file.path, time: end))
            }
            guard let list = tls.transparency.list, let time = list.list.timestamp,
                !logs.contains(where: { $0.file == list.path })
            else { continue }
            logs.append(ListMetrics(file: list.path, time: time))
        }
    }

    /// What ends, as the calendar has it. A list of logs ends when browsers no longer rely on one
    /// of its age.
    var ends: [PinsReport.End] {
        revocation.map { PinsReport.End(time: $0.time * 1000, kind: "crl", name: $0.file) }
            + logs.map {
                PinsReport.End(
                    time: ($0.time + TransparencyLogList.currentSeconds) * 1000, kind: "logs",
                    name: $0.file)
            }
    }
}
