import Configuration
import Notation
import Pinning
import TLS

/// `tls.certificateTransparency`.
extension CertificateTransparency {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .integer("minimumSCTs", \.minimumSCTs, in: 0...10),
            // Read after the number, which it must be enough for.
            ConfigurationKey(
                "logs", byDefault: "none",
                readSection: { reader, section, value in
                    guard let section else { return }
                    reader.readLogs(section, &value)
                },
                text: { $0.list.map { YAMLText.quoted($0.path) } }),
        ])
    }
}

extension SnapshotReader {
    /// Seconds after which a list of logs is warned of: 70 days, as browsers stop going by theirs.
    private static let listIsCurrent: Int64 = 70 * 86_400

    fileprivate func readLogs(_ section: Section, _ value: inout CertificateTransparency) {
        let field = section["logs"]
        if let field {
            guard let path = field.filePath(), let list = logList(field, path) else { return }
            value.list = LogListFile(path: path, list: list)
            warn(of: list, field)
        }
        guard value.minimumSCTs > 0 else { return }
        guard let list = value.list?.list else {
            return section.field.fail(
                "names no logs", expected: "logs: a list of logs, as log_list.json of version 3")
        }
        let now = validation.environment.now
        let sufficient = list.logs.count { $0.suffices(at: now) }
        guard sufficient >= value.minimumSCTs else {
            return (section["minimumSCTs"] ?? field ?? section.field).fail(
                "\(value.minimumSCTs) is more than the list has logs whose timestamps count, "
                    + "retired ones and those of certificates that have all expired not among "
                    + "them: \(sufficient)", expected: "what a server can show")
        }
    }

    /// The list of a file, which is read once however many entries name it.
    private func logList(_ field: Field, _ path: String) -> TransparencyLogList? {
        let read: Result<TransparencyLogList, LogListProblem>
        if let known = validation.logLists[path] {
            read = known
        } else {
            guard let contents = field.contents(ofFile: path) else { return nil }
            read = Result { () throws(LogListProblem) in
                try TransparencyLogList(
                    json: contents, digest: { SHA256Digest(hashing: $0.span) },
                    isKnownKey: TransparencyKey.isKnown)
            }
            validation.logLists[path] = read
        }
        switch read {
        case .success(let list): return list
        case .failure(let problem):
            let place = problem.place.isEmpty ? "" : " at \(quoted(problem.place))"
            field.fail("\(quoted(path)) is no list of logs\(place): \(problem.text)", expected: "")
            return nil
        }
    }

    private func warn(of list: TransparencyLogList, _ field: Field) {
        let unknown = list.logs.filter { !$0.hasKnownKey && $0.state?.mayCount ?? false }
        if let first = unknown.first {
            let others = unknown.count > 1 ? " and \(unknown.count - 1) more do" : " does"
            field.warn(
                "\(first.name)\(others) not count: the key of a log is one of P-256, or of RSA "
                    + "with 2048 bits or more")
        }
        guard let timestamp = list.timestamp else {
            return field.warn(
                "the list does not say when it was made (log_list_timestamp), so nobody can tell "
                    + "whether it is current")
        }
        let age = validation.environment.now - timestamp
        if age > Self.listIsCurrent {
            field.warn(
                "the list is \(age / 86_400) days old, of "
                    + "\(CivilDate.text(secondsSince1970: timestamp)): certificates with "
                    + "timestamps of newer logs are refused, and logs that have failed since are "
                    + "trusted; get a current one")
        }
    }
}
