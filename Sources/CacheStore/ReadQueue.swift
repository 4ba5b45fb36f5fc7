import CachePolicy
import Locking

/// What the disk may have for a request.
package enum DiskVariants: Sendable, Equatable {
    /// It does not have the key.
    case none
    /// It has the key, for other requests.
    case others
    /// One of these variants of the key may be there.
    case candidates([VaryKey])
}

/// What a load found.
package enum LoadResult: Sendable {
    /// Every variant found, at least one. Small bodies are in memory (and in the memory tier, if
    /// they fit); large ones are `.disk`.
    case found([CachedResponse])
    /// The disk does not have the key, or no longer.
    case nothing
}

/// A chunk, or why there is none.
package enum ChunkResult: Sendable {
    case chunk(ChunkBytes)
    /// The rows are no longer there: the tier went off or was emptied.
    case gone
    /// The rows are not what was written. The entry has been dropped.
    case damaged
}

/// A key to load.
struct LoadRequest: Sendable {
    let key: [UInt8]
    let hash: UInt64
    /// Which variants; nil: all.
    let variants: [VaryKey]?
    let policy: PolicyOptions
    /// It has already waited for the writer once.
    var isSecondTry = false
    let completion: @Sendable (LoadResult) -> Void
}

/// What a reader is asked for.
enum ReadRequest: Sendable {
    case load(LoadRequest)
    case chunk(DiskBody, index: Int, @Sendable (ChunkResult) -> Void)

    /// Answers without having looked.
    func giveUp() {
        switch self {
        case .load(let load): load.completion(.nothing)
        case .chunk(_, _, let completion): completion(.gone)
        }
    }
}

/// The readers' queue: bounded, first in first out.
final class ReadQueue: Sendable {
    private struct State {
        var requests: [ReadRequest?] = []
        var next = 0
        var isClosed = false
        var count: Int { requests.count - next }
    }

    private let monitor = Monitor(State())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { monitor.withLock { $0.count } }

    /// false: too many are waiting, or the store is closed; `request` is not answered then.
    func append(_ request: ReadRequest) -> Bool {
        let taken = monitor.withLock { state in
            guard !state.isClosed, state.count < limit else { return false }
            state.requests.append(request)
            return true
        }
        if taken { monitor.signal() }
        return taken
    }

    /// Waits for a request; nil when the store is closed and none is left.
    func take() -> ReadRequest? {
        monitor.wait { state in
            guard state.count > 0 else { return state.isClosed ? .done(nil) : .signal }
            let request = state.requests[state.next]
            state.requests[state.next] = nil
            state.next += 1
            if state.next == state.requests.count {
                state.requests.removeAll(keepingCapacity: state.requests.capacity <= 1024)
                state.next = 0
            } else if state.next >= 1024, state.next * 2 > state.requests.count {
                state.requests.removeFirst(state.next)
                state.next = 0
            }
            return .done(request)
        }
    }

    func close() {
        monitor.withLock { $0.isClosed = true }
        monitor.broadcast()
    }
}
