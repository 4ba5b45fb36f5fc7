/// The commit that the program was built from. `deploy/run` and `deploy/test` write an extension of
/// this type with the commit; without it, as in a plain `swift build`, the commit is unknown.
struct Revision: RevisionDefault {}

/// The default, which applies if `Revision` does not declare `commit` itself.
protocol RevisionDefault {}

extension RevisionDefault {
    static var commit: String { "unknown" }
}
