import HTTPCore

/// One entry of the index: 40 bytes.
struct IndexSlot: TableSlot {
    /// From the lowest bit: the entry's row id (43 bits), its flags (4), how it has been used (3),
    /// the names that its Vary nominates (11), and whether a soft purge has made it stale (1).
    private var bits: UInt64 = 0
    var keyHash: UInt64 = 0
    var varyHash: UInt32 = 0
    /// Bytes on disk in units of `unitBytes`.
    var units: UInt32 = 0
    /// Time of last use, in seconds since 1970.
    var accessed: UInt32 = 0
    /// Next more recently and less recently used entry; -1 at the ends.
    var newer: Int32 = -1
    var older: Int32 = -1
    var chain: Int32 = -1

    /// The largest row id: of a chunk's id, 20 more bits are its number (`Schema.chunkBits`).
    static let largestID: Int64 = 1 << 43 - 1
    /// An entry of more than 64 GiB counts as one of 64 GiB.
    static let unitBytes: Int64 = 16

    /// The entry's row id; 0 when the slot is free.
    var id: Int64 {
        get { Int64(bitPattern: bits & UInt64(Self.largestID)) }
        set {
            precondition((0...Self.largestID).contains(newValue))
            bits = bits & ~UInt64(Self.largestID) | UInt64(newValue)
        }
    }
    var flags: IndexFlags {
        get { IndexFlags(rawValue: UInt8(field(43, 4))) }
        set { set(43, 4, UInt64(newValue.rawValue)) }
    }
    var uses: SlotUses {
        get { SlotUses(bits: UInt8(field(47, 3))) }
        set { set(47, 3, UInt64(newValue.bits)) }
    }
    /// The names nominated by its Vary, as a number in the table's `varyNames`.
    var names: UInt16 {
        get { UInt16(field(50, 11)) }
        set { set(50, 11, UInt64(newValue)) }
    }

    /// Whether a soft purge has made it stale; since when is in its row.
    var isStale: Bool {
        get { field(61, 1) != 0 }
        set { set(61, 1, newValue ? 1 : 0) }
    }

    @inline(__always)
    private func field(_ shift: UInt64, _ width: UInt64) -> UInt64 {
        bits &>> shift & (1 &<< width &- 1)
    }

    @inline(__always)
    private mutating func set(_ shift: UInt64, _ width: UInt64, _ value: UInt64) {
        let mask: UInt64 = (1 &<< width &- 1)
        bits = bits & ~(mask &<< shift) | (value & mask) &<< shift
    }

    var bytes: Int64 { Int64(units) * Self.unitBytes }
    var weight: Int64 { bytes }
    /// The uses of what memory has are not seen here.
    var isInUse: Bool { uses.count > 0 || flags.contains(.resident) }

    /// An entry used now, to be inserted into a table.
    init(id: Int64, keyHash: UInt64, varyHash: UInt32, bytes: Int64, flags: IndexFlags) {
        self.keyHash = keyHash
        self.varyHash = varyHash
        units = UInt32(clamping: (bytes + Self.unitBytes - 1) / Self.unitBytes)
        accessed = LastUse.now()
        self.id = id
        self.flags = flags
    }

    init() {}

    /// Whether its variant may be one of those with these hashes.
    func isOne(of varyHashes: [UInt32]) -> Bool {
        names == VaryNamesTable.unknown || varyHashes.contains(varyHash)
    }
}

struct IndexFlags: OptionSet {
    let rawValue: UInt8
    /// Its rows are committed: a reader finds them.
    static let committed = IndexFlags(rawValue: 1)
    /// The memory tier has it too.
    static let resident = IndexFlags(rawValue: 2)
    /// `accessed` is newer than its row says.
    static let accessedChanged = IndexFlags(rawValue: 4)
    /// Its body is kept in chunks.
    static let chunked = IndexFlags(rawValue: 8)
}
