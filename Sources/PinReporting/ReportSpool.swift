/// Reports that wait for their delivery: in a folder, where they survive the process, or in memory
/// while the folder cannot be used. Bounded by number, bytes and age. Belongs to one thread.
struct ReportSpool {
    /// A report that waits.
    struct Item {
        /// The name of its file; also its identity.
        var name: String
        var pinset: String
        /// Milliseconds since 1970.
        var created: Int64
        var bytes: Int
        /// How often its destination answered and did not take it.
        var attempts = 0
        /// The JSON, while it is in no file.
        var body: [UInt8]?
    }

    /// What is told of to an operator.
    enum Event: Equatable {
        /// The folder cannot be used; reports wait in memory.
        case unusable(ReportFolderError)
        /// The folder is in use, with so many reports of an earlier process.
        case opened(reports: Int)
        /// A file was no report and is removed.
        case damaged(file: String)
    }

    /// Reports that wait at most, and their bytes; in memory, where there is no folder, fewer.
    static let maximumReports = 1000
    static let maximumBytes = 16 << 20
    static let maximumInMemory = 64
    /// How long a report waits at most, in milliseconds: seven days.
    static let maximumAge: Int64 = 7 * 86_400_000
    /// Between two attempts to use a folder that could not be used, in milliseconds.
    static let reopenMilliseconds: Int64 = 60_000

    private let path: String
    private let tell: (Event) -> Void
    private var folder: ReportFolder?
    private var triedAt: Int64?
    private var nextNumber = UInt32.random(in: 0...UInt32.max)
    /// In the order in which they were made.
    private(set) var items: [Item] = []
    private(set) var bytes = 0

    init(path: String, tell: @escaping (Event) -> Void) {
        self.path = path
        self.tell = tell
    }

    /// Uses the folder, unless it does or could not a moment ago; reports in memory go there.
    ///
    /// - Parameter now: milliseconds of a clock that never goes back.
    /// - Returns: how many files were damaged, and how many reports had no place.
    mutating func open(now: Int64) -> (damaged: Int, dropped: Int) {
        guard folder == nil, triedAt.map({ now - $0 >= Self.reopenMilliseconds }) ?? true else {
            return (0, 0)
        }
        let isFirst = triedAt == nil
        triedAt = now
        do throws(ReportFolderError) {
            let opened = try ReportFolder(path: path)
            let names: [String]
            do throws(ReportFolderError) {
                names = try opened.names()
            } catch {
                opened.end()
                throw error
            }
            folder = opened
            return load(names, opened)
        } catch {
            if isFirst { tell(.unusable(error)) }
            return (0, 0)
        }
    }

    /// Takes in what an earlier process left.
    private mutating func load(_ names: [String], _ folder: ReportFolder) -> (Int, Int) {
        var damaged = 0
        var dropped = 0
        let inMemory = items
        (items, bytes) = ([], 0)
        for name in names {
            if name.hasSuffix(ReportFile.unfinishedSuffix) {
                folder.remove(name)
                continue
            }
            // What is none of its own files is left alone.
            guard let created = ReportFile.created(name: name) else { continue }
            guard let contents = folder.read(name, most: ReportFile.maximumBytes),
                let report = ReportFile.read(contents)
            else {
                damaged += 1
                folder.remove(name)
                tell(.damaged(file: "\(path)/\(name)"))
                continue
            }
            guard hasRoom(for: report.body.count) else {
                dropped += 1
                folder.remove(name)
                continue
            }
            append(
                Item(
                    name: name, pinset: report.pinset, created: created,
                    bytes: report.body.count))
        }
        tell(.opened(reports: items.count))
        for item in inMemory {
            guard let body = item.body else { continue }
            if !add(pinset: item.pinset, body: body, created: item.created) { dropped += 1 }
        }
        return (damaged, dropped)
    }

    private func hasRoom(for count: Int) -> Bool {
        items.count < Self.maximumReports && bytes + count <= Self.maximumBytes
    }

    private mutating func append(_ item: Item) {
        items.append(item)
        bytes += item.bytes
    }

    /// Adds a report.
    ///
    /// - Parameter created: milliseconds since 1970.
    /// - Returns: false if there is no room for it.
    mutating func add(pinset: String, body: [UInt8], created: Int64) -> Bool {
        guard hasRoom(for: body.count) else { return false }
        nextNumber &+= 1
        let name = ReportFile.name(created: max(0, created), number: nextNumber)
        var item = Item(name: name, pinset: pinset, created: created, bytes: body.count)
        if let folder, let contents = ReportFile.bytes(pinset: pinset, body: body) {
            do throws(ReportFolderError) {
                try folder.write(contents, to: name)
                append(item)
                return true
            } catch {
                tell(.unusable(error))
            }
        }
        guard items.count(where: { $0.body != nil }) < Self.maximumInMemory else { return false }
        item.body = body
        append(item)
        return true
    }

    /// The JSON of a report; nil: its file is gone or damaged.
    func body(of item: Item) -> [UInt8]? {
        if let body = item.body { return body }
        return folder?.read(item.name, most: ReportFile.maximumBytes)
            .flatMap { ReportFile.read($0) }?.body
    }

    /// Removes a report, delivered or given up.
    mutating func remove(_ name: String) {
        guard let index = items.firstIndex(where: { $0.name == name }) else { return }
        let item = items.remove(at: index)
        bytes -= item.bytes
        if item.body == nil { folder?.remove(item.name) }
    }

    /// Removes the reports that are too old, and those that `isWanted` has no use for.
    ///
    /// - Parameter wall: milliseconds since 1970.
    /// - Returns: how many were too old, and how many not wanted.
    mutating func prune(
        wall: Int64, isWanted: (_ pinset: String) -> Bool
    ) -> (expired: Int, unwanted: Int) {
        var expired = 0
        var unwanted = 0
        for item in items {
            if wall - item.created > Self.maximumAge {
                expired += 1
            } else if !isWanted(item.pinset) {
                unwanted += 1
            } else {
                continue
            }
            remove(item.name)
        }
        return (expired, unwanted)
    }

    /// A destination answered and did not take a report: others come first.
    mutating func setBack(_ name: String) {
        guard let index = items.firstIndex(where: { $0.name == name }) else { return }
        items[index].attempts += 1
    }

    /// The report to deliver next: of those that may be tried, the oldest of those that were tried
    /// least.
    func next(where mayBeTried: (_ pinset: String) -> Bool) -> Item? {
        var best: Item?
        for item in items where mayBeTried(item.pinset) {
            if best.map({ item.attempts < $0.attempts }) ?? true { best = item }
        }
        return best
    }

    /// Lets go of the folder.
    mutating func close() {
        folder?.end()
        folder = nil
    }
}
