import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// `tls.certificateTransparency`.
extension CertificateTransparency {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .integer("minimumSCTs", \.minimumSCTs, in: 0...10),
            // Read after the number, because the list must have enough logs.
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
                "requires a list of logs",
                expected: "logs with a log list file (log_list.json, version 3)")
        }
        if let problem = list.shortage(of: value.minimumSCTs, at: now) {
            (section["minimumSCTs"] ?? field ?? section.field).fail(
                problem, expected: TransparencyLogList.expectedMinimum)
        }
    }

    /// The list of a file, which is read only once, even if several entries name it.
    private func logList(_ field: Field, _ path: String) -> TransparencyLogList? {
        let read: Result<TransparencyLogList, LogListError>
        if let known = validation.logLists[path] {
            read = known
        } else {
            guard let contents = field.contents(ofFile: path) else { return nil }
            read = Result { () throws(LogListError) in
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

extension LogListError {
    /// What is wrong, for a line about a file.
    func text(ofFile path: String) -> String {
        let position = location.isEmpty ? "" : " at \(quoted(location))"
        return "\(quoted(path: path)) is not a list of logs\(position): \(text)"
    }
}

extension TransparencyLogList {
    /// The age in seconds above which a list causes a warning: 70 days, after which browsers stop
    /// relying on theirs.
    static let currentSeconds: Int64 = 70 * 86_400
    /// The expected value of `minimumSCTs`, for errors.
    static let expectedMinimum = "a number that servers can meet"

    /// The list that a file's content is.
    init(file contents: [UInt8]) throws(LogListError) {
        try self.init(
            json: contents, digest: { SHA256Digest(hashing: $0.span) },
            isKnownKey: TransparencyKey.isKnown)
    }

    /// Whether it is older than another list. A list without a timestamp is not.
    func isOlder(than other: TransparencyLogList) -> Bool {
        guard let timestamp, let theirs = other.timestamp else { return false }
        return timestamp < theirs
    }

    /// Why the list does not have enough logs for a number of timestamps, or `nil` if it does.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    func shortage(of minimum: Int, at now: Int64) -> String? {
        guard minimum > 0 else { return nil }
        let sufficient = logs.count { $0.suffices(at: now) }
        guard sufficient < minimum else { return nil }
        return "\(minimum) exceeds the number of usable logs in the list, \(sufficient) "
            + "(retired logs, and logs whose certificates have all expired, do not count)"
    }

    /// Warnings about the list.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    func warnings(at now: Int64) -> [String] {
        var warnings: [String] = []
        let unknown = logs.filter { !$0.hasKnownKey && $0.state?.mayCount ?? false }
        if let first = unknown.first {
            let others = unknown.count > 1 ? " and \(unknown.count - 1) more do" : " does"
            warnings.append(
                "\(first.name)\(others) not count: the key of a log must be P-256, or RSA with at "
                    + "least 2048 bits")
        }
        guard let timestamp else {
            warnings.append(
                "the list has no log_list_timestamp, so its age is unknown")
            return warnings
        }
        let age = now - timestamp
        if age > Self.currentSeconds {
            warnings.append(
                "the list is \(age / 86_400) days old ("
                    + "\(CivilDate.text(secondsSince1970: timestamp))): certificates with "
                    + "timestamps from newer logs are refused, and logs that have failed since "
                    + "then are still trusted; download a current list")
        }
        return warnings
    }
}
