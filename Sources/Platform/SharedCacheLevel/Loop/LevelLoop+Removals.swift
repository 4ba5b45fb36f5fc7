import CacheStore
import RedisProtocol
import SharedCache

// What is removed: variants of a key, all that there is of a key, and the chunks of bodies.
extension LevelLoop {
    func sendForgetting(_ key: SharedKey, _ variants: [SharedVariant]) {
        guard let digest = key.bytes.withUnsafeBytes({ digest(of: $0) }),
            let link = link(of: digest)
        else { return giveUp(.removed(key)) }
        let mark = key.bytes.withUnsafeBytes { level.systemTrust.mark(of: $0) }
        let fields = variants.compactMap { $0.field(marked: mark) }
        for field in fields { askForPredecessor(digest, field, nil, on: link) }
        sendFields(
            fields + fields.map { Engine.chunksField(of: $0) }, of: engine.hash(digest),
            .removed(key), to: link)
    }

    func sendRemoval(_ key: SharedKey) {
        guard let digest = key.bytes.withUnsafeBytes({ digest(of: $0) }) else {
            _ = engine.remove(key.hash)
            return giveUp(.removed(key))
        }
        guard let link = link(of: digest) else {
            _ = engine.remove(key.hash)
            endWait(digest)
            return giveUp(.removed(key))
        }
        sendRemoval(key, digest, to: link)
    }

    func sendRemoval(_ key: SharedKey, _ digest: [UInt8], to link: ServerLink) {
        let number = engine.remove(key.hash)
        endWait(digest)
        let hash = engine.hash(digest)
        let removal = PendingRemoval(key)
        askWhetherStored(removal, hash, on: link)
        send(.removed(key), to: link) {
            $0.begin(2)
            $0.add("UNLINK")
            $0.add(hash)
        }
        // What others store of requests that they sent before is not found.
        guard let record = engine.record(number, under: engine.names.index(digest)) else {
            return
        }
        send(.numberQueued(removal), to: link) {
            $0.begin(1)
            $0.add("MULTI")
        }
        send(.numberQueued(removal), to: link) {
            $0.begin(4)
            $0.add("HSET")
            $0.add(hash)
            $0.add(Engine.numberField)
            $0.add(record)
        }
        sendExpiry(hash, Engine.numberMilliseconds, .numberQueued(removal), to: link)
        send(.numberSet(removal), to: link) {
            $0.begin(1)
            $0.add("EXEC")
        }
    }

    /// Removes the chunks of a body.
    /// - Parameter isRead: whether others may be reading them, for whom they stay for a while.
    func sendDropping(_ body: SharedBody, _ chunks: UInt32, isRead: Bool) {
        // Otherwise they expire.
        guard let link = link(of: body.digest) else { return }
        for number in 0..<chunks {
            let name = engine.names.chunk(body.digest, body: body.token, number)
            if isRead {
                sendExpiry(name, Engine.readingMilliseconds, .nothing, to: link)
            } else {
                send(.nothing, to: link) {
                    $0.begin(2)
                    $0.add("UNLINK")
                    $0.add(name)
                }
            }
        }
    }

    // MARK: Telling others

    /// Whether there is anything of a key that is about to be removed: only then others may have it
    /// as well, and are told.
    func askWhetherStored(_ removal: PendingRemoval, _ hash: [UInt8], on link: ServerLink) {
        send(.fieldCount(removal), to: link) {
            $0.begin(2)
            $0.add("HLEN")
            $0.add(hash)
        }
        send(.numberCount(removal), to: link) {
            $0.begin(3)
            $0.add("HEXISTS")
            $0.add(hash)
            $0.add(Engine.numberField)
        }
    }

    func tell(_ removal: PendingRemoval) {
        let name = engine.names.removed
        guard removal.fields > 0,
            let record = RemovedKey(removal.key.bytes, by: fleet.instance)
                .record(under: name, by: engine.keyring)
        else { return }
        level.shared.withLock { $0.statistics.removalsSent += 1 }
        sendEntry(record, to: name, keeping: options.keptRemovals, .told)
        flush()
    }
}

/// A key that is being removed. Used by the level's thread alone.
final class PendingRemoval: @unchecked Sendable {
    let key: SharedKey
    /// Fields of its hash that are responses.
    var fields: Int64 = 0
    /// Whether its new number is another node's business.
    var isRedirected = false

    init(_ key: SharedKey) { self.key = key }
}
