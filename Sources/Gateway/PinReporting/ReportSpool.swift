import Files

/// Reports waiting for delivery: in a folder, where they survive the process, or in memory while
/// the folder cannot be used. Limited by number, bytes and age; if there is no space, the oldest
/// report of the destination with the most is dropped. Belongs to one thread.
struct ReportSpool {
    /// A waiting report.
    struct Item {
        /// The name of its file, which also identifies it.
        var name: String
        var pinset: String
        /// When it expires, in milliseconds of a monotonic clock.
        var expires: Int64
        var bytes: Int
        /// How often its destination answered without accepting it.
        var attempts = 0
        /// Whether it is being delivered: it then stays until that is over.
        var isUnderWay = false
        /// The JSON, while it is not in a file.
        var body: [UInt8]?
        /// Its file, until that has its final name.
        var unfinished: UnfinishedFile?
    }

    /// Events for the operator.
    enum Event: Equatable {
        /// The folder cannot be used; reports wait in memory.
        case unusable(ReportFolderError)
        /// The folder is in use, with this many reports of an earlier process.
        case opened(reports: Int)
        /// A file was not a valid report, or incomplete, and was removed.
        case damaged(file: String)
        /// This many files do not belong to the spool, and are left alone.
        case foreign(files: Int)
        /// A file cannot be read at the moment; it is left for later.
        case unreadable(ReportFolderError)
    }

    /// The maximum number of waiting reports, and of their bytes; lower in memory, without a
    /// folder.
    static let maximumReports = 1000
    static let maximumBytes = 16 << 20
    static let maximumInMemory = 64
    /// The maximum age of a waiting report, in milliseconds: seven days.
    static let maximumAge: Int64 = 7 * 86_400_000
    /// The delay between attempts at an unusable folder, or a file in it, in milliseconds.
    static let retryMilliseconds: Int64 = 60_000
    /// The same while another process has the folder: one that ends, if this one succeeds it.
    static let sharingMilliseconds: Int64 = 1000

    private let path: String
    private let onEvent: (Event) -> Void
    private var folder: ReportFolder?
    private var triedAt: Int64?
    /// Since when another process has the folder.
    private var inUseSince: Int64?
    /// Whether it was reported that the folder cannot be used, and no attempt has fully succeeded
    /// since.
    private var hasReportedUnusable = false
    private var nextNumber = UInt32.random(in: 0...UInt32.max)
    /// In the order in which they were made.
    private(set) var items: [Item] = []
    private(set) var bytes = 0
    /// The destinations of reports, by the names of their pinsets.
    var routes: [String: String] = [:]
    /// Dropped reports by their destination; `nil` for those whose destination is unknown.
    private var dropped: [String?: Int] = [:]
    /// Names of files that could not be read, and when they expire.
    private var unread: [(name: String, expires: Int64)] = []

    init(path: String, onEvent: @escaping (Event) -> Void) {
        self.path = path
        self.onEvent = onEvent
    }

    /// Waiting reports, including those that cannot be read at the moment.
    var count: Int { items.count + unread.count }

    /// Reports that are not in a file.
    var inMemory: Int { items.count(where: { $0.body != nil }) }

    /// Reports that may not survive a power loss.
    var unsettled: Int { items.count(where: { $0.body != nil || $0.unfinished != nil }) }

    /// The results of examining reports.
    struct Found: Equatable {
        /// Files of an earlier process.
        var files = 0
        /// Files that were not valid reports, now or before.
        var damaged = 0
    }

    /// Opens the folder, and retries what could not be used before: reports in memory are moved
    /// there. Nothing that failed is retried at once.
    ///
    /// - Parameters:
    ///   - now: milliseconds of a monotonic clock.
    ///   - wall: milliseconds since 1970.
    ///   - makes: whether to create the folder if missing, and to report it if it cannot be used.
    mutating func open(now: Int64, wall: Int64, makes: Bool = true) -> Found {
        var found = Found()
        let isDone = folder != nil && unread.isEmpty && inMemory == 0
        guard !isDone, now >= nextAttempt ?? now else { return found }
        if makes { triedAt = now }
        do throws(ReportFolderError) {
            if let folder {
                let again = unread
                unread = []
                for file in again { load(file.name, file.expires, from: folder, &found) }
            } else {
                let opened = try ReportFolder(path: path, makes: makes)
                let names: [String]
                do throws(ReportFolderError) {
                    names = try opened.names()
                } catch {
                    opened.end()
                    throw error
                }
                folder = opened
                load(names, from: opened, now: now, wall: wall, &found)
            }
            inUseSince = nil
            try save()
        } catch {
            inUseSince = error.isInUse ? inUseSince ?? now : nil
            // Nobody needs to know of a predecessor that ends.
            if makes, inUseSince.map({ now - $0 >= Self.retryMilliseconds }) ?? true {
                reportUnusable(error)
            }
        }
        return found
    }

    /// When the folder can be tried again, in milliseconds of a monotonic clock; `nil` if it has
    /// not been.
    private var nextAttempt: Int64? {
        triedAt.map { $0 + (inUseSince == nil ? Self.retryMilliseconds : Self.sharingMilliseconds) }
    }

    /// When the folder is to be tried again because another process may have left it.
    var nextLook: Int64? { inUseSince == nil ? nil : nextAttempt }

    private mutating func reportUnusable(_ error: ReportFolderError) {
        if !hasReportedUnusable { onEvent(.unusable(error)) }
        hasReportedUnusable = true
    }

    /// Loads what an earlier process left.
    private mutating func load(
        _ names: [String], from folder: ReportFolder, now: Int64, wall: Int64,
        _ found: inout Found
    ) {
        let made = items
        (items, bytes) = ([], 0)
        var foreign = 0
        for name in names {
            let finished = ReportFile.finishedName(of: name)
            guard let created = ReportFile.created(name: finished ?? name) else {
                foreign += 1
                continue
            }
            found.files += 1
            // The clock may have been wrong when it was made: it is not older than that.
            let age = created < wall ? min(wall - created, Self.maximumAge + 1) : 0
            load(name, now + Self.maximumAge - age, from: folder, &found)
        }
        if foreign > 0 { onEvent(.foreign(files: foreign)) }
        onEvent(.opened(reports: count))
        for item in made { append(item) }
    }

    /// Loads a file, unless it cannot be read at the moment, which is not the report's fault.
    private mutating func load(
        _ name: String, _ expires: Int64, from folder: ReportFolder, _ found: inout Found
    ) {
        let contents: [UInt8]?
        do throws(ReportFolderError) {
            contents = try folder.contents(name, most: ReportFile.maximumBytes)
        } catch {
            return putOff(name, expires, error)
        }
        guard let contents, let report = ReportFile.read(contents) else {
            found.damaged += 1
            folder.remove(name)
            return onEvent(.damaged(file: "\(path)/\(name)"))
        }
        var name = name
        if let finished = ReportFile.finishedName(of: name) {
            // It is complete: an earlier process merely had no time to rename it.
            do throws(ReportFolderError) {
                try folder.finish(name, as: finished)
            } catch {
                return putOff(name, expires, error)
            }
            name = finished
        }
        append(
            Item(
                name: name, pinset: report.pinset, expires: expires, bytes: report.body.count))
    }

    private mutating func putOff(_ name: String, _ expires: Int64, _ error: ReportFolderError) {
        if unread.isEmpty { onEvent(.unreadable(error)) }
        unread.append((name, expires))
        makeRoom(for: nil)
    }

    private mutating func append(_ item: Item) {
        items.append(item)
        bytes += item.bytes
        makeRoom(for: item.pinset)
    }

    private mutating func makeRoom(for pinset: String?) {
        while count > Self.maximumReports || bytes > Self.maximumBytes {
            let byNumber = count > Self.maximumReports
            guard drop(for: pinset, { byNumber ? 1 : $0.bytes }) else { break }
        }
    }

    /// Drops the oldest report of the destination that has the most.
    ///
    /// - Parameters:
    ///   - pinset: the pinset of the report for which there is no space; it may itself be dropped.
    ///   - weight: how much of the space a report takes; 0 if it must not be dropped.
    /// - Returns: `false` if none can be dropped.
    private mutating func drop(for pinset: String?, _ weight: (Item) -> Int) -> Bool {
        let waiting = items.map { item in
            ReportShares.Holding(
                holder: routes[item.pinset], weight: weight(item), expires: item.expires,
                mayGo: !item.isUnderWay)
        }
        let unread = unread.map { file in
            let item = Item(name: file.name, pinset: "", expires: file.expires, bytes: 0)
            return ReportShares.Holding(
                holder: nil, weight: weight(item), expires: file.expires, mayGo: true)
        }
        let index = ReportShares.next(
            toGo: waiting + unread, preferring: pinset.flatMap { routes[$0] })
        guard let index else { return false }
        let holder = (waiting + unread)[index].holder
        dropped[holder, default: 0] += 1
        if index < items.count {
            remove(items[index].name)
        } else {
            folder?.remove(self.unread.remove(at: index - items.count).name)
        }
        return true
    }

    /// Reports dropped since the last call, by their destination.
    mutating func takeDropped() -> [String?: Int] {
        defer { dropped = [:] }
        return dropped
    }

    /// Adds a report.
    ///
    /// - Parameters:
    ///   - created: milliseconds since 1970.
    ///   - now: milliseconds of a monotonic clock.
    ///   - isLast: whether ``settle()`` will make it durable.
    /// - Returns: `false` if there is no space for it: it then counts as dropped.
    @discardableResult
    mutating func add(
        pinset: String, body: [UInt8], created: Int64, now: Int64, isLast: Bool = false
    ) -> Bool {
        guard body.count <= ReportFile.maximumBody else {
            dropped[routes[pinset], default: 0] += 1
            return false
        }
        nextNumber &+= 1
        let item = Item(
            name: ReportFile.name(created: max(0, created), number: nextNumber),
            pinset: pinset, expires: now + Self.maximumAge, bytes: body.count, body: body)
        append(item)
        do throws(ReportFolderError) {
            try save(isLast: isLast)
        } catch {
            reportUnusable(error)
        }
        while inMemory > Self.maximumInMemory {
            guard drop(for: pinset, { $0.body == nil ? 0 : 1 }) else { break }
        }
        return items.last?.name == item.name
    }

    /// Writes the reports that are in memory to the folder, if there is one.
    private mutating func save(isLast: Bool = false) throws(ReportFolderError) {
        guard let folder else { return }
        for index in items.indices {
            guard let body = items[index].body,
                let contents = ReportFile.bytes(pinset: items[index].pinset, body: body)
            else { continue }
            if isLast {
                items[index].unfinished = try folder.begin(contents, for: items[index].name)
            } else {
                try folder.write(contents, to: items[index].name)
            }
            items[index].body = nil
        }
        hasReportedUnusable = false
    }

    /// Makes the last reports durable, which takes as long as the disk takes. They are already in
    /// files, which the next process finds intact if the power stays on.
    mutating func settle() {
        do throws(ReportFolderError) {
            try folder?.finish(items.compactMap(\.unfinished))
            for index in items.indices { items[index].unfinished = nil }
        } catch {
            reportUnusable(error)
        }
    }

    /// The JSON of a report, if there is any. A file that cannot be read at the moment is retried
    /// later, and is not an item until then.
    mutating func body(of item: Item) -> Body {
        if let body = item.body { return .text(body) }
        guard let folder else { return .damaged }
        do throws(ReportFolderError) {
            let read = try folder.contents(item.name, most: ReportFile.maximumBytes)
            return read.flatMap { ReportFile.read($0) }.map { .text($0.body) } ?? .damaged
        } catch {
            if let index = items.firstIndex(where: { $0.name == item.name }) {
                bytes -= items.remove(at: index).bytes
            }
            putOff(item.name, item.expires, error)
            return .unreadable
        }
    }

    /// The contents of a report's file.
    enum Body: Equatable {
        /// The JSON.
        case text([UInt8])
        /// It is gone or damaged.
        case damaged
        /// It cannot be read at the moment: it is not an item until it is retried.
        case unreadable
    }

    /// Removes a report, delivered or given up.
    mutating func remove(_ name: String) {
        guard let index = items.firstIndex(where: { $0.name == name }) else { return }
        let item = items.remove(at: index)
        bytes -= item.bytes
        item.unfinished?.discard()
        folder?.remove(item.name)
    }

    /// Removes the reports that have expired, and those for which `isWanted` returns `false`.
    ///
    /// - Parameter now: milliseconds of a monotonic clock.
    /// - Returns: how many had expired, and how many were not wanted.
    mutating func prune(
        now: Int64, isWanted: (_ pinset: String) -> Bool
    ) -> (expired: Int, unwanted: Int) {
        var expired = 0
        var unwanted = 0
        for item in items where !item.isUnderWay {
            if item.expires < now {
                expired += 1
            } else if !isWanted(item.pinset) {
                unwanted += 1
            } else {
                continue
            }
            remove(item.name)
        }
        for file in unread where file.expires < now { folder?.remove(file.name) }
        expired += unread.count(where: { $0.expires < now })
        unread.removeAll { $0.expires < now }
        return (expired, unwanted)
    }

    /// Called when a destination answered without accepting a report: others come first.
    mutating func setBack(_ name: String) {
        guard let index = items.firstIndex(where: { $0.name == name }) else { return }
        items[index].attempts += 1
    }

    /// Marks whether a report is being delivered.
    mutating func set(_ name: String, isUnderWay: Bool) {
        guard let index = items.firstIndex(where: { $0.name == name }) else { return }
        items[index].isUnderWay = isUnderWay
    }

    /// Whether no folder is in use.
    var isClosed: Bool { folder == nil }

    /// Closes the folder.
    mutating func close() {
        folder?.end()
        (folder, triedAt, inUseSince) = (nil, nil, nil)
    }
}
