import HTTPCore
import PinfoldConfiguration

/// `pinsets.*.reportTo`.
extension SnapshotReader {
    /// The URL that reports are sent to.
    func reportDestination(_ field: Field) -> ReportDestination? {
        field.parsed(expected: "an http or https URL such as https://reports.example.com/pins") {
            ReportDestination(url: $0)
        }
    }

    /// Warns of a report destination without TLS.
    func warnOfReporting(_ entry: PinsetEntry, _ section: Section) {
        warnOfClearText(entry.reportTo, section["reportTo"])
    }

    /// The same for a destination, and where it is written.
    func warnOfClearText(_ destination: ReportDestination?, _ field: Field?) {
        guard let destination, let field else { return }
        if destination.origin.scheme == .http {
            field.warn(
                "sends reports in clear text: anyone on the network path can read, change or "
                    + "drop them; use https")
        }
    }

    /// Warns if the folder for undelivered reports cannot be used: they are then kept in memory.
    func warnOfReportFolder(_ cache: Field?, _ snapshot: ConfigurationSnapshot) {
        guard validation.environment.looksAtPaths,
            snapshot.pinObservation.reportTo != nil
                || snapshot.pinsets.contains(where: { $0.reportTo != nil })
        else { return }
        let folder = snapshot.cache.reportFolder
        guard let problem = PathAccess.problemMaking(folder: folder) else { return }
        validation.warn(
            cache?.key("path")?.node.origin ?? .builtIn, "cache.path",
            "\(problem): undelivered reports do not survive a restart")
    }
}

extension ReportDestination {
    /// Parses `http(s)://host[:port][/path][?query]`. The result is `nil` for anything else,
    /// including URLs with a fragment or userinfo.
    init?(url text: String) {
        let bytes = text.utf8
        // Visible ASCII without the characters that no part of a URI may contain (RFC 3986 §2).
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
