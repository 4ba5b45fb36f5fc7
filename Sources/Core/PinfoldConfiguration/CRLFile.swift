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

    /// Creates a file from its path, its lists and the digests of their contents.
    package init(path: String, lists: [[UInt8]], contents: [SHA256Digest]) {
        self.path = path
        self.lists = lists
        self.contents = contents
    }
}
