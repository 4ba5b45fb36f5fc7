/// A file of lists of revoked certificates, read when the configuration was loaded.
package struct CRLFile: Sendable, Equatable {
    /// Its absolute path.
    package var path: String
    /// The DER of its lists, at least one.
    package var lists: [[UInt8]]

    /// A file with these lists.
    package init(path: String, lists: [[UInt8]]) {
        self.path = path
        self.lists = lists
    }
}
