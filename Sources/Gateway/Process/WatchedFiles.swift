import Engine

/// The files that are taken up when they change, and whether they have. The main thread looks from
/// time to time.
struct WatchedFiles {
    /// How often it looks, if there are any.
    static let intervalMilliseconds = 1000

    private var paths: [String] = []
    /// As they were taken up; nil: it is not known.
    private var inForce: FileVersions?
    /// As they were at the last look, if that was otherwise.
    private var seen: FileVersions?

    var isEmpty: Bool { paths.isEmpty }

    /// Begins to watch files that have been read. What they were like then is not known: the first
    /// look finds them changed.
    mutating func watch(_ paths: [String]) {
        self.paths = paths
        inForce = nil
        seen = nil
    }

    /// Whether files have changed since they were taken up, and not since the last look: who writes
    /// several, or one in pieces, is let finish. They count as taken up then.
    mutating func haveChanged() -> Bool {
        guard !paths.isEmpty else { return false }
        let now = FileVersions(of: paths)
        guard now != inForce else {
            seen = nil
            return false
        }
        guard now == seen else {
            seen = now
            return false
        }
        inForce = now
        return true
    }
}
