import PinObservation
import PinfoldEngine
import Trust

/// What the operator is told of observed servers.
package enum ObservationEvent: Sendable {
    /// A host without pins shows a key that it has not shown before.
    case newKey(NewKey)
    /// The file was damaged, and has been set aside under another name.
    case setAside(file: String, detail: String)
    /// The file cannot be used: what is observed is kept in memory.
    case unusable(String)
    /// It can be used again.
    case recovered
    /// This many rows of it could not be read.
    case unreadable(rows: Int)
}

/// A key that a host without pins has not shown before.
package struct NewKey: Sendable {
    package let name: ObservedName
    /// What the server presented.
    package let shown: ShownChain
    package let leaf: ObservedCertificate
    /// `address:port` of the server; `nil` if it is unknown.
    package let address: String?
    /// Whether a key above it has been above another one of the host's.
    package let issuerIsKnown: Bool
    /// The keys that the host's own certificates had before, the latest first.
    package let earlierKeys: [SHA256Digest]
    /// Seconds since 1970.
    package let time: Int64
}

/// Figures of what is observed.
package struct ObservationStatistics: Sendable, Hashable {
    /// The hosts that are remembered.
    package var hosts = 0
    /// About how many bytes they take.
    package var bytes = 0
    /// New keys of hosts without pins since the start, by whether their issuer was known.
    package var newKeysOfKnownIssuers: UInt64 = 0
    package var newKeysOfNewIssuers: UInt64 = 0
    /// Hosts that gave way to others since the start.
    package var forgotten: UInt64 = 0
    /// Sightings for which there was no room on the way to the thread. They are not lost: the next
    /// connection to the server is noted in their place.
    package var delayed: UInt64 = 0

    package init() {}
}

/// One line of an overview: what is known of a host.
package struct ObservedSummary: Sendable, Hashable {
    package var name: ObservedName
    /// Seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64
    /// Its certificates, and how many keys they have.
    package var certificates: Int
    package var keys: Int
    /// Whether a certificate has passed in every respect.
    package var isVerified: Bool
    /// The issuer and the end of the certificate seen last, in seconds since 1970.
    package var issuer: String
    package var notAfter: Int64
    /// The addresses by which it is known.
    package var addresses: Int
    /// When a key was new, in seconds since 1970; `nil` if none has been.
    package var newKeySeen: Int64?

    package init(_ host: ObservedHost) {
        name = host.name
        firstSeen = host.firstSeen
        lastSeen = host.lastSeen
        certificates = host.chains.count
        keys = Set(host.chains.map(\.leaf.key)).count
        isVerified = host.chains.contains { $0.isVerified }
        let latest = host.chains.max { $0.lastSeen < $1.lastSeen }
        issuer = latest?.leaf.issuer ?? ""
        notAfter = latest?.leaf.notAfter ?? 0
        addresses = Set(host.chains.flatMap { $0.addresses.map(\.address) }).count
        newKeySeen = host.newKeySeen
    }
}
