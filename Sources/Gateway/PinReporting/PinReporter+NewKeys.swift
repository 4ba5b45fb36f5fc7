import Clocks
import HTTPCore
import PinObserving
import PinfoldConfiguration
import PinfoldTLS
import Trust

extension ReportPolicy {
    /// In place of a pinset's name where a host has none; no pinset can have it.
    package static let observedName = "(observed)"

    /// The policy of reports on hosts without pins; `nil` if they are not reported.
    package init?(_ configuration: PinObservationConfiguration) {
        guard let destination = configuration.reportTo else { return nil }
        self.init(pinset: Pinset(name: Self.observedName), destination: destination)
    }
}

extension PinReporter {
    /// Puts a report on a new key together and submits it, if `pins.reportTo` says so and unless
    /// the same was reported a while ago.
    package func report(_ new: NewKey) {
        guard let policy = policy(of: ReportPolicy.observedName) else { return }
        let reason = "new-key"
        let subject = ReportSubject(
            policy: policy, host: new.name.host, port: new.name.port,
            leafKey: new.leaf.key.keyPinText, reason: reason, isEnforced: false)
        guard admits(subject, time: new.time, now: Clock.monotonicMilliseconds() / 1000) else {
            return
        }
        let issuer = new.issuerIsKnown ? "a known issuer" : "an issuer never seen before"
        submit(
            PinFailureReport(
                pinset: policy.pinset.name, host: new.name.host, port: new.name.port,
                notedHost: new.name.host, includesSubdomains: false, reason: reason,
                detail: "the server shows a key never seen before, under \(issuer), "
                    + new.leaf.issuer,
                isEnforced: false, expires: nil,
                knownPins: new.earlierKeys.map(\.keyPinText), served: new.shown.certificates,
                validated: new.shown.context.validatedChain(
                    of: new.shown.certificates, pinset: nil),
                time: new.time),
            for: subject)
    }
}
