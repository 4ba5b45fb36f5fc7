/// The commit that the program was built from. `deploy/run`, `deploy/test` and `deploy/package`
/// write an extension of this type with the commit; without it, as in a plain `swift build`, the
/// commit is unknown.
struct Revision: RevisionDefault {}

/// The default, which applies if `Revision` does not declare `commit` itself.
protocol RevisionDefault {}

extension RevisionDefault {
    static var commit: String { "unknown" }
}

extension Revision {
    /// What `--version` prints: the version and, where it is known, the commit.
    static var versionAndCommit: String {
        commit == "unknown" ? pinfoldVersion : "\(pinfoldVersion) (\(commit))"
    }
}
