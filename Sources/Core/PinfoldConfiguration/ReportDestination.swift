import HTTPCore

/// Where the gateway sends what it has to say: reports of a pinset's failures
/// (`pinsets.*.reportTo`), spans (`tracing.otlp`).
package struct ReportDestination: Sendable, Equatable, CustomStringConvertible {
    /// The maximum length of the URL in bytes.
    package static let maximumBytes = 2048

    /// The scheme, host and port.
    package var origin: UpstreamOrigin
    /// The path and query; begins with `/`.
    package var path: String

    /// Creates a destination from its parts.
    package init(origin: UpstreamOrigin, path: String) {
        self.origin = origin
        self.path = path
    }

    /// The value for a Host field: the host, in brackets if it is an IPv6 address, and the port
    /// unless it is the scheme's default.
    package var authority: String {
        let host = HostText.bracketed(origin.host)
        return origin.port == origin.scheme.defaultPort ? host : "\(host):\(origin.port)"
    }

    /// The URL.
    package var description: String { "\(origin.scheme.rawValue)://\(authority)\(path)" }
}

extension PinsetEntry {
    /// Whether both evaluate servers alike: everything but the report destination is equal.
    func evaluatesAlike(_ other: PinsetEntry) -> Bool {
        var same = other
        same.reportTo = reportTo
        return self == same
    }
}
