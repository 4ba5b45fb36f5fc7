import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Of the gateways that share a level of the cache, one asks the server (`FetchLease`).
extension Exchange {
    /// Whether its response may be one for all, so that one gateway of a fleet should ask for it. A
    /// request with a cookie is not compared with those of other gateways: where the response is
    /// not known to be shared it might be personal.
    var mayFetchForFleet: Bool { mayFetchForFleet(because: .uriMiss) }

    private func mayFetchForFleet(because reason: ForwardReason) -> Bool {
        let present = request.fields.present
        guard case .none = collapsing.role, passes == 0, !present.contains(.cookie), let origin
        else { return false }
        return CacheDecision.mayCollapse(request.method, with: present, reason)
            && origin.cacheStores && origin.caching.sliceBytes == nil
    }

    /// Before a stale response is confirmed: asks once whether another gateway has done so, and
    /// waits for one that does.
    @inline(never)
    func asksForFresh(
        insteadOf stale: CachedResponse, because reason: ForwardReason, _ view: CacheKeyView
    ) -> Bool {
        guard caching.askForFresh == .notAsked, case .stale = reason,
            !stale.metadata.flags.contains(.parts), let store, store.isShared,
            mayFetchForFleet(because: reason), register()
        else { return false }
        caching.identify(by: CacheKey(view))
        guard goesOn(after: .decided(.load)) else { return true }
        let (token, mailbox) = (token, environment.mailbox)
        let isAccepted = store.loadFresh(insteadOf: stale, policy: cacheOptions) {
            mailbox.post(.loaded(token, $0))
        }
        caching.asksForFresh(isAccepted ? .asking : .asked)
        if isAccepted {
            environment.wakeReadersAfterTurn()
        } else if goesOn(after: .loaded), let origin {
            lookUp(at: origin)
        }
        return true
    }

    /// Goes on with what it has, unless a fresh response was found.
    func goesOnWithStale(after result: LoadResult) -> Bool {
        caching.asksForFresh(.asked)
        switch result {
        case .found: return false
        case .nothing: break
        case .lead(let lease): collapsing.hold(lease)
        }
        guard let origin else { return false }
        lookUp(at: origin)
        return true
    }

    /// The response that all gateways wait for is stored, or will not be. If there is none, another
    /// exchange of this gateway may have the lease as well, and asks for the next one.
    @inline(never)
    func endLease(_ end: FlightEnd) {
        guard let lease = collapsing.takeLease() else { return }
        switch end {
        case .stored: lease.end(.stored)
        case .notStored: lease.end(.notStored)
        case .failed: break
        }
    }
}
