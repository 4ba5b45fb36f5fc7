import HTTPCore
import PinfoldConfiguration

/// `pinsets.*.reportTo`.
extension SnapshotReader {
    /// The URL that reports are sent to.
    func reportDestination(_ field: Field) -> ReportDestination? {
        field.parsed(expected: "an http or https URL, https://reports.example.com/pins") {
            ReportDestination(url: $0)
        }
    }

    /// What is valid about reporting and yet not what is meant.
    func warnOfReporting(_ entry: PinsetEntry, _ section: Section) {
        guard let destination = entry.reportTo, let field = section["reportTo"] else { return }
        if destination.origin.scheme == .http {
            field.warn(
                "sends reports in clear text: whoever is on the way can read, change and drop "
                    + "them; use https")
        }
    }

    /// Reports wait on disk until they are delivered; without their folder they wait in memory.
    func warnOfReportFolder(_ cache: Field?, _ snapshot: ConfigurationSnapshot) {
        guard validation.environment.looksAtPaths,
            snapshot.pinsets.contains(where: { $0.reportTo != nil })
        else { return }
        let folder = snapshot.cache.reportFolder
        guard let problem = PathAccess.problemMaking(folder: folder) else { return }
        validation.warn(
            cache?.key("path")?.node.origin ?? .builtIn, "cache.path",
            "\(quoted(folder)) \(problem): reports that are not delivered do not survive a restart")
    }
}

extension ReportDestination {
    /// Reads `http(s)://host[:port][/path][?query]`; nil for anything else, a fragment or userinfo
    /// included.
    init?(url text: String) {
        let bytes = text.utf8
        // Visible ASCII without what no part of a URI has (RFC 3986 §2).
        let isURI = bytes.allSatisfy { byte in
            (0x21...0x7E).contains(byte) && !"\"<>\\^`{|}#".utf8.contains(byte)
        }
        guard isURI, bytes.count <= Self.maximumBytes,
            let scheme = text.firstRange(of: "://")
        else { return nil }
        let rest = text[scheme.upperBound...]
        let end = rest.firstIndex { "/?".contains($0) } ?? rest.endIndex
        guard let origin = UpstreamOrigin(url: String(text[..<end])) else { return nil }
        var path = String(rest[end...])
        if !path.hasPrefix("/") { path = "/" + path }
        self.init(origin: origin, path: path)
    }
}
