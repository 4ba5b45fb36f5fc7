/// Of which servers the keys are remembered, so that pins can be proposed (`pins`).
package struct PinObservationConfiguration: Sendable, Equatable {
    /// Which hosts are observed whose entry does not say so itself.
    package enum Scope: String, Sendable, Equatable, CaseIterable {
        /// None.
        case listed
        /// All.
        case all
    }

    /// Which hosts are observed.
    package var scope = Scope.listed
    /// Where new keys of hosts without pins are reported; `nil` for nowhere.
    package var reportTo: ReportDestination?

    /// Creates the defaults.
    package init() {}
}

/// Whether the keys of an entry's servers are remembered.
package enum PinObservationMode: String, Sendable, Equatable, CaseIterable {
    /// They are.
    case observe
    /// They are not.
    case off
}

extension ConfigurationSnapshot {
    /// Whether the keys of servers are remembered.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func observesPins(entry index: Int?) -> Bool {
        switch index.flatMap({ hosts.entries[$0].pinObservation }) {
        case .observe: true
        case .off: false
        case nil: pinObservation.scope == .all
        }
    }

    /// Whether servers of an entry must have a pinned key, if only to avoid being reported.
    /// - Parameter index: Likewise.
    package func isPinned(entry index: Int?) -> Bool {
        index.map { hosts.entries[$0].pinsets.contains { pinsets[$0].pinset.mode != .none } }
            ?? false
    }

    /// Whether the keys of any server are remembered.
    package var observesAnyPins: Bool {
        pinObservation.scope == .all || hosts.entries.contains { $0.pinObservation == .observe }
    }
}
