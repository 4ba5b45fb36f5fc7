import CacheStore
import SharedCache

/// The bodies in chunks that this process knows of: which entry has them, and who reads them. Of
/// what nobody needs any longer the chunks are removed; those that nobody knows of expire.
struct KnownBodies: Sendable {
    /// The entry that has a body, as this process knows it.
    struct Entry: Sendable, Equatable {
        /// The hash of its key.
        let key: UInt64
        let variant: SharedVariant
        let head: [UInt8]

        init(_ response: CachedResponse) {
            key = response.keyHash
            variant = SharedVariant(response)
            head = [UInt8](response.head)
        }
    }

    private struct Known: Sendable {
        let body: SharedBody
        /// `nil` while it arrives.
        var chunks: SharedChunks?
        /// Chunks that were sent.
        var sent: UInt32 = 0
        var isArriving: Bool
        var readers = 0
        /// `nil` if there is none, or it has been replaced or removed.
        var entry: Entry?
        var wasPublished = false
        /// Whether it had an entry that was replaced or removed by this process.
        var wasVoided = false

        var isNeeded: Bool { isArriving || readers > 0 || entry != nil }
    }

    /// Bodies without readers at most.
    private static let idleLimit = 4096

    private var bodies: [Int64: Known] = [:]
    private var ids: [SharedBody: Int64] = [:]
    /// Those with an entry, by the hash of its key.
    private var byKey: [UInt64: [Int64]] = [:]
    private var last: Int64 = 0

    var count: Int { bodies.count }

    /// A body begins to arrive.
    mutating func begin(_ body: SharedBody) -> Int64 {
        add(Known(body: body, isArriving: true))
    }

    private mutating func add(_ known: Known) -> Int64 {
        last += 1
        bodies[last] = known
        ids[known.body] = last
        return last
    }

    /// Another chunk of it is sent.
    mutating func send(_ id: Int64) { bodies[id]?.sent += 1 }

    /// It is complete, and has a reader.
    mutating func finish(_ id: Int64, _ chunks: SharedChunks) {
        bodies[id]?.chunks = chunks
        bodies[id]?.isArriving = false
        bodies[id]?.readers += 1
    }

    /// A body was found in the engine, and has another reader.
    mutating func read(_ body: SharedBody, _ chunks: SharedChunks) -> Int64 {
        let id =
            ids[body]
            ?? add(Known(body: body, chunks: chunks, sent: chunks.chunkCount, isArriving: false))
        bodies[id]?.readers += 1
        bodies[id]?.wasPublished = true
        return id
    }

    /// Where the chunks of a body are; `nil` if it is not known, or not complete.
    func place(_ id: Int64) -> (body: SharedBody, chunks: SharedChunks)? {
        guard let known = bodies[id], let chunks = known.chunks else { return nil }
        return (known.body, chunks)
    }

    /// The entry that has a body; `nil` for none.
    func entry(_ id: Int64) -> Entry? { bodies[id]?.entry }

    /// A body has this entry from now on.
    mutating func publish(_ id: Int64, _ response: CachedResponse) {
        guard bodies[id] != nil else { return }
        unlink(id)
        bodies[id]?.entry = Entry(response)
        bodies[id]?.wasPublished = true
        bodies[id]?.wasVoided = false
        byKey[response.keyHash, default: []].append(id)
    }

    /// The same for a body of which only the name is known, if it has readers here.
    mutating func publish(_ body: SharedBody, _ response: CachedResponse) {
        if let id = ids[body] { publish(id, response) }
    }

    /// Takes its entry from a body.
    private mutating func unlink(_ id: Int64) {
        guard let entry = bodies[id]?.entry else { return }
        bodies[id]?.entry = nil
        byKey[entry.key]?.removeAll { $0 == id }
        if byKey[entry.key]?.isEmpty == true { byKey[entry.key] = nil }
    }

    /// The entries of a key have been replaced or removed: those of these variants, or all if
    /// `nil`. Returns what to drop.
    mutating func void(_ key: UInt64, _ variants: [SharedVariant]?) -> [SharedCommand] {
        guard let ids = byKey[key] else { return [] }
        return void(ids) { variants?.contains($0.variant) ?? true }
    }

    /// It is not known any longer which entries there are; their chunks expire with them.
    mutating func forgetEntries() {
        for id in byKey.values.flatMap({ $0 }) {
            unlink(id)
            if let known = bodies[id], !known.isNeeded { _ = forget(id) }
        }
    }

    /// All entries have been removed. Returns what to drop.
    mutating func voidAll() -> [SharedCommand] {
        void(byKey.values.flatMap { $0 }) { _ in true }
    }

    private mutating func void(
        _ ids: [Int64], _ isGone: (Entry) -> Bool
    ) -> [SharedCommand] {
        var dropped: [SharedCommand] = []
        for id in ids {
            guard let entry = bodies[id]?.entry, isGone(entry) else { continue }
            unlink(id)
            bodies[id]?.wasVoided = true
            if let command = dropIfUnneeded(id) { dropped.append(command) }
        }
        return dropped
    }

    /// It has one reader less. Returns what to drop.
    mutating func release(_ id: Int64) -> SharedCommand? {
        bodies[id]?.readers -= 1
        if bodies.count > Self.idleLimit, let known = bodies[id], known.readers <= 0 {
            // Its chunks expire.
            if known.entry != nil { return forget(id) }
        }
        return dropIfUnneeded(id)
    }

    /// What arrives is given up. Returns what to drop.
    mutating func abandon(_ id: Int64) -> SharedCommand? {
        guard bodies[id]?.isArriving == true else { return nil }
        bodies[id]?.isArriving = false
        return dropIfUnneeded(id)
    }

    /// The process ends: what arrives is given up. Returns what to drop.
    mutating func abandonAll() -> [SharedCommand] {
        bodies.filter(\.value.isArriving).keys.compactMap { abandon($0) }
    }

    private mutating func forget(_ id: Int64) -> SharedCommand? {
        unlink(id)
        if let known = bodies.removeValue(forKey: id) { ids[known.body] = nil }
        return nil
    }

    private mutating func dropIfUnneeded(_ id: Int64) -> SharedCommand? {
        guard let known = bodies[id], !known.isNeeded else { return nil }
        _ = forget(id)
        // What was only read here is another's to remove.
        guard known.sent > 0, known.wasVoided || !known.wasPublished else { return nil }
        return .dropBody(known.body, chunks: known.sent, wasPublished: known.wasPublished)
    }
}
