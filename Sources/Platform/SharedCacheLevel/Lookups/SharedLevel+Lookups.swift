import CacheStore
import EventLoop

// Lookups that workers make on connections of their own.
extension SharedLevel {
    /// The connection of the loop that the calling thread runs; `nil` if it runs none.
    var link: LookupLink? {
        guard let loop = EventLoop.current else { return nil }
        if let link = loop.attachments[ObjectIdentifier(self)] {
            return unsafeDowncast(link, to: LookupLink.self)
        }
        // It can only fail for want of descriptors.
        guard view != nil, let link = try? LookupLink(self, on: loop) else { return nil }
        loop.attachments[ObjectIdentifier(self)] = link
        return link
    }

    /// `nil` while only the level's thread can ask the engine.
    var view: EngineView? { shared.withLock { $0.view } }

    /// Begins a lookup, unless a change of the key, or a purge, is on its way to the engine.
    func beginLookup(_ hash: UInt64) -> (EngineView, StoreFlight)? {
        shared.withLock { state in
            guard let view = state.view, !state.changes.arePending(hash) else { return nil }
            return (view, state.loads.begin(hash))
        }
    }

    /// Whether neither a change of its key nor a purge has come since a lookup began.
    func isCurrent(_ flight: StoreFlight) -> Bool {
        shared.withLock { $0.loads.isValid(flight) }
    }

    /// Ends a lookup that is not answered.
    func endLookup(_ flight: StoreFlight) { shared.withLock { $0.loads.end(flight) } }

    /// Has the level's thread look instead.
    func lookAgain(_ pending: PendingLoad) {
        let isAccepted = shared.withLock { state in
            state.loads.end(pending.flight)
            return ask(pending.load, &state, began: pending.began, until: pending.deadline)
        }
        guard isAccepted else { return pending.load.completion(.nothing) }
        proceed()
    }

    /// Answers a lookup.
    func end(_ pending: PendingLoad, finding found: [CachedResponse] = []) {
        let took = now - pending.began
        shared.withLock { state in
            state.loads.end(pending.flight)
            state.statistics.took(took)
            if found.isEmpty {
                state.statistics.misses += 1
            } else {
                state.statistics.hits += 1
                state.statistics.workerHits += 1
            }
        }
        pending.load.completion(found.isEmpty ? .nothing : .found(found, isShared: true))
    }

    /// Answers a lookup whose reply did not come in time.
    func endLate(_ pending: PendingLoad) {
        count(.timeout)
        end(pending)
    }

    /// Queues a lookup for the level's thread. Under the state's lock.
    func ask(_ load: LevelLoad, _ state: inout State, began: Int64, until deadline: Int64) -> Bool {
        guard state.level == .ready, state.waiting < options.queueCommands else { return false }
        state.add(
            .load(load, state.loads.begin(load.hash), began: began, deadline: deadline))
        return true
    }

    func count(_ reason: SharedLevelReason) {
        shared.withLock { $0.statistics[reason] += 1 }
    }
}
