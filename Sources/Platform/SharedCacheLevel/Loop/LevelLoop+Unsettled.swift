import Clocks
import RedisProtocol
import SharedCache

// What could not be removed: of a cluster because its node is away or is about to be another one,
// then it is removed before anything of its slot is found again; of any engine because that had no
// memory for the key's new number.
extension LevelLoop {
    /// How often that is tried.
    static let retryMilliseconds: Int64 = 500
    /// Keys that are tried at once of an engine that is in use: it may have no memory for long.
    private static let retriedKeys = 2048

    /// A change of a key could not be carried out: it is made up for.
    func noteLost() {
        tellLostAt = tellLostAt ?? now + Self.retryMilliseconds
        level.keepLost()
    }

    /// Serves slots again whose old nodes have answered.
    func settle(_ now: Int64) {
        guard let cluster, !cluster.unsettled.isEmpty else { return }
        var hasSettled = false
        var due: Set<UInt16> = []
        for (slot, place) in cluster.unsettled where place.link.answered >= place.through {
            if let retryAt = place.retryAt {
                if now >= retryAt { due.insert(slot) }
            } else {
                self.cluster?.settled(slot)
                hasSettled = true
            }
        }
        if !due.isEmpty, !level.shared.withLock({ $0.lost.isEverything }) {
            // What is still there has to be removed before the slot is served.
            let lost = lostSlots()
            for slot in due.subtracting(lost) { self.cluster?.settled(slot) }
            tellLost(of: due.intersection(lost))
        } else if hasSettled || !due.isEmpty {
            tellLost()
        }
    }

    private func lostSlots() -> Set<UInt16> {
        let keys = level.shared.withLock { Array($0.lost.keys.keys) }
        let digests = keys.compactMap { $0.withUnsafeBytes { SharedName.digest(of: $0) } }
        return Set(digests.map { ClusterSlot.of($0.span) })
    }

    /// Removes what could not be removed before, as far as its nodes can be asked by now.
    /// - Parameter moving: slots whose nodes are asked although they are moving.
    func tellLost(of moving: Set<UInt16> = []) {
        tellLostAt = nil
        guard isReady else { return }
        let (keys, isEverything, hasForgotten) = level.shared.withLock { state in
            (
                state.lost.takeKeys(cluster == nil ? Self.retriedKeys : .max),
                state.lost.isEverything,
                state.lost.takeForgotten()
            )
        }
        if hasForgotten { useNothingFromBefore() }
        // There were too many to remember: all gateways are told, before anything else is asked.
        if isEverything {
            return disconnect(.transport("too much could not be removed"), because: .overloaded)
        }
        guard !keys.isEmpty else { return }
        var tried: [UInt16: ServerLink] = [:]
        for (bytes, lost) in keys {
            let (key, isInvalid) = (SharedKey(bytes: bytes, hash: lost.hash), lost.isInvalid)
            let digest = bytes.withUnsafeBytes { SharedName.digest(of: $0) }
            let slot = digest.map { ClusterSlot.of($0.span) }
            if let digest, let link = link(of: digest) {
                sendRemoval(key, digest, isInvalid: isInvalid, to: link)
            } else if let digest, let slot, moving.contains(slot),
                let link = cluster?.owner(of: slot), link.isInUse
            {
                sendRemoval(key, digest, isInvalid: isInvalid, to: link)
                tried[slot] = link
            } else {
                level.shared.withLock { $0.lost.note(key, isInvalid: isInvalid) }
            }
        }
        for (slot, link) in tried {
            self.cluster?.wasRetried(slot, on: link, retryAt: now + Self.retryMilliseconds)
        }
        if level.shared.withLock({ $0.lost.isEmpty }) {
            if level.record?.record.hasLost ?? false { sendBarrier { [level] in level.toldLost() } }
        } else {
            noteLost()
        }
        flush()
    }
}
