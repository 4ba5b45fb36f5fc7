import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

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
    fileprivate func readLogs(_ section: Section, _ value: inout CertificateTransparency) {
        let field = section["logs"]
        let now = validation.environment.now
        if let field {
            guard let path = field.filePath(), let list = logList(field, path) else { return }
            value.list = LogListFile(path: path, list: list)
            for text in list.warnings(at: now) { field.warn(text) }
        }
        guard value.minimumSCTs > 0 else { return }
        guard let list = value.list?.list else {
            return section.field.fail(
                "names no logs", expected: "logs: a list of logs, as log_list.json of version 3")
        }
        if let problem = list.shortage(of: value.minimumSCTs, at: now) {
            (section["minimumSCTs"] ?? field ?? section.field).fail(
                problem, expected: TransparencyLogList.expectedMinimum)
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
                try TransparencyLogList(file: contents)
            }
            validation.logLists[path] = read
        }
        switch read {
        case .success(let list): return list
        case .failure(let problem):
            field.fail(problem.text(ofFile: path), expected: "")
            return nil
        }
    }
}

extension LogListProblem {
    /// What is wrong, for a line about a file.
    func text(ofFile path: String) -> String {
        let place = place.isEmpty ? "" : " at \(quoted(place))"
        return "\(quoted(path)) is no list of logs\(place): \(text)"
    }
}

extension TransparencyLogList {
    /// Seconds after which a list of logs is warned of: 70 days, as browsers stop going by theirs.
    private static let isCurrent: Int64 = 70 * 86_400
    /// What `minimumSCTs` is to be.
    static let expectedMinimum = "what a server can show"

    /// The list that a file's content is.
    init(file contents: [UInt8]) throws(LogListProblem) {
        try self.init(
            json: contents, digest: { SHA256Digest(hashing: $0.span) },
            isKnownKey: TransparencyKey.isKnown)
    }

    /// Whether it was made before another one, as far as both say when.
    func isOlder(than other: TransparencyLogList) -> Bool {
        guard let timestamp, let theirs = other.timestamp else { return false }
        return timestamp < theirs
    }

    /// What is wrong where so many timestamps are asked for; nil: there are logs enough.
    ///
    /// - Parameter now: seconds since 1970.
    func shortage(of minimum: Int, at now: Int64) -> String? {
        guard minimum > 0 else { return nil }
        let sufficient = logs.count { $0.suffices(at: now) }
        guard sufficient < minimum else { return nil }
        return "\(minimum) is more than the list has logs whose timestamps count, "
            + "retired ones and those of certificates that have all expired not among "
            + "them: \(sufficient)"
    }

    /// What is probably not meant.
    ///
    /// - Parameter now: seconds since 1970.
    func warnings(at now: Int64) -> [String] {
        var warnings: [String] = []
        let unknown = logs.filter { !$0.hasKnownKey && $0.state?.mayCount ?? false }
        if let first = unknown.first {
            let others = unknown.count > 1 ? " and \(unknown.count - 1) more do" : " does"
            warnings.append(
                "\(first.name)\(others) not count: the key of a log is one of P-256, or of RSA "
                    + "with 2048 bits or more")
        }
        guard let timestamp else {
            warnings.append(
                "the list does not say when it was made (log_list_timestamp), so nobody can tell "
                    + "whether it is current")
            return warnings
        }
        let age = now - timestamp
        if age > Self.isCurrent {
            warnings.append(
                "the list is \(age / 86_400) days old, of "
                    + "\(CivilDate.text(secondsSince1970: timestamp)): certificates with "
                    + "timestamps of newer logs are refused, and logs that have failed since are "
                    + "trusted; get a current one")
        }
        return warnings
    }
}
