import Clocks
import Locking

/// A request to a reader.
enum ReadRequest: Sendable {
    /// - Parameter hasWaited: whether it has already waited for the writer once.
    case load(LevelLoad, hasWaited: Bool = false)
    case chunk(LevelBody, index: Int, @Sendable (ChunkResult) -> Void)

    /// Completes it without having read anything.
    func giveUp() {
        switch self {
        case .load(let load, _): load.completion(.nothing)
        case .chunk(_, _, let completion): completion(.gone)
        }
    }
}

/// The readers' queue: bounded, first in, first out.
///
/// Waking a thread costs more than most reads, which are served from the system's page cache. A
/// request therefore wakes a reader only if none is awake, or if more are waiting than those awake
/// will soon complete; a reader performs one request after another before it sleeps again; and a
/// caller with several requests wakes readers once. Once a read has taken long, the device is slow,
/// and for a while every request wakes a reader.
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

    /// Which readers are awake, and how many have to be woken.
    struct Readers: Equatable {
        /// Readers that sleep, including those that are being woken.
        var asleep = 0
        var beingWoken = 0
        var reading = 0
        /// The number of further reads during which the device counts as slow.
        var slowReads = 0

        /// The number of requests that an awake reader completes before another one would be ready.
        static let requestsEach = 8
        static let slowMicroseconds: Int64 = 1000

        /// Whether a reader is woken for the last of `waiting` requests. It then counts as being
        /// woken.
        mutating func wakes(for waiting: Int) -> Bool {
            let awake = reading + beingWoken
            guard asleep > beingWoken, waiting > beingWoken,
                awake == 0 || slowReads > 0 || waiting > awake * Self.requestsEach
            else { return false }
            beingWoken += 1
            return true
        }

        /// Called when a read has ended, and its reader looks for another request.
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

    /// Returns `false`, without completing `request`, if too many are waiting or the store is
    /// closed.
    /// - Parameter wakes: `false` if the caller will soon call ``wakeReaders()``.
    func append(_ request: ReadRequest, wakes: Bool = true) -> Bool {
        let isTaken = monitor.withLock { state in
            guard !state.isClosed, state.count < limit else { return false }
            state.requests.append(request)
            return true
        }
        if isTaken, wakes { wakeReaders() }
        return isTaken
    }

    /// Wakes as many readers as there is work for.
    func wakeReaders() {
        while monitor.withLock({ $0.readers.wakes(for: $0.count) }) { monitor.signal() }
    }

    /// Performs requests until the store is closed and none is left: the body of a reader's thread.
    func serve(_ answer: (ReadRequest) -> Void) {
        var elapsed: Int64?
        while let request = take(after: elapsed) {
            let began = Clock.monotonicMicroseconds()
            answer(request)
            elapsed = Clock.monotonicMicroseconds() - began
        }
    }

    /// Waits for a request; `nil` when the store is closed and none is left.
    /// - Parameter elapsed: the microseconds that the reader's last read took, or `nil` if it has
    ///   made none.
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
