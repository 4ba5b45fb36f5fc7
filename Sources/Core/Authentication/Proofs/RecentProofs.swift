import HTTPCore

/// The credentials that one thread has last found among those that are remembered
/// (``VerifiedCredentials``), so that a client that asks often is not looked up in a table of the
/// whole process each time. Only hashes under a key are kept, and for a second.
package struct RecentProofs {
    /// How many are kept: a power of two.
    package static let limit = 256
    package static let milliseconds: Int64 = 1000

    private struct Entry {
        var hash: (UInt64, UInt64)
        var identity: Identity
        /// When it is forgotten, in milliseconds of a monotonic clock.
        var end: Int64
    }

    private let key: (UInt64, UInt64)
    /// By the last bits of their hashes; empty until something is kept.
    private var entries: [Entry?] = []
    /// The users that all of them were found with.
    private var store: CredentialStore?

    /// - Parameter random: two random words, of a generator for secrets.
    package init(random: (UInt64, UInt64)) { key = random }

    /// A hash of a field's value (SipHash-2-4, 128 bits).
    package func hash(of value: Span<UInt8>) -> (UInt64, UInt64) {
        value.withUnsafeBytes { SipState.hash128($0, key: key) }
    }

    /// Whom the credentials with a hash prove; `nil` if that has to be found out.
    /// - Parameters:
    ///   - store: the users in force.
    ///   - now: milliseconds of a monotonic clock.
    package func identity(
        by hash: (UInt64, UInt64), in store: CredentialStore, at now: Int64
    ) -> Identity? {
        guard store === self.store, let entry = entries[Self.slot(of: hash)],
            (entry.hash.0 ^ hash.0) | (entry.hash.1 ^ hash.1) == 0, now < entry.end
        else { return nil }
        return entry.identity
    }

    /// Keeps what was found out.
    package mutating func keep(
        _ identity: Identity, by hash: (UInt64, UInt64), in store: CredentialStore, at now: Int64
    ) {
        if store !== self.store {
            self.store = store
            entries = Array(repeating: nil, count: Self.limit)
        }
        entries[Self.slot(of: hash)] = Entry(
            hash: hash, identity: identity, end: now + Self.milliseconds)
    }

    private static func slot(of hash: (UInt64, UInt64)) -> Int {
        Int(truncatingIfNeeded: hash.0) & (limit - 1)
    }
}
