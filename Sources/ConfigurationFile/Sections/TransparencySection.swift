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
            guard let path = field.filePath(), let contents = field.contents(ofFile: path) else {
                return
            }
            do throws(LogListProblem) {
                let list = try TransparencyLogList(
                    json: contents, keyDigest: TransparencyKey.digest)
                value.list = LogListFile(path: path, list: list)
            } catch {
                let place = error.place.isEmpty ? "" : " at \(quoted(error.place))"
                return field.fail(
                    "\(quoted(path)) is no list of logs\(place): \(error.text)", expected: "")
            }
        }
        guard value.minimumSCTs > 0 else { return }
        guard let list = value.list?.list else {
            return section.field.fail(
                "names no logs", expected: "logs: a list of logs, as log_list.json of version 3")
        }
        let counting = list.logs.count { $0.mayCount }
        guard counting >= value.minimumSCTs else {
            return (section["minimumSCTs"] ?? field ?? section.field).fail(
                "\(value.minimumSCTs) is more than the list has logs whose timestamps count, "
                    + "\(counting)", expected: "what a server can show")
        }
        guard let field else { return }
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
