/// What a narrow row has for purges and lists, beside the facts of the index (`IndexRow`).
struct RowFacts: Sendable, Equatable {
    /// Since when a soft purge has made it stale, in seconds since 1970; 0 if none has.
    var staleSince: Int64 = 0
    /// How often it has been used.
    var hits: Int64 = 0
    /// The hash of its host, an IPv6 address in brackets: 32 bits.
    var host: Int64 = 0
    /// The hashes of its tags, 32 bits each, little-endian; `many` if they are too many.
    var tags: [UInt8] = []

    /// More tags than are in the row.
    static let many: [UInt8] = [0xFF]
    private static let tagLimit = 64

    /// - Parameter seed: that of the database.
    init(_ response: CachedResponse, seed: UInt64) {
        staleSince = response.staleSince
        host = Self.hash(StoredURI(response.key).host, seed)
        var count = 0
        ResponseTags.visit(response.head) { tag in
            count += 1
            guard count <= Self.tagLimit else { return }
            let hash = UInt32(truncatingIfNeeded: Self.hash(tag, seed))
            withUnsafeBytes(of: hash.littleEndian) { tags += $0 }
        }
        if count > Self.tagLimit { tags = Self.many }
    }

    mutating func makeStale(since time: Int64) {
        staleSince = max(1, staleSince > 0 ? min(staleSince, time) : time)
    }

    /// 32 bits, as a number that takes no more space than that in a row.
    static func hash(_ bytes: UnsafeRawBufferPointer, _ seed: UInt64) -> Int64 {
        Int64(Int32(truncatingIfNeeded: XXHash64.hash(bytes, seed: seed)))
    }
}

/// Which narrow rows may be of responses that patterns are about: only of those the record is read.
/// A value without I/O.
struct RowCandidates: Sendable {
    /// The record has to be read in any case.
    private var isAny = false
    private var hosts: Set<Int64> = []
    private var tags: Set<UInt32> = []

    /// - Parameters:
    ///   - seed: that of the database.
    ///   - hasFurtherTags: whether fields have tags that rows may lack the hashes of.
    init(_ patterns: [BanPattern], seed: UInt64, hasFurtherTags: Bool = false) {
        for pattern in patterns {
            switch pattern {
            case .everything: isAny = true
            case .key(let key):
                let hash = key.withUnsafeBytes { RowFacts.hash(StoredURI($0).host, seed) }
                hosts.insert(hash)
            case .host(let host):
                guard host.reach == .exact else {
                    isAny = true
                    continue
                }
                hosts.insert(host.name.withUnsafeBytes { RowFacts.hash($0, seed) })
            case .prefix(let prefix):
                let hash = prefix.withUnsafeBytes { bytes -> Int64? in
                    let uri = StoredURI(bytes)
                    return uri.hasPath ? RowFacts.hash(uri.host, seed) : nil
                }
                // Where the path has not begun, there are further hosts that begin with it.
                if let hash { hosts.insert(hash) } else { isAny = true }
            case .tag where hasFurtherTags: isAny = true
            case .tag(let tag, _):
                let hash = tag.withUnsafeBytes { RowFacts.hash($0, seed) }
                tags.insert(UInt32(truncatingIfNeeded: hash))
            }
        }
    }

    /// Whether a row's record has to be read.
    /// - Parameter host: `nil` if the row has none of these facts.
    func mayBe(host: Int64?, tags found: UnsafeRawBufferPointer) -> Bool {
        guard !isAny, let host else { return true }
        if hosts.contains(host) { return true }
        guard !tags.isEmpty else { return false }
        if found.elementsEqual(RowFacts.many) { return true }
        for offset in stride(from: 0, to: found.count - 3, by: 4) {
            let tag = UInt32(
                littleEndian: found.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            if tags.contains(tag) { return true }
        }
        return false
    }
}
