import CachePolicy

/// The record of a `content` row: a fixed header, then key, vary key and head.
///
/// Offsets and widths, all little-endian:
///
///     0  u32 layout (1)      16 i64 request time      48 u64 body length
///     4  u32 key bytes       24 i64 response time     56 i64 body id, 0: inline
///     8  u32 vary bytes      32 i64 initial age       64 u32 bytes of a chunk
///     12 u32 head bytes      40 u64 policy            68 u32 zero
struct EntryRecord: Equatable {
    static let headerBytes = 72
    static let layout: UInt32 = 1
    /// The maximum size of key, vary key and head together.
    static let maximumBytes = 1 << 20

    var keyCount: Int
    var varyCount: Int
    var headCount: Int
    var times: StoredTimes
    /// Fingerprint of the security policy it was obtained under.
    var policy: UInt64
    var bodyCount: UInt64
    /// The id under which the body's chunks are stored; 0 if the body is in the row.
    var bodyID: Int64
    var chunkBytes: Int

    /// Bytes of key, vary key and head.
    var textCount: Int { keyCount + varyCount + headCount }

    /// The number of chunks of a body that is not in the row.
    var chunkCount: Int {
        bodyID == 0 || chunkBytes == 0
            ? 0 : Int((bodyCount + UInt64(chunkBytes) - 1) / UInt64(chunkBytes))
    }

    /// Writes the header to the first `headerBytes` bytes of `target`.
    func encode(to target: UnsafeMutableRawBufferPointer) {
        precondition(target.count >= Self.headerBytes)
        func store32(_ value: UInt32, _ offset: Int) {
            target.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt32.self)
        }
        func store64(_ value: UInt64, _ offset: Int) {
            target.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
        }
        store32(Self.layout, 0)
        store32(UInt32(keyCount), 4)
        store32(UInt32(varyCount), 8)
        store32(UInt32(headCount), 12)
        store64(UInt64(bitPattern: times.requestTime), 16)
        store64(UInt64(bitPattern: times.responseTime), 24)
        store64(UInt64(bitPattern: times.initialAge), 32)
        store64(policy, 40)
        store64(bodyCount, 48)
        store64(UInt64(bitPattern: bodyID), 56)
        store32(UInt32(chunkBytes), 64)
        store32(0, 68)
    }

    init(
        keyCount: Int, varyCount: Int, headCount: Int, times: StoredTimes, policy: UInt64,
        bodyCount: UInt64, bodyID: Int64, chunkBytes: Int
    ) {
        self.keyCount = keyCount
        self.varyCount = varyCount
        self.headCount = headCount
        self.times = times
        self.policy = policy
        self.bodyCount = bodyCount
        self.bodyID = bodyID
        self.chunkBytes = chunkBytes
    }

    /// Parses a record whose checksum has been verified; `nil` if it is not one of ours, or if its
    /// parts do not add up to the bytes that are there.
    init?(_ record: UnsafeRawBufferPointer, inlineBytes: Int) {
        guard record.count >= Self.headerBytes, record.count <= Self.maximumBytes + Self.headerBytes
        else { return nil }
        func load32(_ offset: Int) -> Int {
            Int(UInt32(littleEndian: record.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        func load64(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: record.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard load32(0) == Int(Self.layout) else { return nil }
        keyCount = load32(4)
        varyCount = load32(8)
        headCount = load32(12)
        times = StoredTimes(
            requestTime: Int64(bitPattern: load64(16)), responseTime: Int64(bitPattern: load64(24)),
            initialAge: Int64(bitPattern: load64(32)))
        policy = load64(40)
        bodyCount = load64(48)
        bodyID = Int64(bitPattern: load64(56))
        chunkBytes = load32(64)
        guard keyCount + varyCount + headCount + Self.headerBytes == record.count else {
            return nil
        }
        if bodyID == 0 {
            guard bodyCount == UInt64(inlineBytes) else { return nil }
        } else {
            guard bodyID > 0, chunkBytes > 0, inlineBytes == 0, bodyCount < 1 << 50,
                chunkCount <= 1 << Int(Schema.chunkBits)
            else { return nil }
        }
    }

    /// The row id of an entry's record, with all or the beginning of its body. The rest of it is in
    /// the row with the next id.
    static func contentID(_ entry: Int64) -> Int64 { entry << 1 }

    /// The bytes of a body that is in the rows of `content`, according to its record; 0 if it is
    /// elsewhere, or the record is none.
    static func inlineCount(_ record: UnsafeRawBufferPointer) -> UInt64 {
        guard record.count >= headerBytes,
            record.loadUnaligned(fromByteOffset: 56, as: Int64.self) == 0
        else { return 0 }
        return UInt64(littleEndian: record.loadUnaligned(fromByteOffset: 48, as: UInt64.self))
    }

    /// The checksum of a `content` row. It includes the id, so that a row found under another's id
    /// counts as damaged.
    static func sum(id: Int64, record: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer)
        -> Int64
    {
        let text = XXHash64.hash(record, seed: UInt64(bitPattern: id))
        return Int64(bitPattern: XXHash64.hash(body, seed: text))
    }

    /// The checksum of a `chunk` row.
    static func sum(chunk id: Int64, data: UnsafeRawBufferPointer) -> Int64 {
        Int64(bitPattern: XXHash64.hash(data, seed: UInt64(bitPattern: id)))
    }

    /// The row id of a chunk.
    static func chunkID(body: Int64, index: Int) -> Int64 {
        body << Schema.chunkBits | Int64(index)
    }
}
