import Clocks
import PinReporting
import Pinning
import TLS

// Failures of pinsets that report somewhere (`pinsets.*.reportTo`).
extension Environment {
    /// Has a pinset's failure reported, if it reports and this one was not reported a while ago.
    ///
    /// - Parameters:
    ///   - isEnforced: the server was refused; false: it passed all the same.
    ///   - shown: what it has shown; asked for only if there is a report.
    func reportPinFailure(
        _ failure: TrustFailure, _ server: JudgedServer, isEnforced: Bool,
        _ shown: () -> ShownChain
    ) {
        guard let reporter = shared.pinReporter, let entry = server.pinset(of: failure),
            let policy = ReportPolicy(entry)
        else { return }
        let shown = shown()
        let leaf = shown.certificates.first.flatMap {
            try? CertificateInspection(certificate: $0)
        }
        let reason = Reason(failure).token
        let subject = ReportSubject(
            policy: policy, host: server.host, port: server.port,
            leafKey: leaf?.identity.key.keyPinText ?? "", reason: reason, isEnforced: isEnforced)
        guard
            reporter.admits(subject, time: wallSeconds, now: Clock.monotonicMilliseconds() / 1000),
            let index = failure.pinsetIndex
        else { return }
        let pattern = server.matchedPattern
        reporter.submit(
            PinFailureReport(
                pinset: entry.pinset.name, host: server.host, port: server.port,
                notedHost: pattern.map { "\($0)" } ?? server.host,
                includesSubdomains: pattern?.exactName == nil, reason: reason,
                detail: "\(failure)", isEnforced: isEnforced, expires: entry.pinset.expires,
                knownPins: shown.context.pinTexts(ofPinset: index), served: shown.certificates,
                validated: shown.context.validatedChain(of: shown.certificates, pinset: index),
                time: wallSeconds),
            for: subject)
    }
}
