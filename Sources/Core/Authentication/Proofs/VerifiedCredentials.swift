import HTTPCore

/// Credentials that were verified at some cost: passwords for a bounded time, signed tokens until
/// they expire, and a bounded number of both, shared between client networks (`ShareTable`), so
/// that the next request with the same ones needs no check. Only digests under a key are kept.
package struct VerifiedCredentials: Sendable {
    /// How many are remembered.
    package static let limit = 10_000
    /// How long after it was verified a password need not be checked again.
    package static let milliseconds: Int64 = 300_000

    private struct Entry: Sendable {
        var identity: Identity
        /// The store in which the proof was worth something when that was last looked up.
        var store: CredentialStore
        /// When it is forgotten, in milliseconds of a monotonic clock.
        var end: Int64
    }

    private var table: ShareTable<ProofDigest, Entry>

    package init(limit: Int = VerifiedCredentials.limit) { table = ShareTable(limit: limit) }

    /// Whom these credentials prove; `nil` if they are not remembered, or count no more: the user's
    /// password, the keys or what tokens must say have changed, or the token has expired.
    /// - Parameters:
    ///   - store: the users and keys in force.
    ///   - now: milliseconds of a monotonic clock.
    ///   - wall: seconds since 1970.
    package mutating func identity(
        by digest: ProofDigest, in store: CredentialStore, at now: Int64, wall: Int64
    ) -> Identity? {
        guard let entry = table.use(digest) else { return nil }
        guard now < entry.end, entry.identity.isValid(at: wall) else {
            table.remove(digest)
            return nil
        }
        if entry.store === store { return entry.identity }
        guard let identity = store.renewed(entry.identity) else {
            table.remove(digest)
            return nil
        }
        var renewed = entry
        renewed.store = store
        if identity != entry.identity { renewed.identity = identity }
        table.update(renewed, for: digest, weight: 1)
        return renewed.identity
    }

    /// Remembers credentials that were verified now.
    /// - Parameter client: the network that has sent them.
    package mutating func remember(
        _ digest: ProofDigest, _ identity: Identity, in store: CredentialStore,
        from client: IPNetwork, at now: Int64
    ) {
        let end = identity.expires == nil ? now + Self.milliseconds : .max
        table.set(Entry(identity: identity, store: store, end: end), for: digest, of: client)
    }

    package var count: Int { table.count }
}
