/// Which requests of a session are carried out, and which wait: so many at a time to one origin,
/// and so many in all.
///
/// Of those that wait, the one with the highest priority comes first, and of equals the oldest
/// (or the youngest). A value: it knows numbers only, which grow with time.
struct RequestQueue: Sendable {
    /// Requests to one origin.
    private struct Line {
        var active = 0
        /// By the priorities, the highest first.
        var waiting = Array(
            repeating: WaitingNumbers(), count: TaskPriorityLevel.allCases.count)

        var isEmpty: Bool { active == 0 && level == nil }

        /// The highest priority with somebody who waits.
        var level: Int? { waiting.indices.first { !waiting[$0].isEmpty } }
    }

    let perOrigin: Int
    let total: Int
    let order: QueueOrder
    /// All lines but the latest one.
    private var lines: [RequestOrigin: Line] = [:]
    /// The line that was asked for last: many requests in a row are for one origin.
    private var latestOrigin: RequestOrigin?
    private var latestLine = Line()
    /// Origins with somebody who waits.
    private var crowded: Set<RequestOrigin> = []
    private var active: Set<UInt64> = []

    /// - Parameters:
    ///   - perOrigin: at least 1.
    ///   - total: at least 1.
    init(perOrigin: Int, total: Int, order: QueueOrder) {
        self.perOrigin = max(1, perOrigin)
        self.total = max(1, total)
        self.order = order
    }

    /// Nothing is active and nothing waits.
    var isEmpty: Bool {
        lines.isEmpty && latestLine.isEmpty && crowded.isEmpty && active.isEmpty
    }

    /// Whether a request has been given its turn, and has not ended.
    func isActive(_ number: UInt64) -> Bool { active.contains(number) }

    /// Those that have their turn, in no order.
    var activeNumbers: Set<UInt64> { active }

    /// Which limit makes the requests to an origin wait.
    func limit(at origin: RequestOrigin) -> QueueTimeout.Limit {
        let most = most(at: origin)
        guard line(of: origin)?.active ?? 0 >= most else { return .requests(total) }
        return origin.isOfHandshakes ? .handshakes : .requestsPerOrigin(most)
    }

    private func most(at origin: RequestOrigin) -> Int { origin.isOfHandshakes ? 1 : perOrigin }

    /// Whether the request begins at once; else ``remove(_:of:)`` names it when it may.
    mutating func add(
        _ number: UInt64, to origin: RequestOrigin, priority: TaskPriorityLevel
    ) -> Bool {
        let most = most(at: origin)
        let total = total
        let begins = active.count < total
        let isActive = change(origin) { line in
            guard begins, line.active < most else {
                line.waiting[priority.index].insert(number)
                return false
            }
            line.active += 1
            return true
        }
        if isActive { active.insert(number) } else { crowded.insert(origin) }
        return isActive
    }

    /// Changes the line of an origin, which is the latest one from then on.
    private mutating func change<Answer>(
        _ origin: RequestOrigin, _ body: (inout Line) -> Answer
    ) -> Answer {
        if latestOrigin != origin {
            if let latestOrigin, !latestLine.isEmpty { lines[latestOrigin] = latestLine }
            latestOrigin = origin
            latestLine = lines.removeValue(forKey: origin) ?? Line()
        }
        return body(&latestLine)
    }

    private func line(of origin: RequestOrigin) -> Line? {
        latestOrigin == origin ? latestLine : lines[origin]
    }

    /// A request has ended, or is given up while it waits: those that may begin instead. Nothing
    /// happens for one that is not known.
    mutating func remove(_ number: UInt64, of origin: RequestOrigin) -> [UInt64] {
        guard active.remove(number) != nil else {
            giveUp(number, of: origin)
            return []
        }
        change(origin) { $0.active -= 1 }
        var next: [UInt64] = []
        while active.count < total, let number = takeNext() {
            active.insert(number)
            next.append(number)
        }
        return next
    }

    private mutating func giveUp(_ number: UInt64, of origin: RequestOrigin) {
        let isCrowded = change(origin) { line in
            for level in line.waiting.indices where line.waiting[level].remove(number) { break }
            return line.level != nil
        }
        if !isCrowded { crowded.remove(origin) }
    }

    private mutating func takeNext() -> UInt64? {
        guard !crowded.isEmpty, let origin = nextOrigin() else { return nil }
        let order = order
        let (number, isCrowded) = change(origin) { line -> (UInt64?, Bool) in
            guard let level = line.level else { return (nil, false) }
            line.active += 1
            let number =
                order == .lastInFirstOut
                ? line.waiting[level].removeLast() : line.waiting[level].removeFirst()
            return (number, line.level != nil)
        }
        if !isCrowded { crowded.remove(origin) }
        return number
    }

    /// Whose turn it is: the origin with room whose next request has the highest priority, and of
    /// equals the oldest (or the youngest).
    private func nextOrigin() -> RequestOrigin? {
        var best: (origin: RequestOrigin, level: Int, number: UInt64)?
        for origin in crowded {
            guard let line = line(of: origin), line.active < most(at: origin),
                let level = line.level,
                let number = order == .lastInFirstOut
                    ? line.waiting[level].last : line.waiting[level].first
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
}
