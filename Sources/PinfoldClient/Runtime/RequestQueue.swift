/// Which requests of a session are carried out, and which wait: so many at a time to one origin,
/// and so many in all.
///
/// Of those that wait, the one with the highest priority comes first, and of equals the oldest
/// (or the youngest). A value: it knows numbers only.
struct RequestQueue: Sendable {
    /// Requests that wait for one origin.
    fileprivate struct Line {
        var active = 0
        /// By the priorities, the highest first.
        var waiting: [[UInt64]] = Array(
            repeating: [], count: TaskPriorityLevel.allCases.count)
        /// How many at the front of each have been taken.
        var taken = Array(repeating: 0, count: TaskPriorityLevel.allCases.count)

        var isEmpty: Bool { active == 0 && level == nil }

        /// The highest priority with somebody who waits.
        var level: Int? { waiting.indices.first { waiting[$0].count > taken[$0] } }
    }

    let perOrigin: Int
    let total: Int
    let order: QueueOrder
    private var lines: [RequestOrigin: Line] = [:]
    /// Origins with somebody who waits.
    private var crowded: Set<RequestOrigin> = []
    private var active: Set<UInt64> = []
    /// Waiting requests that were given up, until their turn comes.
    private var abandoned: Set<UInt64> = []

    /// - Parameters:
    ///   - perOrigin: at least 1.
    ///   - total: at least 1.
    init(perOrigin: Int, total: Int, order: QueueOrder) {
        self.perOrigin = max(1, perOrigin)
        self.total = max(1, total)
        self.order = order
    }

    private func most(at origin: RequestOrigin) -> Int { origin.isOfHandshakes ? 1 : perOrigin }

    /// Whether the request begins at once; else ``remove(_:of:)`` names it when it may.
    mutating func add(
        _ number: UInt64, to origin: RequestOrigin, priority: TaskPriorityLevel
    ) -> Bool {
        var line = lines[origin] ?? Line()
        defer { lines[origin] = line }
        guard active.count >= total || line.active >= most(at: origin) else {
            line.active += 1
            active.insert(number)
            return true
        }
        line.waiting[priority.index].append(number)
        crowded.insert(origin)
        return false
    }

    /// A request has ended, or is given up while it waits: those that may begin instead.
    mutating func remove(_ number: UInt64, of origin: RequestOrigin) -> [UInt64] {
        guard active.remove(number) != nil else {
            abandoned.insert(number)
            return []
        }
        lines[origin]?.active -= 1
        var next: [UInt64] = []
        while active.count < total, let number = takeNext() {
            active.insert(number)
            next.append(number)
        }
        if lines[origin]?.isEmpty ?? false { lines[origin] = nil }
        return next
    }

    /// The next one that waits for an origin with room.
    private mutating func takeNext() -> UInt64? {
        while let origin = nextOrigin() {
            if let number = take(from: origin) { return number }
        }
        return nil
    }

    /// Whose turn it is: the origin with room whose next request has the highest priority, and of
    /// equals the oldest (or the youngest).
    private func nextOrigin() -> RequestOrigin? {
        var best: (origin: RequestOrigin, level: Int, number: UInt64)?
        for origin in crowded {
            guard let line = lines[origin], line.active < most(at: origin), let level = line.level,
                let number = line.next(at: level, order)
            else { continue }
            if let best {
                guard
                    level < best.level
                        || level == best.level
                            && (order == .firstInFirstOut
                                ? number < best.number : number > best.number)
                else { continue }
            }
            best = (origin, level, number)
        }
        return best?.origin
    }

    private mutating func take(from origin: RequestOrigin) -> UInt64? {
        guard var line = lines[origin], line.active < most(at: origin) else { return nil }
        var found: UInt64?
        while found == nil, let level = line.level {
            let number = line.takeNext(at: level, order)
            if abandoned.remove(number) == nil { found = number }
        }
        if found != nil { line.active += 1 }
        if line.level == nil { crowded.remove(origin) }
        lines[origin] = line.isEmpty ? nil : line
        return found
    }
}

extension RequestQueue.Line {
    fileprivate func next(at level: Int, _ order: QueueOrder) -> UInt64? {
        switch order {
        case .lastInFirstOut: waiting[level].last
        case .firstInFirstOut: waiting[level][taken[level]]
        }
    }

    fileprivate mutating func takeNext(at level: Int, _ order: QueueOrder) -> UInt64 {
        switch order {
        case .lastInFirstOut: return waiting[level].removeLast()
        case .firstInFirstOut:
            let number = waiting[level][taken[level]]
            taken[level] += 1
            // Now and then, so that taking from the front costs the same however many there are.
            if taken[level] > 32, taken[level] * 2 >= waiting[level].count {
                waiting[level].removeFirst(taken[level])
                taken[level] = 0
            }
            return number
        }
    }
}
