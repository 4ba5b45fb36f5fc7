import CachePolicy
import CacheStore
import RedisProtocol
import SharedCache

// What is made of the values that were read for a lookup, on whatever thread.
extension PendingLoad {
    /// Bytes of the name of a variant's field.
    static let fieldBytes = 16

    /// Reads a value with its body, unless that is in chunks, and verifies both.
    /// - Returns: `nil` if it was stored under another instance.
    func read(
        _ bytes: [UInt8], in field: [UInt8], of instance: SharedToken, _ names: SharedName,
        _ keyring: SharedKeyring
    ) -> Result<FoundValue?, SharedRecordError> {
        let name = names.value(digest, variant: field)
        return withKey { key in
            bytes.withUnsafeBytes { stored in
                do throws(SharedRecordError) {
                    let value = try SharedValue(
                        stored, under: name, of: key, variant: field, by: keyring)
                    if case .inline = value.body { _ = try value.inlineBody(stored) }
                    guard value.instance == instance,
                        let vary = VaryKey(bytes: [UInt8](stored[value.vary]))
                    else { return .success(nil) }
                    return .success(FoundValue(bytes, value, vary))
                } catch {
                    return .failure(error)
                }
            }
        }
    }

    /// Compares a value with what was purged since it was stored, and notes since when it is stale.
    /// - Returns: whether it may be used.
    func judge(_ found: FoundValue, by purges: PurgeTable, _ clock: EngineClock) -> Bool {
        if let after = purges.obtainedAfter, found.value.times.responseTime <= after {
            return false
        }
        let verdict = withKey { key in
            found.bytes.withUnsafeBytes { bytes in
                purges.verdict(
                    key: key, head: UnsafeRawBufferPointer(rebasing: bytes[found.value.head]),
                    born: found.value.born)
            }
        }
        switch verdict {
        case .current, .stale:
            // Another version may have stored what was stale already.
            var since = found.value.staleSince.flatMap { clock.ownSeconds($0) }
            if case .stale(let purged) = verdict { since = min(since ?? purged, purged) }
            found.staleSince = since.map { max(1, $0) } ?? 0
            return true
        case .gone, .unknown: return false
        }
    }

    /// Of responses that differ only in the trust under which they were obtained, the one that is
    /// wanted, or else the latest.
    func keepWanted() {
        guard found.count > 1 else { return }
        let trust = load.trust.map { $0 ^ mark }
        found.sort { left, right in
            let isWanted = (left.value.trust == trust, right.value.trust == trust)
            guard isWanted.0 == isWanted.1 else { return isWanted.0 }
            return left.value.times.responseTime > right.value.times.responseTime
        }
        var known: Set<VaryKey> = []
        found = found.filter { known.insert($0.vary).inserted }
    }

    /// Runs `body` with what was read of a response besides its body; `nil` if its head cannot be
    /// read, or its times are not known.
    func withHead<Result>(
        of found: FoundValue, _ clock: EngineClock, _ body: (LoadedHead) -> Result?
    ) -> Result? {
        let value = found.value
        guard let times = clock.toOwn(value.times) else { return nil }
        return found.bytes.withUnsafeBytes { bytes -> Result? in
            let head = UnsafeRawBufferPointer(rebasing: bytes[value.head])
            let made = StoredMetadata(
                storedHead: head.bindMemory(to: UInt8.self).span, times: times,
                hasQuery: load.key.contains(UInt8(ascii: "?")), options: load.policy)
            guard let metadata = made else { return nil }
            return body(
                LoadedHead(
                    vary: found.vary, metadata: metadata, policy: value.trust ^ mark, head: head,
                    staleSince: found.staleSince))
        }
    }

    /// The response of a value whose body follows it.
    func inlineResponse(_ found: FoundValue, _ clock: EngineClock) -> CachedResponse? {
        withHead(of: found, clock) { loaded -> CachedResponse? in
            found.bytes.withUnsafeBytes { bytes in
                let body = UnsafeRawBufferPointer(rebasing: bytes[found.value.recordCount...])
                return load.memory.makeResponse(loaded, for: load, body: body)
            }
        }
    }
}
