import HTTPCore
import Trust

/// Pins that are proposed for a server, from what has been seen of it.
package struct PinProposal: Hashable, Sendable {
    /// What a pinned key is.
    package enum Role: String, Hashable, Sendable, CaseIterable {
        /// The server's own.
        case leaf
        /// That of an authority above it.
        case issuer
        /// One that the operator has named.
        case backup
    }

    /// A key to pin.
    package struct Key: Hashable, Sendable {
        package var key: SHA256Digest
        package var role: Role
        /// The subject of the certificate that it was seen in; empty for one that was not seen.
        package var subject: String
        /// Whether what was seen speaks for it without reserve.
        package var isSure: Bool
        /// Why it is proposed, in words.
        package var reason: String
    }

    /// Something to know about the proposal.
    package struct Remark: Hashable, Sendable {
        /// Whether it speaks for the proposal; otherwise it is a reserve.
        package var isSure: Bool
        package var text: String
    }

    package var name: ObservedName
    /// At least two.
    package var keys: [Key]
    package var remarks: [Remark]
    /// From when on to enforce, if nothing has been reported until then; seconds since 1970.
    package var enforceFrom: Int64
    /// Of the certificates that were verified, how many the keys would have let pass.
    package var covered: Int
    package var certificates: Int
    /// When the first and the last of them were seen, in seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64

    /// Whether one of the keys is in a chain.
    package func accepts(_ chain: ObservedChain) -> Bool {
        keys.contains { chain.has($0.key) }
    }
}

/// What a proposal is made by.
package struct ProposalOptions: Hashable, Sendable {
    /// For how long a server, and a key, must have been seen, in seconds.
    package var minimum: Int64 = 7 * 86_400
    /// Keys that the operator has ready, and that the server need not have shown.
    package var backups: [SHA256Digest] = []
    /// Seconds since 1970.
    package var now: Int64

    package init(now: Int64) { self.now = now }

    /// On how many different days (UTC) a server, and a key, must have been seen: two moments that
    /// are far enough apart could be an attacker's. Fewer if the minimum is shorter.
    package var minimumDays: Int { Int(max(1, min(3, minimum / Self.day))) }

    /// In seconds.
    package static let day: Int64 = 86_400

    /// For how long a proposed pinset only reports, in seconds.
    package static let reportingPeriod: Int64 = 14 * 86_400
    /// How long ago a server may have been seen last, in seconds.
    package static let staleAfter: Int64 = 30 * 86_400
    /// A certificate is in use if it was seen this long before the server was seen last, in
    /// seconds.
    package static let currentPeriod: Int64 = 86_400
    /// The most keys that are proposed, without those of the operator.
    package static let keysLimit = 4
}

/// Why no pins are proposed for a server.
package enum PinProposalReason: Error, Hashable, Sendable, CustomStringConvertible {
    /// Nothing is known of it.
    case neverSeen
    /// Only report-only pinsets have let it pass, or mostly, or the last time.
    case onlyReported
    /// It was seen for `seconds` in all, less than the minimum.
    case observedTooShort(seconds: Int64, minimum: Int64)
    /// It was seen on fewer days than the minimum.
    case tooFewDays(Int, minimum: Int)
    /// It was seen last at this time.
    case notSeenLately(last: Int64)
    /// A certificate in use has no key that has been seen for long enough.
    case strangeKey(subject: String, issuer: String, since: Int64, addresses: Int)
    /// No entry of `hosts` can name it, for this reason.
    case noPattern(HostPatternError)
    /// Its certificates in use have so many issuers that pinning all would say little.
    case tooManyIssuers(Int)
    /// Only one key is known that could be pinned.
    case noSecondKey

    /// The word for programs.
    package var token: String {
        switch self {
        case .neverSeen: "never-seen"
        case .onlyReported: "only-reported"
        case .observedTooShort: "observed-too-short"
        case .tooFewDays: "too-few-days"
        case .notSeenLately: "not-seen-lately"
        case .strangeKey: "strange-key"
        case .noPattern: "no-pattern"
        case .tooManyIssuers: "too-many-issuers"
        case .noSecondKey: "no-second-key"
        }
    }

    package var description: String {
        switch self {
        case .neverSeen:
            "it has not been seen; expected a host with `pins: observe` that clients have used"
        case .onlyReported:
            "only a report-only pinset has let it pass, or more often than it passed by itself, or "
                + "when it was seen last: what it showed may be an attacker's"
        case .observedTooShort(let seconds, let minimum):
            "it was seen for \(Self.duration(seconds)); expected at least "
                + "\(Self.duration(minimum)) (--minimum)"
        case .tooFewDays(let days, let minimum):
            "it was seen on \(days) \(days == 1 ? "day" : "days"); expected at least \(minimum)"
        case .notSeenLately(let last):
            "it was seen last on \(PinProposal.day(last)), more than 30 days ago: it may have "
                + "other keys by now"
        case .strangeKey(let subject, let issuer, let since, let addresses):
            "since \(PinProposal.day(since)) it shows a certificate with no key that was known for "
                + "long enough (\(subject), issued by \(issuer), at \(addresses) "
                + "\(addresses == 1 ? "address" : "addresses")): find out whether it is the "
                + "server's"
        case .noPattern(let error):
            "no entry of hosts can name it: \(error.problem)"
        case .tooManyIssuers(let count):
            "its certificates in use have \(count) issuers that no key has in common; expected at "
                + "most \(ProposalOptions.keysLimit)"
        case .noSecondKey:
            "only one key is known that could be pinned, and if it changed nothing would pass; "
                + "expected a second one with --backup"
        }
    }

    /// A time in days, or in hours if it is shorter.
    static func duration(_ seconds: Int64) -> String {
        seconds >= 2 * 86_400 || seconds % 86_400 == 0 && seconds > 0
            ? "\(seconds / 86_400) \(seconds / 86_400 == 1 ? "day" : "days")"
            : "\(seconds / 3600) \(seconds / 3600 == 1 ? "hour" : "hours")"
    }
}

extension PinProposal {
    /// A date, without the time.
    package static func day(_ seconds: Int64) -> String {
        String(CivilDate.text(secondsSince1970: seconds).prefix(10))
    }
}
