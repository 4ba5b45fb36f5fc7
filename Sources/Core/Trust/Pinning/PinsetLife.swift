import HTTPCore

/// What becomes of a pinset whose time is over.
package enum PinsetExpiry: String, Hashable, Sendable, CaseIterable {
    /// No server passes any more.
    case refuse
    /// Its pins are reported and no longer enforced.
    case report
}

extension Pinset {
    /// Whether the pinset refuses every server, because its time is over.
    ///
    /// - Parameter now: seconds since 1970.
    package func refusesAll(at now: Int64) -> Bool { ends.map { now >= $0 } ?? false }

    /// Why the pinset refuses every server; nil: it does not.
    ///
    /// - Parameter now: seconds since 1970.
    package func refusal(at now: Int64) -> TrustFailure.Reason? {
        guard let ends, refusesAll(at: now) else { return nil }
        return .pinsetExpired(at: ends)
    }

    /// Whether a server that no pin matches passes all the same.
    ///
    /// - Parameter now: seconds since 1970.
    package func isReportOnly(at now: Int64) -> Bool {
        !isEnforced || afterExpiry == .report && expires.map { now >= $0 } ?? false
    }

    /// From when on it refuses every server, in seconds since 1970; nil: never. Nothing that it let
    /// pass is used any longer than that.
    package var ends: Int64? { isEnforced && afterExpiry == .refuse ? expires : nil }
}

/// Which pins of a pinset a server's chain has, by their index. The first of them are told apart.
package struct PinMatches: Hashable, Sendable {
    /// How many pins are told apart; those after them count as one.
    package static let toldApart = 15

    private var bits: UInt16 = 0

    /// No pin.
    package init() {}

    /// The pins at these indexes.
    package init(_ indexes: some Sequence<Int>) {
        for index in indexes { bits |= 1 << UInt16(min(index, Self.toldApart)) }
    }

    /// Whether there is none.
    package var isEmpty: Bool { bits == 0 }

    /// The indexes in ascending order, `toldApart` for any of the pins after those.
    package var indexes: [Int] { (0...Self.toldApart).filter { bits & 1 << UInt16($0) != 0 } }
}

/// What a pinset found about a server that passed.
package enum PinsetOutcome: Hashable, Sendable {
    /// It has these of the pins; none where the pinset's mode is none.
    case passed(PinMatches)
    /// No pin matched, which is only reported; the chain is valid and names the host.
    case reported(TrustFailure)
}
