import Trust

/// A file with certificate revocation lists, read when the configuration was loaded.
package struct CRLFile: Sendable, Equatable {
    /// Its absolute path.
    package var path: String
    /// The DER of its lists, at least one.
    package var lists: [[UInt8]]
    /// The SHA-256 of each list's issuer and of the certificates that it revokes: equal for a later
    /// list that revokes the same ones.
    package var contents: [SHA256Digest]
    /// When a newer one of each is due at the latest, in seconds since 1970.
    package var ends: [Int64]

    /// Creates a file from its path, its lists, the digests of their contents, and their ends.
    package init(
        path: String, lists: [[UInt8]], contents: [SHA256Digest], ends: [Int64] = []
    ) {
        self.path = path
        self.lists = lists
        self.contents = contents
        self.ends = ends
    }
}
