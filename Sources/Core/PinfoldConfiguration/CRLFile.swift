import Trust

/// A file of lists of revoked certificates, read when the configuration was loaded.
package struct CRLFile: Sendable, Equatable {
    /// Its absolute path.
    package var path: String
    /// The DER of its lists, at least one.
    package var lists: [[UInt8]]
    /// The SHA-256 of each list's issuer and of what it revokes: the same for a later list that
    /// revokes the same.
    package var contents: [SHA256Digest]

    /// A file with these lists, of which that is known.
    package init(path: String, lists: [[UInt8]], contents: [SHA256Digest]) {
        self.path = path
        self.lists = lists
        self.contents = contents
    }
}
