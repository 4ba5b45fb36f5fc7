/// The commit that the program was built from. `deploy/run` and `deploy/test` write an extension of
/// this type that says which; a plain `swift build` has none, and the commit is not known.
struct Revision: RevisionDefault {}

/// What holds as long as `Revision` says nothing itself.
protocol RevisionDefault {}

extension RevisionDefault {
    static var commit: String { "unknown" }
}
