import PinfoldEngine

/// The files that are reloaded when they change, in sets of those that can only be used together,
/// and whether they have changed. The main thread checks from time to time.
struct WatchedFiles {
    /// How often they are checked, if there are any.
    static let intervalMilliseconds = 1000
    /// How long unusable files are left alone while they do not change: the limits of a delay that
    /// doubles each time. The cause may have been something other than the files.
    static let retryMilliseconds: ClosedRange<Int64> = 1000...60_000

    /// The number of consecutive checks with changes after which files are read nevertheless:
    /// something keeps touching them, and reading will detect incomplete ones.
    static let restlessLimit = 10

    /// Files that are to be read.
    struct Change: Equatable {
        /// The sets that differ from what was loaded.
        var sets: [[String]]
        /// Whether all of them are unchanged since they could not be used.
        var isRetry: Bool

        var paths: [String] { sets.flatMap { $0 } }
    }

    /// The result of reading a set.
    enum Outcome: Equatable {
        /// What is on disk is in force.
        case current
        /// What is in force is newer than the files' contents, and stays.
        case outdated
        /// What was in force stays, for these reasons.
        case unusable([String])

        /// The label values of metrics.
        static let labels = ["current", "outdated", "unusable"]
        var label: String { Self.labels[weight] }
    }

    /// A change of a set's outcome.
    struct Turn: Equatable {
        var paths: [String]
        /// Problems that did not exist before.
        var reasons: [String]
        /// Whether it was unusable and no longer is.
        var isRestored: Bool
    }

    fileprivate struct Backoff {
        /// The files' state at that time.
        var version: FileVersions
        /// How long they are left alone, and until when, in milliseconds.
        var pause: Int64
        var end: Int64
    }

    fileprivate struct Watched {
        let paths: [String]
        /// Their state when they were loaded; `nil` if they were not, or it is unknown.
        var inForce: FileVersions?
        /// Their state at the last check.
        var seen: FileVersions?
        /// The number of consecutive checks at which they had changed.
        var restlessLooks = 0
        var outcome = Outcome.current
        var backoff: Backoff?

        init(_ paths: [String]) { self.paths = paths }

        func isDue(at now: Int64) -> Bool {
            guard inForce != seen else { return false }
            guard let backoff, backoff.version == seen else { return true }
            return now >= backoff.end
        }
    }

    private var watched: [Watched] = []
    /// How often a set was found to be unusable; each state of its files counts once.
    private(set) var unusableCount: UInt64 = 0

    var isEmpty: Bool { watched.isEmpty }

    /// Whether no set is unusable.
    var areUsable: Bool {
        watched.allSatisfy { if case .unusable = $0.outcome { false } else { true } }
    }

    /// Each file with the result of reading it: the worst, if several sets contain it.
    var outcomes: [(path: String, outcome: Outcome)] {
        var found: [(path: String, outcome: Outcome)] = []
        var places: [String: Int] = [:]
        for set in watched {
            for path in set.paths {
                if let place = places[path] {
                    if set.outcome.weight > found[place].outcome.weight {
                        found[place].outcome = set.outcome
                    }
                } else {
                    places[path] = found.count
                    found.append((path, set.outcome))
                }
            }
        }
        return found
    }

    /// Begins to watch files that have been read. Their state at that time is unknown: the first
    /// checks find them changed.
    mutating func watch(_ sets: [[String]]) { watched = sets.map { Watched($0) } }

    /// The files that differ from what was loaded, once those of a set have not changed between two
    /// checks: whoever writes several, or one in pieces, can finish. Unusable files are returned
    /// again when they change, and from time to time.
    ///
    /// - Parameter now: milliseconds of a monotonic clock.
    mutating func change(at now: Int64) -> Change? {
        var change = Change(sets: [], isRetry: true)
        for index in watched.indices {
            let version = FileVersions(of: watched[index].paths)
            if version == watched[index].seen {
                watched[index].restlessLooks = 0
            } else {
                watched[index].seen = version
                watched[index].restlessLooks += 1
                guard watched[index].restlessLooks >= Self.restlessLimit else { continue }
                watched[index].restlessLooks = 0
            }
            guard watched[index].isDue(at: now) else { continue }
            change.sets.append(watched[index].paths)
            if watched[index].backoff?.version != version { change.isRetry = false }
        }
        return change.sets.isEmpty ? nil : change
    }

    /// Records the result of reading the files of a change, in their state at the last check.
    ///
    /// - Returns: what differs from before.
    mutating func note(
        _ change: Change, at now: Int64, outcome: ([String]) -> Outcome
    ) -> [Turn] {
        var turns: [Turn] = []
        for index in watched.indices where change.sets.contains(watched[index].paths) {
            if let turn = watched[index].note(
                outcome(watched[index].paths), at: now, &unusableCount)
            {
                turns.append(turn)
            }
        }
        return turns
    }
}

extension WatchedFiles.Watched {
    mutating func note(
        _ found: WatchedFiles.Outcome, at now: Int64, _ unusableCount: inout UInt64
    ) -> WatchedFiles.Turn? {
        let before = outcome
        outcome = found
        guard case .unusable(let reasons) = found, let seen else {
            inForce = seen
            backoff = nil
            guard case .unusable = before else { return nil }
            return WatchedFiles.Turn(paths: paths, reasons: [], isRestored: true)
        }
        // Files that return to the state in which they were loaded are read once more.
        inForce = nil
        let times = WatchedFiles.retryMilliseconds
        if let known = backoff, known.version == seen {
            let pause = min(known.pause * 2, times.upperBound)
            backoff = WatchedFiles.Backoff(version: seen, pause: pause, end: now + pause)
        } else {
            unusableCount += 1
            backoff = WatchedFiles.Backoff(
                version: seen, pause: times.lowerBound, end: now + times.lowerBound)
        }
        var known: [String] = []
        if case .unusable(let reasons) = before { known = reasons }
        let new = reasons.filter { !known.contains($0) }
        return new.isEmpty
            ? nil : WatchedFiles.Turn(paths: paths, reasons: new, isRestored: false)
    }
}

extension WatchedFiles.Outcome {
    fileprivate var weight: Int {
        switch self {
        case .current: 0
        case .outdated: 1
        case .unusable: 2
        }
    }
}
