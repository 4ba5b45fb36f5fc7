import HTTPCore

/// A pattern that is banned: the form in which a purge is in force until it has been carried out.
package enum BanPattern: Sendable, Hashable {
    case everything
    case host(PurgeHost)
    case tag([UInt8], origin: [UInt8]?)
    case prefix([UInt8])
    /// A URI, whatever the route: what is purged for one is so for all of them, and their number
    /// must not fill the table.
    case key([UInt8])

    /// Bytes that it takes, roughly.
    var count: Int {
        switch self {
        case .everything: 0
        case .host(let host): host.name.count
        case .tag(let tag, let origin): tag.count + (origin?.count ?? 0)
        case .prefix(let bytes), .key(let bytes): bytes.count
        }
    }
}

/// Up to what a pattern is banned: what was stored by requests that were sent before the purge.
package struct BanMark: Sendable, Equatable {
    /// The purge's number: it is about responses that know of none as late (`CachedResponse.born`).
    var serial: UInt64
    /// It is about rows up to this id.
    var through: Int64
    /// When it was purged, in seconds since 1970: a soft purge makes stale from then on.
    var time: Int64
    /// Whether it is only about rows: it was written down by an earlier process.
    var isOfRows = false

    /// - Parameters:
    ///   - serial: the number of the purge.
    ///   - through: the last row that it is about.
    ///   - time: in seconds since 1970.
    package init(serial: UInt64, through: Int64 = 0, time: Int64, isOfRows: Bool = false) {
        self.serial = serial
        self.through = through
        self.time = time
        self.isOfRows = isOfRows
    }

    mutating func reach(_ row: Int64) { through = max(through, row) }

    /// Both, as one purge: the later of the two.
    static func later(_ left: BanMark?, _ right: BanMark?) -> BanMark? {
        guard let left else { return right }
        guard let right else { return left }
        return BanMark(
            serial: max(left.serial, right.serial), through: max(left.through, right.through),
            time: max(left.time, right.time), isOfRows: left.isOfRows && right.isOfRows)
    }
}

/// The hard and the soft ban of one pattern: what only the earlier hard one is about is gone, what
/// only the later soft one is about is stale.
struct BanMarks: Sendable, Equatable {
    var hard: BanMark?
    var soft: BanMark?

    mutating func add(_ mark: BanMark, isSoft: Bool) {
        if isSoft { soft = .later(soft, mark) } else { hard = .later(hard, mark) }
    }

    mutating func add(_ other: BanMarks) {
        hard = .later(hard, other.hard)
        soft = .later(soft, other.soft)
    }

    /// The latest serial.
    var serial: UInt64 { max(hard?.serial ?? 0, soft?.serial ?? 0) }
}

/// A purge that is in force, as it is written down and told to other processes.
package struct Ban: Sendable, Equatable {
    var pattern: BanPattern
    var isSoft: Bool
    var mark: BanMark

    package init(pattern: BanPattern, isSoft: Bool, mark: BanMark) {
        self.pattern = pattern
        self.isSoft = isSoft
        self.mark = mark
    }
}

/// When something was stored: what a ban is compared with.
package enum BanAge: Sendable {
    /// A response in memory, which knows of bans up to this serial.
    case born(UInt64)
    /// A row of the database.
    case row(Int64)

    func isBefore(_ mark: BanMark) -> Bool {
        switch self {
        case .born(let serial): !mark.isOfRows && mark.serial > serial
        case .row(let id): mark.through >= id
        }
    }
}

/// What the bans make of a stored response.
package enum BanVerdict: Sendable, Equatable {
    case none
    /// It is not to be found any more, by the purge with this number.
    case gone(UInt64)
    /// It is stale from this second on.
    case stale(UInt64, since: Int64)

    var isNone: Bool { self == .none }
}
