import HTTPCore
import Trust

/// How near a pinset is to refusing its servers.
package struct PinsetOutlook: Hashable, Sendable {
    /// How urgent a finding is.
    package enum Level: String, Hashable, Sendable, CaseIterable {
        case note
        case warning
        case critical
    }

    /// Something that brings an outage nearer.
    package enum Concern: Hashable, Sendable {
        /// It has a single key.
        case oneKey
        /// Nothing it pins has ever matched.
        case neverMatched
        /// Of its keys, only this one is in what servers show.
        case oneKeyInUse(pin: String)
        /// A certificate in use has none of its keys.
        case notPinned(host: ObservedName, subject: String, since: Int64)
        /// A pinned key is the server's own, which is new at each renewal, and the certificate ends
        /// in this many days.
        case leafChanges(host: ObservedName, days: Int64)
        /// A certificate that appeared lately is in use at one address only.
        case oneAddress(host: ObservedName, address: IPAddress, since: Int64)
        /// It expires, and then refuses every server.
        case expires(days: Int64)
        /// Nothing has been recorded of its servers.
        case notObserved
        /// Nothing has been recorded of one of them since this time, long ago.
        case notSeenLately(host: ObservedName, last: Int64)
    }

    package var name: String
    package var concerns: [Concern]

    /// The most urgent of its concerns; `nil` if it has none.
    package var level: Level? {
        concerns.map(\.level).max { $0.order < $1.order }
    }

    /// What a pinset is judged by.
    package struct Subject: Sendable {
        package var name: String
        /// Its keys, as far as they are known without the certificates.
        package var keys: [SHA256Digest]
        /// How many pins it has in all.
        package var pins: Int
        package var isEnforced: Bool
        /// When it expires and then refuses every server, in seconds since 1970; `nil` if never.
        package var ends: Int64?
        /// Whether a server has matched it, as far as is recorded; `nil` if nothing is.
        package var hasMatched: Bool?

        package init(
            name: String, keys: [SHA256Digest], pins: Int, isEnforced: Bool, ends: Int64?,
            hasMatched: Bool?
        ) {
            self.name = name
            self.keys = keys
            self.pins = pins
            self.isEnforced = isEnforced
            self.ends = ends
            self.hasMatched = hasMatched
        }
    }

    /// The days in which what ends is near.
    package static let nearDays: Int64 = 30
    /// A certificate that was first seen fewer seconds ago is new.
    package static let newPeriod: Int64 = 7 * 86_400

    /// - Parameters:
    ///   - subject: the pinset.
    ///   - hosts: what is recorded of the servers that it applies to.
    ///   - now: seconds since 1970.
    package init(_ subject: Subject, hosts: [ObservedHost], now: Int64) {
        name = subject.name
        var concerns: [Concern] = []
        if subject.pins == 1 { concerns.append(.oneKey) }
        if subject.hasMatched == false { concerns.append(.neverMatched) }
        if let ends = subject.ends, (ends - now) / 86_400 < Self.nearDays {
            concerns.append(.expires(days: max(0, (ends - now) / 86_400)))
        }
        // Pins by certificate fingerprints or files are not compared with what was seen.
        if subject.keys.count == subject.pins {
            if hosts.isEmpty { concerns.append(.notObserved) }
            var inUse: Set<SHA256Digest> = []
            for host in hosts {
                // What it showed then says nothing of now.
                guard now - host.lastSeen <= ProposalOptions.staleAfter else {
                    concerns.append(.notSeenLately(host: host.name, last: host.lastSeen))
                    continue
                }
                concerns += Self.concerns(of: host, subject.keys, now: now, inUse: &inUse)
            }
            if subject.pins > 1, inUse.count == 1, let one = inUse.first {
                concerns.append(.oneKeyInUse(pin: one.keyPinText))
            }
        }
        self.concerns = concerns
    }

    private static func concerns(
        of host: ObservedHost, _ keys: [SHA256Digest], now: Int64,
        inUse: inout Set<SHA256Digest>
    ) -> [Concern] {
        var concerns: [Concern] = []
        let current = host.chains.filter {
            $0.lastSeen >= host.lastSeen - ProposalOptions.currentPeriod
        }
        let isNewEachTime = host.hasNewKeyAtEachRenewal
        for chain in current {
            let matching = keys.filter(chain.has)
            inUse.formUnion(matching)
            if matching.isEmpty {
                concerns.append(
                    .notPinned(
                        host: host.name, subject: chain.leaf.subject, since: chain.firstSeen))
            } else if matching == [chain.leaf.key], isNewEachTime {
                concerns.append(
                    .leafChanges(
                        host: host.name, days: max(0, (chain.leaf.notAfter - now) / 86_400)))
            }
            if now - chain.firstSeen < newPeriod, chain.firstSeen > host.firstSeen,
                chain.addresses.count == 1, chain.forgottenAddresses == 0,
                Set(host.chains.flatMap { $0.addresses.map(\.address) }).count > 1
            {
                concerns.append(
                    .oneAddress(
                        host: host.name, address: chain.addresses[0].address,
                        since: chain.firstSeen))
            }
        }
        return concerns
    }
}

extension ObservedHost {
    /// Whether it has been renewed, and with another key each time.
    package var hasNewKeyAtEachRenewal: Bool {
        chains.count > 1 && Set(chains.map(\.leaf.key)).count == chains.count
    }
}

extension PinsetOutlook.Level {
    fileprivate var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension PinsetOutlook.Concern {
    /// How urgent it is.
    package var level: PinsetOutlook.Level {
        switch self {
        case .notObserved, .notSeenLately: .note
        case .oneKeyInUse: .note
        case .oneKey, .neverMatched: .warning
        case .oneAddress: .warning
        case .notPinned: .critical
        case .leafChanges(_, let days), .expires(let days):
            days < 7 ? .critical : days < PinsetOutlook.nearDays ? .warning : .note
        }
    }

    /// The word for programs.
    package var token: String {
        switch self {
        case .oneKey: "one-key"
        case .neverMatched: "never-matched"
        case .oneKeyInUse: "one-key-in-use"
        case .notPinned: "not-pinned"
        case .leafChanges: "leaf-changes"
        case .oneAddress: "one-address"
        case .expires: "expires"
        case .notObserved: "not-observed"
        case .notSeenLately: "not-seen-lately"
        }
    }
}

extension PinsetOutlook.Concern: CustomStringConvertible {
    package var description: String {
        switch self {
        case .oneKey: "it has one key only: if that changes, every server is refused"
        case .neverMatched: "no server has ever matched it"
        case .oneKeyInUse(let pin): "servers show one of its keys only, \(pin)"
        case .notPinned(let host, let subject, let since):
            "\(host) shows a certificate without a pinned key since \(PinProposal.day(since)): "
                + subject
        case .leafChanges(let host, let days):
            "\(host) passes by the server's own key, which was new at each renewal, and its "
                + "certificate expires in \(days) days"
        case .oneAddress(let host, let address, let since):
            "\(host) shows a certificate at one address only, \(address), since "
                + PinProposal.day(since)
        case .expires(let days): "it expires in \(days) days, and then refuses every server"
        case .notSeenLately(let host, let last):
            "\(host) was seen last on \(PinProposal.day(last)): what it shows now is not known"
        case .notObserved:
            "nothing is recorded of its servers; `pins: observe` in their entries changes that"
        }
    }
}
