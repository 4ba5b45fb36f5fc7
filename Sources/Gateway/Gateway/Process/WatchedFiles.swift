import PinfoldEngine

/// The files that are taken up when they change, in sets of those that are of use only together,
/// and whether they have. The main thread looks from time to time.
struct WatchedFiles {
    /// How often it looks, if there are any.
    static let intervalMilliseconds = 1000
    /// How long files that could not be used are left alone while they do not change: the bounds of
    /// a pause that doubles each time. What was wrong may not have been theirs.
    static let retryMilliseconds: ClosedRange<Int64> = 1000...60_000

    /// Looks at which files may have changed one after the other before they are read all the
    /// same: something touches them all the time, and what is torn is found out.
    static let restlessLimit = 10

    /// Files that are to be read.
    struct Change: Equatable {
        /// The sets that are not as they were taken up.
        var sets: [[String]]
        /// Whether all of them are as they were when they could not be used.
        var isRetry: Bool

        var paths: [String] { sets.flatMap { $0 } }
    }

    /// What came of reading a set.
    enum Outcome: Equatable {
        /// It is in force as it is on disk.
        case current
        /// What is in force is newer than what the files say, and stays.
        case outdated
        /// What was in force stays, for these reasons.
        case unusable([String])
    }

    /// What has changed for a set.
    struct Turn: Equatable {
        var paths: [String]
        /// What is wrong that was not before.
        var reasons: [String]
        /// Whether it was unusable and is no longer.
        var isMended: Bool
    }

    fileprivate struct Refusal {
        /// What the files were like.
        var version: FileVersions
        /// How long they are left alone, and until when, in milliseconds.
        var pause: Int64
        var end: Int64
    }

    fileprivate struct Watched {
        let paths: [String]
        /// As they were taken up; nil: they were not, or it is not known.
        var inForce: FileVersions?
        /// As they were at the last look.
        var seen: FileVersions?
        /// Looks in a row at which they had changed.
        var restlessLooks = 0
        var outcome = Outcome.current
        var refusal: Refusal?

        init(_ paths: [String]) { self.paths = paths }

        func isDue(at now: Int64) -> Bool {
            guard inForce != seen else { return false }
            guard let refusal, refusal.version == seen else { return true }
            return now >= refusal.end
        }
    }

    private var watched: [Watched] = []
    /// How often a set was found to be unusable, each state of its files counted once.
    private(set) var refusals: UInt64 = 0

    var isEmpty: Bool { watched.isEmpty }

    /// Whether no set is unusable.
    var areUsable: Bool {
        watched.allSatisfy { if case .unusable = $0.outcome { false } else { true } }
    }

    /// Each file with what came of reading it: of several sets with it, the worst.
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

    /// Begins to watch files that have been read. What they were like then is not known: the first
    /// looks find them changed.
    mutating func watch(_ sets: [[String]]) { watched = sets.map { Watched($0) } }

    /// The files that are otherwise than they were taken up, once those of a set have stood still
    /// between two looks: who writes several, or one in pieces, is let finish. Files that could not
    /// be used are told again when they change, and now and then.
    ///
    /// - Parameter now: milliseconds of a clock that only goes forward.
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
            if watched[index].refusal?.version != version { change.isRetry = false }
        }
        return change.sets.isEmpty ? nil : change
    }

    /// Notes what came of reading the files of a change, as they were at the last look.
    ///
    /// - Returns: what is otherwise than it was.
    mutating func note(
        _ change: Change, at now: Int64, outcome: ([String]) -> Outcome
    ) -> [Turn] {
        var turns: [Turn] = []
        for index in watched.indices where change.sets.contains(watched[index].paths) {
            if let turn = watched[index].note(outcome(watched[index].paths), at: now, &refusals) {
                turns.append(turn)
            }
        }
        return turns
    }
}

extension WatchedFiles.Watched {
    mutating func note(
        _ found: WatchedFiles.Outcome, at now: Int64, _ refusals: inout UInt64
    ) -> WatchedFiles.Turn? {
        let before = outcome
        outcome = found
        guard case .unusable(let reasons) = found, let seen else {
            inForce = seen
            refusal = nil
            guard case .unusable = before else { return nil }
            return WatchedFiles.Turn(paths: paths, reasons: [], isMended: true)
        }
        // Files that are again as they were taken up are read once more.
        inForce = nil
        let times = WatchedFiles.retryMilliseconds
        if let known = refusal, known.version == seen {
            let pause = min(known.pause * 2, times.upperBound)
            refusal = WatchedFiles.Refusal(version: seen, pause: pause, end: now + pause)
        } else {
            refusals += 1
            refusal = WatchedFiles.Refusal(
                version: seen, pause: times.lowerBound, end: now + times.lowerBound)
        }
        var known: [String] = []
        if case .unusable(let reasons) = before { known = reasons }
        let new = reasons.filter { !known.contains($0) }
        return new.isEmpty
            ? nil : WatchedFiles.Turn(paths: paths, reasons: new, isMended: false)
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
