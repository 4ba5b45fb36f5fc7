import PinfoldConfiguration
import Trust

/// Receives failures of pinsets that report somewhere (`pinsets.*.reportTo`).
package protocol PinFailureSink: Sendable {
    /// A server failed a pinset.
    ///
    /// Called on the loop that verified the server: it must not block, and may be called for every
    /// handshake.
    ///
    /// - Parameter shown: what the server presented; call it only if there is something to report.
    func pinFailed(_ failure: PinFailureEvent, shown: () -> ShownChain)
}

/// A server that failed a pinset of the configuration.
package struct PinFailureEvent: Sendable {
    /// The pinset that it failed, as the configuration has it.
    package let entry: PinsetEntry
    /// The pinset's index within the policy that applied to the server.
    package let pinsetIndex: Int
    package let host: String
    package let port: UInt16
    /// The pattern by which the host entry applied.
    package let pattern: HostPattern?
    /// The token of the reason, as in replies and logs.
    package let reason: String
    /// The failure in words.
    package let detail: String
    /// The server was refused; `false` if it was let through all the same.
    package let isEnforced: Bool
    /// Seconds since 1970.
    package let wallSeconds: Int64
}

extension Environment {
    /// Passes a failure of a pinset on, if the pinset reports somewhere.
    func reportPinFailure(
        _ failure: TrustError, _ server: EvaluatedServer, isEnforced: Bool,
        _ shown: () -> ShownChain
    ) {
        guard let sink = shared.pinFailures, let entry = server.pinset(of: failure),
            entry.reportTo != nil, let index = failure.pinsetIndex
        else { return }
        sink.pinFailed(
            PinFailureEvent(
                entry: entry, pinsetIndex: index, host: server.host, port: server.port,
                pattern: server.matchedPattern, reason: Reason(failure).token,
                detail: "\(failure)", isEnforced: isEnforced, wallSeconds: wallSeconds),
            shown: shown)
    }
}
