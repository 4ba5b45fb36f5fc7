import CachePolicy
import CacheStore
import Clocks
import HTTPCore
import Locking
import PinfoldEngine

/// What an import has done with the entries of an archive until now.
struct ImportCounts: Sendable, Equatable {
    /// Responses that were stored,
    var stored = 0
    /// and slices of some of them.
    var slices = 0
    /// Obtained under another trust configuration than the one in force for their URL, or for a URL
    /// that no listener would answer from the cache.
    var otherTrust = 0
    /// Their checksum is wrong, or they contradict themselves, or are not as any store has them.
    var damaged = 0
    /// Not accepted by the store: too large, or no room.
    var refused = 0

    static let shape = ObjectShape<ImportCounts>(
        "What has been done with the entries of an archive until now.",
        [
            .number("stored", "Responses that were stored.") { $0.stored },
            .number("slices", "Slices of these that were stored.") { $0.slices },
            .number(
                "otherTrust",
                "Entries that were obtained under another trust configuration, and left out."
            ) { $0.otherTrust },
            .number(
                "damaged",
                "Entries whose checksum is wrong, or that no store has written, and were left out."
            ) { $0.damaged },
            .number("refused", "Entries that the store did not accept.") { $0.refused },
        ])
}

/// One import under way: reads an archive piece by piece, and stores its entries. Used by one
/// caller at a time.
final class CacheImport: @unchecked Sendable {
    private let store: CacheStore
    private let policy: PolicySnapshot
    private let roles: [Ingress.Role]
    private var reader = ArchiveReader()
    private(set) var counts = ImportCounts()
    private var ticket: StoreTicket?
    private var hash = ArchiveHash()
    /// Whether an entry has begun and not ended.
    private var isInEntry = false
    /// Whether that one is a slice.
    private var isInSlice = false
    /// What says where its parts are; `nil` if its content is not that.
    private var parts: [UInt8]?

    init(_ cache: CacheAdministration, _ policy: PolicySnapshot) {
        store = cache.store
        self.policy = policy
        roles = policy.configuration.listeners.map { ListenerSockets.role($0) }
    }

    /// Whether the archive has been read to its end.
    var isComplete: Bool { reader.isComplete }

    /// Whether the next piece should wait until the disk has caught up.
    var isCongested: Bool { ticket?.isCongested ?? false }

    func read(_ piece: [UInt8]) throws(ArchiveError) {
        var reader = reader
        defer { self.reader = reader }
        try reader.read(piece) { (record) throws(ArchiveError) in
            let bytes = record.bytes
            switch record.kind {
            case .entry, .slice:
                guard !isInEntry else { throw .malformed }
                isInEntry = true
                isInSlice = record.kind == .slice
                hash = ArchiveHash()
                hash.add(bytes)
                begin(record)
            case .content:
                guard isInEntry else { throw .malformed }
                hash.add(bytes)
                let goesOn = bytes.withUnsafeBytes { ticket?.append($0) ?? true }
                if !goesOn { refuse() }
                // No more than what the ticket has accepted.
                if ticket != nil { parts? += bytes }
            case .entryEnd:
                guard isInEntry, bytes.count == 8 else { throw .malformed }
                isInEntry = false
                end(bytes.reduce(0) { $0 << 8 | UInt64($1) })
            case .archiveEnd:
                guard !isInEntry else { throw .malformed }
            }
        }
    }

    /// What is not stored is read over.
    private func begin(_ record: CacheArchive.Record) {
        guard let entry = ArchivedEntry(record.bytes, version: record.version),
            let vary = VaryKey(bytes: entry.vary), isInSlice ? entry.isSlice : entry.isResponse
        else {
            counts.damaged += 1
            return
        }
        let url = StoredURL(key: entry.key)
        guard let request = try? AssumedRequest(url.text, fields: [], under: policy),
            let basis = request.basis(
                ofKey: url.isQuery ? entry.key.ofGet : entry.key, under: policy, roles: roles),
            basis.fingerprint == entry.policy
        else {
            counts.otherTrust += 1
            return
        }
        let key = CacheKey(bytes: entry.key)
        let metadata = StoredMetadata(
            storedHead: entry.head.span,
            times: StoredTimes(
                requestTime: entry.requestTime, responseTime: entry.responseTime,
                initialAge: entry.initialAge),
            hasQuery: key.hasQuery, options: basis.options)
        guard let metadata, StoredHead.isSound(entry.head, contentBytes: entry.bytes),
            !metadata.flags.contains(.parts) || entry.bytes == PartsBody.byteCount
        else {
            counts.damaged += 1
            return
        }
        parts = metadata.flags.contains(.parts) ? [] : nil
        do throws(StoreRefusalReason) {
            ticket = try key.withView { view throws(StoreRefusalReason) in
                try store.beginStore(
                    entry, key: view, vary: vary, metadata,
                    // As they are stored when they come from a server.
                    policy: isInSlice ? 0 : entry.policy)
            }
        } catch {
            counts.refused += 1
        }
    }

    private func refuse() {
        ticket = nil
        counts.refused += 1
    }

    private func end(_ checksum: UInt64) {
        guard let ticket else { return }
        self.ticket = nil
        guard checksum == hash.value, parts.map({ PartsBody.isSound($0) }) ?? true else {
            ticket.abandon()
            counts.damaged += 1
            return
        }
        switch ticket.finish() {
        case .stored, .storedOnDisk:
            if isInSlice { counts.slices += 1 } else { counts.stored += 1 }
        case .refused: counts.refused += 1
        }
    }
}

extension CacheStore {
    fileprivate func beginStore(
        _ entry: ArchivedEntry, key: CacheKeyView, vary: VaryKey, _ metadata: StoredMetadata,
        policy: UInt64
    ) throws(StoreRefusalReason) -> StoreTicket {
        // A typed error passes through no closure of the standard library.
        let copy = UnsafeMutableRawBufferPointer.allocate(
            byteCount: entry.head.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: entry.head)
        return try beginStore(
            key: key, vary: vary, head: UnsafeRawBufferPointer(copy), metadata: metadata,
            policy: policy, staleSince: entry.staleSince, expectedLength: entry.bytes)
    }
}

extension ArchivedEntry {
    /// Whether it can be a response: no URI has a NUL.
    fileprivate var isResponse: Bool {
        !key.contains(0) && key.count <= CacheKey.maximumBytes
    }

    /// Whether it can be a slice of one.
    fileprivate var isSlice: Bool {
        guard let slice = SliceKey(key), !slice.response.contains(0),
            slice.response.count <= CacheKey.maximumBytes
        else { return false }
        return vary.isEmpty && StoredSlice.isHead(head)
    }
}

extension [UInt8] {
    /// The key of GET, in place of that of QUERYs.
    var ofGet: [UInt8] {
        guard let word = firstRange(of: Array("query:".utf8)) else { return self }
        var route = Array(self[..<word.lowerBound])
        if route.last == UInt8(ascii: "-") { route[route.count - 1] = UInt8(ascii: ":") }
        return route + self[word.upperBound...]
    }
}

extension CacheKey {
    fileprivate func withView<Result>(
        _ body: (CacheKeyView) throws(StoreRefusalReason) -> Result
    ) throws(StoreRefusalReason) -> Result {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        return try body(CacheKeyView(bytes: UnsafeRawBufferPointer(copy), hash: hash))
    }
}
