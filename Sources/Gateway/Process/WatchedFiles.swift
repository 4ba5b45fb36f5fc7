import Engine

/// The files that are taken up when they change, and whether they have. The main thread looks from
/// time to time.
struct WatchedFiles {
    /// How often it looks, if there are any.
    static let intervalMilliseconds = 1000

    /// Files that are to be read.
    struct Change: Equatable {
        /// Those that are not as they were taken up.
        var paths: [String]
        /// Whether this is as it was told before, and was not taken up then.
        var isRetry: Bool
    }

    private var paths: [String] = []
    /// Each as it was taken up; nil: it was not, or it is not known.
    private var inForce: [FileVersions?] = []
    /// As they were at the last look.
    private var seen: [FileVersions] = []
    /// As they were when a change was last told.
    private var told: [FileVersions] = []

    var isEmpty: Bool { paths.isEmpty }

    /// Begins to watch files that have been read. What they were like then is not known: the first
    /// looks find them changed.
    mutating func watch(_ paths: [String]) {
        self.paths = paths
        inForce = paths.map { _ in nil }
        seen = []
        told = []
    }

    /// The files that are otherwise than they were taken up, once all have stood still between two
    /// looks: who writes several, or one in pieces, is let finish. They are told at each look until
    /// they are taken up.
    mutating func change() -> Change? {
        let now = paths.map { FileVersions(of: [$0]) }
        guard now == seen else {
            seen = now
            return nil
        }
        let changed = paths.indices.filter { inForce[$0] != now[$0] }
        guard !changed.isEmpty else { return nil }
        defer { told = now }
        return Change(paths: changed.map { paths[$0] }, isRetry: now == told)
    }

    /// Notes the files as taken up as they were at the last look, except for some.
    mutating func takeUp(except failed: [String]) {
        for index in paths.indices {
            inForce[index] = failed.contains(paths[index]) ? nil : seen[index]
        }
    }
}
