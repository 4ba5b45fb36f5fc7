import CacheStore
import EventLoop

// What those are told who ask the engine on connections of their own.
extension LevelLoop {
    /// They may ask it again once all that this gateway has purged is in the table. Of a cluster
    /// only the level's thread knows which node has what.
    func offerView() {
        guard cluster == nil, isReady, fleet.isFollowing, let generation = engine.generation,
            let purges = fleet.table, let place = home.socket.place
        else { return }
        level.shared.withLock { state in
            guard state.view == nil, state.level == .ready,
                state.announcements <= fleet.written
            else { return }
            state.views += 1
            state.view = EngineView(
                state.views, of: engine, at: place, in: generation, purges: purges)
        }
    }

    /// What they know does not hold any longer.
    func withdrawView() { level.shared.withLock { $0.view = nil } }

    // MARK: Changes

    /// The changes that were written until now have been carried out when the engine has replied to
    /// all that was.
    func markChanges() {
        guard first == commands.count, takenChanges > (marks.last?.changes ?? endedChanges) else {
            return
        }
        marks.append((takenChanges, home.asked))
        endChanges()
    }

    /// Replies have come.
    func endChanges() {
        var ended: UInt64?
        while let mark = marks.first, home.answered >= mark.asked {
            ended = mark.changes
            _ = marks.popFirst()
        }
        guard let ended else { return }
        endedChanges = ended
        level.shared.withLock { $0.changes.end(through: ended) }
    }

    /// There will be no replies: what was not carried out is remembered.
    func forgetChanges() {
        marks = FIFO()
        level.shared.withLock { state in
            endedChanges = state.changes.count
            state.changes.end(through: endedChanges)
        }
    }
}
