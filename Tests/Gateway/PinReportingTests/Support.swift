import PinReporting
import PinfoldConfiguration
import Trust

/// A report with all fields set, except those that a test changes.
func report(
    pinset: String = "payments", host: String = "api.example.com", expires: Int64? = nil,
    served: [[UInt8]] = [[1, 2, 3]], validated: [[UInt8]] = [], detail: String = "no pin matches",
    knownPins: [String] = ["sha256/AAAA="], time: Int64 = 1_780_000_000
) -> PinFailureReport {
    PinFailureReport(
        pinset: pinset, host: host, port: 443, notedHost: "*.example.com",
        includesSubdomains: true, reason: "no-pin-matches", detail: detail, isEnforced: true,
        expires: expires, knownPins: knownPins, served: served, validated: validated, time: time)
}

func subject(
    pinset: String = "payments", host: String = "api.example.com", port: UInt16 = 443,
    leafKey: String = "sha256/leaf", reason: String = "no-pin-matches", isEnforced: Bool = true,
    expires: Int64? = nil, path: String = "/"
) -> ReportSubject {
    ReportSubject(
        policy: policy(pinset, expires: expires, path: path), host: host, port: port,
        leafKey: leafKey, reason: reason, isEnforced: isEnforced)
}

/// A pinset that reports to a path, or to a port of this machine.
func policy(
    _ pinset: String, expires: Int64? = nil, path: String = "/", port: UInt16? = nil
) -> ReportPolicy {
    var made = Pinset(name: pinset)
    made.expires = expires
    let origin =
        port.map { UpstreamOrigin(scheme: .http, host: "127.0.0.1", port: $0) }
        ?? UpstreamOrigin(scheme: .https, host: "reports.example.com", port: 443)
    return ReportPolicy(
        pinset: made, destination: ReportDestination(origin: origin, path: path))
}
