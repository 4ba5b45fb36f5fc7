import Trust

/// What pins had to do with the server of an exchange.
package enum PinVerdict: UInt8, Sendable, CaseIterable {
    /// Its host has pins, and the server passed.
    case passed
    /// Its host has pins that are only reported, and the server passed whether one matched or not.
    case reportOnly
    /// It was refused because of its host's pins.
    case refused
    /// Its host has no pins: a valid chain was all that was asked for.
    case unpinned

    /// The word: `passed`, `report_only`, `refused`, `unpinned`.
    package var label: StaticString {
        switch self {
        case .passed: "passed"
        case .reportOnly: "report_only"
        case .refused: "refused"
        case .unpinned: "unpinned"
        }
    }
}

extension Exchange {
    /// What pins had to do with its server; `nil` if it spoke TLS with none.
    package var pinVerdict: PinVerdict? {
        if case .trust(let reason)? = remarks.fault?.reason, reason.isOfPins { return .refused }
        guard report.serverTLS != nil, let origin, origin.key.isSecure else { return nil }
        let configuration = origin.policy.configuration
        let pinsets = origin.entryIndex.map { configuration.hosts.entries[$0].pinsets } ?? []
        let compared = pinsets.map { configuration.pinsets[$0].pinset }.filter { $0.mode != .none }
        guard !compared.isEmpty else { return .unpinned }
        let now = environment.wallSeconds
        return compared.contains { !$0.isReportOnly(at: now) } ? .passed : .reportOnly
    }
}

extension TrustReason {
    /// Whether a pinset is the reason, not the chain.
    fileprivate var isOfPins: Bool {
        switch self {
        case .noPinMatches, .pinsetWithoutPins, .invalidPolicy, .pinsetExpired: true
        default: false
        }
    }
}
