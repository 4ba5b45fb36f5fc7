import HTTPCore

/// What happens to a pinset that has expired.
package enum PinsetExpiry: String, Hashable, Sendable, CaseIterable {
    /// It refuses all servers.
    case refuse
    /// Mismatches are reported, but no longer enforced.
    case report
}

extension Pinset {
    /// Whether the pinset refuses every server because it has expired.
    ///
    /// - Parameter now: seconds since 1970.
    package func refusesAll(at now: Int64) -> Bool { ends.map { now >= $0 } ?? false }

    /// Why the pinset refuses every server; `nil` if it does not.
    ///
    /// - Parameter now: seconds since 1970.
    package func refusal(at now: Int64) -> TrustError.Reason? {
        guard let ends, refusesAll(at: now) else { return nil }
        return .pinsetExpired(at: ends)
    }

    /// Whether a server passes even if no pin matches.
    ///
    /// - Parameter now: seconds since 1970.
    package func isReportOnly(at now: Int64) -> Bool {
        !isEnforced || afterExpiry == .report && expires.map { now >= $0 } ?? false
    }

    /// From when on it refuses every server, in seconds since 1970; `nil` if never. Nothing that it
    /// allowed is used after that.
    package var ends: Int64? { isEnforced && afterExpiry == .refuse ? expires : nil }
}

/// The indices of the pins in a pinset that a server's chain matches. Only the first pins are
/// distinguished.
package struct PinMatches: Hashable, Sendable {
    /// The number of pins that are distinguished; those after them count as one.
    package static let distinguishedPins = 15

    private var bits: UInt16 = 0

    /// No pin.
    package init() {}

    /// Creates a set of the pins at these indices.
    package init(_ indexes: some Sequence<Int>) {
        for index in indexes { bits |= 1 << UInt16(min(index, Self.distinguishedPins)) }
    }

    /// Whether no pin matches.
    package var isEmpty: Bool { bits == 0 }

    /// The indices in ascending order; `distinguishedPins` stands for any of the pins after those.
    package var indexes: [Int] {
        (0...Self.distinguishedPins).filter { bits & 1 << UInt16($0) != 0 }
    }
}

/// The result of a pinset for a server that passed.
package enum PinsetOutcome: Hashable, Sendable {
    /// These pins match; none if the pinset's mode is none.
    case passed(PinMatches)
    /// No pin matched, which is only reported; the chain is valid and names the host.
    case reported(TrustError)
}
