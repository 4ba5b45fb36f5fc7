import CachePolicy
import CacheStore
import RedisProtocol
import SharedCache

// What is removed: variants of a key, all that there is of a key, and the chunks of bodies.
extension LevelLoop {
    func sendForgetting(_ key: SharedKey, _ variants: [SharedVariant]) {
        guard let digest = key.bytes.withUnsafeBytes({ digest(of: $0) }),
            let link = link(of: digest)
        else { return lose(key, isInvalid: false) }
        let mark = key.bytes.withUnsafeBytes { level.systemTrust.mark(of: $0) }
        let fields = variants.compactMap { $0.field(marked: mark) }
        for field in fields { askForPredecessor(digest, field, nil, on: link) }
        sendFields(
            fields + fields.map { Engine.chunksField(of: $0) }, of: engine.hash(digest),
            .removed(key, isInvalid: false), to: link)
    }

    /// Removes all variants of a key.
    /// - Parameter isInvalid: whether all gateways have to know of it: otherwise it is only the
    ///   engine's copy that is of no use.
    func sendRemoval(_ key: SharedKey, isInvalid: Bool) {
        guard let digest = key.bytes.withUnsafeBytes({ digest(of: $0) }) else {
            _ = engine.remove(key.hash)
            return lose(key, isInvalid: isInvalid)
        }
        guard let link = link(of: digest) else {
            _ = engine.remove(key.hash)
            endWait(digest)
            return lose(key, isInvalid: isInvalid)
        }
        sendRemoval(key, digest, isInvalid: isInvalid, to: link)
    }

    func sendRemoval(
        _ key: SharedKey, _ digest: [UInt8], isInvalid: Bool, to link: ServerLink
    ) {
        let number = engine.remove(key.hash)
        endWait(digest)
        let hash = engine.hash(digest)
        let removal = PendingRemoval(key, isInvalid: isInvalid, number: engine.removals)
        if isInvalid { askWhetherStored(removal, hash, on: link) }
        send(.removed(key, isInvalid: isInvalid), to: link) {
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

    /// Whether there is anything of a key that is about to be removed: then all are told at once
    /// (``RemovedURIs``).
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
        guard removal.isInvalid else { return }
        let (key, uri) = (removal.key, removal.key.uri)
        let decision = removedURIs.removed(
            uri, key.bytes, isStored: removal.fields > 0, removal: removal.number, now: now)
        if case .tell = decision { tell(key, of: uri) }
        flush()
    }

    private func tell(_ key: SharedKey, of uri: [UInt8]) {
        let name = engine.names.removed
        removedURIs.tells(uri, key.bytes, after: engine.removals, now: now)
        guard
            let record = RemovedKey(key.bytes, uri: uri, by: fleet.instance)
                .record(under: name, by: engine.keyring)
        else { return removedURIs.failed(uri, key.bytes, now: now) }
        level.shared.withLock { $0.statistics.removalsSent += 1 }
        sendEntry(record, to: name, keeping: options.keptRemovals, .removalTold(key))
    }

    /// The others were told that a key is invalid, or could not be.
    func told(_ key: SharedKey, _ reply: RESPValue) {
        if let error = reply.redisError {
            count(SharedLevelReason(error.code))
            removedURIs.failed(key.uri, key.bytes, now: now)
        } else if reply.bytes == nil {
            lose(key, isInvalid: true)
            disconnect(.transport("its streams are gone"), because: .begunAnew)
        }
    }

    /// Tells what it is time for.
    func tellRemoved(_ now: Int64) {
        guard isReady else { return }
        for (uri, key) in removedURIs.timePassed(now) { tell(SharedKey(key), of: uri) }
        flush()
    }

    /// Nobody will be told any longer, unless that is done now.
    func tellAllRemoved() {
        for (uri, key) in removedURIs.takeWaiting() {
            let key = SharedKey(key)
            if isConnected { tell(key, of: uri) } else { lose(key, isInvalid: true) }
        }
    }
}

extension SharedKey {
    fileprivate init(_ bytes: [UInt8]) {
        self.init(bytes: bytes, hash: bytes.withUnsafeBytes { CacheKeyView.hash(of: $0) })
    }

    /// The URI, which it has with the keys of other routes.
    fileprivate var uri: [UInt8] { bytes.withUnsafeBytes { [UInt8](StoredURI($0).uri) } }
}

/// A key that is being removed. Used by the level's thread alone.
final class PendingRemoval: @unchecked Sendable {
    let key: SharedKey
    /// Whether all gateways have to know of it.
    let isInvalid: Bool
    /// Which own removal it is (`Engine.removals`).
    let number: UInt64
    /// Fields of its hash that are responses.
    var fields: Int64 = 0

    init(_ key: SharedKey, isInvalid: Bool, number: UInt64) {
        self.key = key
        self.isInvalid = isInvalid
        self.number = number
    }
}
