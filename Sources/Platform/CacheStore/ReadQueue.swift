import CachePolicy
import Clocks
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
///
/// Waking a thread costs more than most reads, which the system's page cache answers. So a request
/// wakes a reader only where none is awake, or more wait than those awake will soon have done;
/// a reader takes one request after another before it sleeps again; and who has several requests
/// to make wakes readers once. Once a read has taken long, the device is slow, and for a while
/// every request wakes a reader.
final class ReadQueue: Sendable {
    private struct State {
        var requests: [ReadRequest?] = []
        var next = 0
        var isClosed = false
        var readers = Readers()
        var count: Int { requests.count - next }

        mutating func removeFirst() -> ReadRequest? {
            let request = requests[next]
            requests[next] = nil
            next += 1
            if next == requests.count {
                requests.removeAll(keepingCapacity: requests.capacity <= 1024)
                next = 0
            } else if next >= 1024, next * 2 > requests.count {
                requests.removeFirst(next)
                next = 0
            }
            return request
        }
    }

    /// Who reads, and who has to be woken.
    struct Readers: Equatable {
        /// They sleep, those among them that are being woken included.
        var asleep = 0
        var beingWoken = 0
        var reading = 0
        /// Reads that are still to be taken for slow.
        var slowReads = 0

        /// What one reader that is awake has done before another one would be there.
        static let requestsEach = 8
        static let slowMicroseconds: Int64 = 1000

        /// Whether a reader is woken for the last of so many requests. It counts as being woken.
        mutating func wakes(for waiting: Int) -> Bool {
            let awake = reading + beingWoken
            guard asleep > beingWoken, waiting > beingWoken,
                awake == 0 || slowReads > 0 || waiting > awake * Self.requestsEach
            else { return false }
            beingWoken += 1
            return true
        }

        /// A read has ended, and its reader looks for another request.
        mutating func ended(after microseconds: Int64) {
            reading -= 1
            if microseconds >= Self.slowMicroseconds {
                slowReads = 64
            } else if slowReads > 0 {
                slowReads -= 1
            }
        }

        mutating func fellAsleep() { asleep += 1 }

        mutating func wokeUp() {
            asleep -= 1
            beingWoken = max(0, beingWoken - 1)
        }
    }

    private let monitor = Monitor(State())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { monitor.withLock { $0.count } }

    /// false: too many are waiting, or the store is closed; `request` is not answered then.
    /// - Parameter wakes: false: the caller calls ``wakeReaders()`` in a moment.
    func append(_ request: ReadRequest, wakes: Bool = true) -> Bool {
        let isTaken = monitor.withLock { state in
            guard !state.isClosed, state.count < limit else { return false }
            state.requests.append(request)
            return true
        }
        if isTaken, wakes { wakeReaders() }
        return isTaken
    }

    /// Wakes as many readers as what waits is work for.
    func wakeReaders() {
        while monitor.withLock({ $0.readers.wakes(for: $0.count) }) { monitor.signal() }
    }

    /// Answers requests until the store is closed and none is left: what a reader's thread does.
    func serve(_ answer: (ReadRequest) -> Void) {
        var elapsed: Int64?
        while let request = take(after: elapsed) {
            let began = Clock.monotonicMicroseconds()
            answer(request)
            elapsed = Clock.monotonicMicroseconds() - began
        }
    }

    /// Waits for a request; nil when the store is closed and none is left.
    /// - Parameter elapsed: the microseconds that the reader's last read took; nil: it has none.
    func take(after elapsed: Int64?) -> ReadRequest? {
        var elapsed = elapsed
        var isAsleep = false
        var wakes = false
        let request: ReadRequest? = monitor.wait { state in
            if let ended = elapsed.take() { state.readers.ended(after: ended) }
            if isAsleep { state.readers.wokeUp() }
            guard state.count > 0 else {
                guard !state.isClosed else { return .done(nil) }
                isAsleep = true
                state.readers.fellAsleep()
                return .signal
            }
            state.readers.reading += 1
            let request = state.removeFirst()
            wakes = state.readers.wakes(for: state.count)
            return .done(request)
        }
        if wakes { monitor.signal() }
        return request
    }

    func close() {
        monitor.withLock { $0.isClosed = true }
        monitor.broadcast()
    }
}
