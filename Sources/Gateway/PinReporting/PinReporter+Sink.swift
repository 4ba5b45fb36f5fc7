import Clocks
import PinfoldEngine
import PinfoldTLS
import Trust

extension PinReporter: PinFailureSink {
    /// Puts a report together and submits it, unless the same failure was reported a while ago.
    package func pinFailed(_ failure: PinFailureEvent, shown: () -> ShownChain) {
        guard let policy = ReportPolicy(failure.entry) else { return }
        let shown = shown()
        let leaf = shown.certificates.first.flatMap {
            try? CertificateInspection(certificate: $0)
        }
        let subject = ReportSubject(
            policy: policy, host: failure.host, port: failure.port,
            leafKey: leaf?.identity.key.keyPinText ?? "", reason: failure.reason,
            isEnforced: failure.isEnforced)
        guard
            admits(
                subject, time: failure.wallSeconds, now: Clock.monotonicMilliseconds() / 1000)
        else { return }
        let pinset = failure.entry.pinset
        submit(
            PinFailureReport(
                pinset: pinset.name, host: failure.host, port: failure.port,
                notedHost: failure.pattern.map { "\($0)" } ?? failure.host,
                includesSubdomains: failure.pattern?.exactName == nil, reason: failure.reason,
                detail: failure.detail, isEnforced: failure.isEnforced, expires: pinset.expires,
                knownPins: shown.context.pinTexts(ofPinset: failure.pinsetIndex),
                served: shown.certificates,
                validated: shown.context.validatedChain(
                    of: shown.certificates, pinset: failure.pinsetIndex),
                time: failure.wallSeconds),
            for: subject)
    }
}
