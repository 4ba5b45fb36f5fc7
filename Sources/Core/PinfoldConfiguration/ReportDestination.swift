import HTTPCore

/// Where the reports of a pinset's failures are sent (`pinsets.*.reportTo`).
package struct ReportDestination: Sendable, Equatable, CustomStringConvertible {
    /// Bytes in the longest URL.
    package static let maximumBytes = 2048

    /// The scheme, host and port.
    package var origin: UpstreamOrigin
    /// The path and query; begins with `/`.
    package var path: String

    /// A destination by its parts.
    package init(origin: UpstreamOrigin, path: String) {
        self.origin = origin
        self.path = path
    }

    /// The host, in brackets where it is an IPv6 address, and the port unless the scheme implies
    /// it: the value of a Host field.
    package var authority: String {
        let host = HostText.bracketed(origin.host)
        return origin.port == origin.scheme.defaultPort ? host : "\(host):\(origin.port)"
    }

    /// The URL.
    package var description: String { "\(origin.scheme.rawValue)://\(authority)\(path)" }
}

extension PinsetEntry {
    /// Whether servers are judged by both alike: all but where failures are reported to.
    func judgesAlike(_ other: PinsetEntry) -> Bool {
        var same = other
        same.reportTo = reportTo
        return self == same
    }
}
