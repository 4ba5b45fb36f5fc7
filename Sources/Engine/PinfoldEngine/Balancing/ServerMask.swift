import PinfoldConfiguration

/// Some of the servers of a set, by their indices.
struct ServerMask: Equatable, Sequence {
    private(set) var bits: UInt64 = 0

    init(bits: UInt64 = 0) { self.bits = bits }
    init(only index: Int) { bits = 1 << UInt64(index) }
    init(_ indices: some Sequence<Int>) { for index in indices { insert(index) } }

    var isEmpty: Bool { bits == 0 }
    var count: Int { bits.nonzeroBitCount }
    var first: Int { bits.trailingZeroBitCount }

    func contains(_ index: Int) -> Bool { bits & 1 << UInt64(index) != 0 }
    mutating func insert(_ index: Int) { bits |= 1 << UInt64(index) }
    func without(_ other: ServerMask) -> ServerMask { ServerMask(bits: bits & ~other.bits) }

    func makeIterator() -> Iterator { Iterator(bits: bits) }

    struct Iterator: IteratorProtocol {
        fileprivate var bits: UInt64

        mutating func next() -> Int? {
            guard bits != 0 else { return nil }
            defer { bits &= bits &- 1 }
            return bits.trailingZeroBitCount
        }
    }
}

/// Which servers may be asked: those of the first of these groups that is not empty.
///
///     usable: up, not ejected, with a weight
///     usable backups
///     all that are up, the ejected ones and backups included
///
/// A check that has failed says that a server does not work; an ejection only that it has failed
/// others lately. So a set whose servers are all ejected asks them again, and one whose servers
/// are all down answers for them.
struct ServerGroups {
    /// What decides about one server.
    struct Server: Equatable {
        /// The last checks say that it works, or nothing is known.
        var isUp = true
        /// It has failed requests lately.
        var isEjected = false
        var isBackup = false
        /// It has the connections that it may have, and all of them are in use.
        var isFull = false
        /// 0: it gets no requests but of clients that are bound to it.
        var weight = 1
    }

    private var usable = ServerMask()
    private var backups = ServerMask()
    private var ejected = ServerMask()
    private var full = ServerMask()
    /// Those that clients may be bound to.
    private(set) var bindable = ServerMask()

    mutating func add(_ server: Server, at index: Int) {
        guard server.isUp else { return }
        if server.isFull { full.insert(index) }
        if !server.isEjected { bindable.insert(index) }
        guard server.weight > 0 else { return }
        if server.isEjected {
            ejected.insert(index)
        } else if server.isBackup {
            backups.insert(index)
        } else {
            usable.insert(index)
        }
    }

    /// The servers to choose from: those that are not full, if there are any; empty if there is no
    /// server at all.
    /// - Parameter tried: those that have been asked for this request in vain.
    func candidates(besides tried: ServerMask) -> ServerMask {
        var left = usable.without(tried)
        if left.isEmpty { left = backups.without(tried) }
        if left.isEmpty { left = ejected.without(tried) }
        let free = left.without(full)
        return free.isEmpty ? left : free
    }
}
