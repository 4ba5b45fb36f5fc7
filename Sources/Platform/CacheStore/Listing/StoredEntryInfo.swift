import CachePolicy

/// What is known of one stored response, for those who look into the cache.
public struct StoredEntryInfo: Sendable, Equatable {
    /// Its cache key, with the prefix of its route.
    public var key: [UInt8]
    public var status: UInt16
    /// The value of Content-Type; `nil` if it has none.
    public var contentType: [UInt8]?
    /// Bytes of its content, as it is stored; `nil` if that is not known.
    public var bytes: UInt64?
    /// How often it was found since it was stored. After a 304, what was found while it was in
    /// memory counts on.
    public var hits: UInt64
    /// When it was received, in seconds since 1970.
    public var stored: Int64
    /// The first second at which it is stale.
    public var freshUntil: Int64
    /// Since when a soft purge has made it stale; `nil` if none has.
    public var staleSince: Int64?
    /// When it was last read from the disk, or last written there, in seconds since 1970; `nil` if
    /// it is only in memory.
    public var lastUsed: Int64?
    /// The names that its Vary nominates (`VaryKey.names`).
    public var varyNames: [UInt8]
    /// Fingerprint of the policy under which it was obtained,
    public var policy: UInt64
    /// and what that means (`CacheStore.describe`); `nil` if that is not known.
    public var trust: String?
    public var tags: [[UInt8]]
    public var isInMemory: Bool
    public var isOnDisk: Bool
    /// Parts of it are stored, as entries of their own (`isSlice`).
    public var isOfParts: Bool
    /// It is a part of a representation.
    public var isSlice: Bool
    /// The stored head; only if a certain key was asked for.
    public var head: [UInt8]?

    /// The URL, without the prefix of the route.
    public var url: String {
        key.withUnsafeBytes { String(decoding: StoredURI($0).uri, as: UTF8.self) }
    }

    /// The prefix of the route, without the colon; empty for the usual one.
    public var route: String {
        key.withUnsafeBytes { String(decoding: StoredURI($0).route.dropLast(), as: UTF8.self) }
    }
}

extension StoredEntryInfo {
    /// Of a response in memory.
    init(_ response: CachedResponse, hits: UInt64, tagFields: [[UInt8]] = []) {
        self.init(
            key: [UInt8](response.key), head: response.head, metadata: response.metadata,
            varyNames: response.varyKey.names, policy: response.policy, tagFields)
        self.hits = hits
        bytes = response.metadata.bodyBytes
        staleSince = response.staleSince > 0 ? response.staleSince : nil
        isInMemory = true
    }

    /// Of a row; `nil` if its record is damaged.
    init?(_ row: EntryRow, policy options: PolicyOptions, tagFields: [[UInt8]] = []) {
        let whole: StoredEntryInfo? = row.record.withUnsafeBytes { record in
            guard
                let fields = EntryRecord(
                    record, inlineBytes: Int(clamping: EntryRecord.inlineCount(record))),
                let text = EntryRecord.text(record)
            else { return nil }
            let varyStart = EntryRecord.headerBytes + fields.keyCount
            let vary = VaryKey(bytes: [UInt8](record[varyStart..<varyStart + fields.varyCount]))
            let metadata = StoredMetadata(
                storedHead: text.head.bindMemory(to: UInt8.self).span, times: fields.times,
                hasQuery: text.key.contains(UInt8(ascii: "?")), options: options)
            guard let vary, let metadata else { return nil }
            var info = StoredEntryInfo(
                key: [UInt8](text.key), head: text.head, metadata: metadata,
                varyNames: vary.names, policy: fields.policy, tagFields)
            if !info.isOfParts { info.bytes = fields.bodyCount }
            return info
        }
        guard let whole else { return nil }
        self = whole
        hits = UInt64(clamping: row.hits)
        lastUsed = row.accessed
        isOnDisk = true
        if row.staleSince > 0 { makeStale(since: row.staleSince) }
    }

    private init(
        key: [UInt8], head: UnsafeRawBufferPointer, metadata: StoredMetadata, varyNames: [UInt8],
        policy: UInt64, _ tagFields: [[UInt8]]
    ) {
        self.key = key
        status = metadata.status
        contentType = StoredHead.contentType(of: head)
        bytes = metadata.bodyBytes
        hits = 0
        stored = metadata.times.responseTime
        freshUntil = metadata.freshUntil
        self.varyNames = varyNames
        self.policy = policy
        tags = ResponseTags.all(head, further: tagFields)
        isInMemory = false
        isOnDisk = false
        isOfParts = metadata.flags.contains(.parts)
        isSlice = key.withUnsafeBytes { StoredURI($0).isSlice }
        self.head = [UInt8](head)
    }

    mutating func makeStale(since time: Int64) {
        staleSince = staleSince.map { min($0, time) } ?? time
        freshUntil = min(freshUntil, time)
    }
}

/// A row of the database with the beginning of its content's.
struct EntryRow: Sendable {
    let id: Int64
    let accessed: Int64
    let staleSince: Int64
    let hits: Int64
    let record: [UInt8]
}

extension StoredHead {
    /// The value of Content-Type in a stored head; `nil` if there is none.
    static func contentType(of head: UnsafeRawBufferPointer) -> [UInt8]? {
        var found: [UInt8]?
        ResponseTags.visitLines(head) { line in
            let name = Array("content-type:".utf8)
            guard found == nil, line.count >= name.count,
                zip(line, name).allSatisfy({ $0 | ($1 == UInt8(ascii: "-") ? 0 : 0x20) == $1 })
            else { return }
            var value = line[name.count...]
            while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
            while let last = value.last, last == 0x20 || last == 0x0D || last == 0x09 {
                value.removeLast()
            }
            found = Array(value)
        }
        return found
    }
}
