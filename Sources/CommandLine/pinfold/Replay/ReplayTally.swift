/// Counts by name, of a bounded number of names.
struct ReplayTally {
    /// The number of names that are told apart.
    static let maximum = 65_536

    private(set) var counts: [String: Int] = [:]
    /// How many were counted under names beyond that.
    private(set) var others = 0

    mutating func add(_ name: String) {
        let name = name.cut()
        if let count = counts[name] {
            counts[name] = count + 1
        } else if counts.count < Self.maximum {
            counts[name] = 1
        } else {
            others += 1
        }
    }

    /// The names with the most, and how many others there are.
    func first(_ most: Int) -> (rows: [(name: String, count: Int)], rest: Int, restCount: Int) {
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let shown = sorted.prefix(most).map { (name: $0.key, count: $0.value) }
        let total = counts.values.reduce(others, +)
        return (shown, counts.count - shown.count, total - shown.reduce(0) { $0 + $1.count })
    }
}

/// What came of replaying logs.
struct ReplaySummary {
    /// Requests that fare differently in the same way.
    struct Group {
        var count = 0
        /// The first of them.
        var examples: [Example] = []
    }

    /// One request.
    struct Example {
        var time: String
        var client: String
        var user: String?
        var method: String
        var target: String
        var id: String?
    }

    /// How many examples of each are kept.
    let examples: Int
    var lines = 0
    var judged = 0
    /// Requests that fare differently in any way.
    var changed = 0
    /// Those whose verdict depends on an address that the log does not have.
    var withoutAddress = 0
    /// Those to pinned hosts whose keys are not known.
    var withoutKeys = 0
    private(set) var firstTime = ""
    private(set) var lastTime = ""
    private(set) var groups: [ReplayChange: Group] = [:]
    private(set) var lacking = ReplayTally()
    private(set) var undecided = ReplayTally()
    private(set) var unreadable = 0
    private(set) var hosts = ReplayTally()
    private(set) var clients = ReplayTally()
    private(set) var users = ReplayTally()

    /// The number of kinds of changes that are told apart.
    private static let maximumGroups = 10_000
    /// Changes of more kinds than that.
    private(set) var otherChanges = 0

    init(examples: Int) { self.examples = examples }

    mutating func skip(_ reading: LineReading) {
        switch reading {
        case .request: break
        case .lacks(let fields): for field in fields { lacking.add(field.name) }
        case .undecided(let why): undecided.add(why)
        case .unreadable: unreadable += 1
        }
    }

    mutating func note(time: String) {
        if firstTime.isEmpty || time < firstTime { firstTime = time }
        if time > lastTime { lastTime = time }
    }

    mutating func add(
        _ changes: [ReplayChange], host: String, network: String, user: String?,
        example: () -> Example
    ) {
        changed += 1
        hosts.add(host)
        clients.add(network)
        if let user { users.add(user) }
        for change in changes {
            if groups[change] == nil, groups.count >= Self.maximumGroups {
                otherChanges += 1
                continue
            }
            groups[change, default: Group()].count += 1
            if groups[change, default: Group()].examples.count < examples {
                groups[change]?.examples.append(example())
            }
        }
    }
}
