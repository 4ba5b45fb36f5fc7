import Locking

/// The body of a response while it is being received, for those who want it before it is complete:
/// one writer, and any number of readers on any threads, each at its own speed.
///
/// What arrived last is in memory, in pieces. Readers that fall further behind read it from where
/// it is being stored (`Behind`), if it is: a memory file, or a level that has written its first
/// chunks. So a slow reader neither holds up the others nor keeps the body in memory.
public final class BodyUnderWay: Sendable {
    /// What is there for a reader at an offset.
    public enum Part: Sendable {
        /// These bytes of a piece.
        case bytes(ChunkBytes, Range<Int>)
        /// This many bytes of the file, from the offset on.
        case file(MemoryFile, count: Int)
        /// Read it from there, with `CacheStore.readChunk`.
        case level(LevelBody)
        /// Nothing yet: `wake` will be called.
        case nothingYet
        /// The body ends here.
        case end
        /// It cannot be had: the body broke off, or the reader is too far behind.
        case gone
    }

    /// Where the beginning of the body is, besides the pieces.
    enum Behind: Sendable {
        case file(MemoryFile, count: UInt64)
        case level(LevelBody)
        case whole(CachedResponse)

        var count: UInt64 {
            switch self {
            case .file(_, let count): count
            case .level(let body): body.count
            case .whole(let response): response.bodyCount
            }
        }
    }

    private struct Piece {
        let start: UInt64
        let bytes: ChunkBytes
        var end: UInt64 { start + UInt64(bytes.count) }
    }

    private struct State {
        var pieces: ContiguousArray<Piece> = []
        /// Bytes that have arrived.
        var count: UInt64 = 0
        var behind: Behind?
        /// Whether the body has ended, and if so whether it is complete.
        var isComplete: Bool?
        var readers = 0
        var waiting: [@Sendable () -> Void] = []
        /// The furthest position that was asked for.
        var wanted: UInt64 = 0
        /// The parts of the rest, for those who have lost their place.
        var rest: PartsBody?
        /// Called when what has arrived is wanted soon, or nobody wants it any more.
        var paused: (@Sendable () -> Void)?

        /// Bytes in the pieces.
        var windowBytes: UInt64 { pieces.first.map { count - $0.start } ?? 0 }
    }

    /// The number of bytes that the body will have, if that was announced.
    public let expectedCount: UInt64?
    private let state = Locked(State())
    private let budget: StoreBudget
    private static let pieceBytes = 64 << 10
    /// So much of what arrived last stays in memory in any case, for readers that keep up.
    private static let keptBytes: UInt64 = 1 << 20
    /// No more than this of a body that is not stored stays in memory. Of one that is, no more than
    /// is on its way to where it is stored, for which there is a limit.
    private static let largestWindow: UInt64 = 8 << 20
    /// Every body may have this much, even if the budget is used up.
    private static let leastWindow: UInt64 = 256 << 10

    /// - Parameters:
    ///   - budget: for the pieces.
    ///   - behind: where what has been received so far is; `nil` if that is nothing.
    init(expectedCount: UInt64?, budget: StoreBudget, behind: Behind? = nil) {
        self.expectedCount = expectedCount
        self.budget = budget
        state.withLock { state in
            state.behind = behind
            state.count = behind?.count ?? 0
        }
    }

    deinit { budget.release(state.withLock { $0.pieces.reduce(0) { $0 + $1.bytes.capacity } }) }

    // MARK: Writing

    /// Adds the next bytes.
    /// - Parameters:
    ///   - isStored: whether the body is being stored.
    ///   - behind: where; asked only if pieces may be dropped.
    /// - Returns: `false` if there is no memory for them: the body has then ended, incomplete.
    @discardableResult
    func append(
        _ bytes: UnsafeRawBufferPointer, isStored: Bool = true, behind: () -> Behind? = { nil }
    ) -> Bool {
        if !budget.hasRoom(for: bytes.count + Self.pieceBytes) {
            trim(to: 0, isStored: isStored, behind)
        }
        guard state.withLock({ $0.isComplete == nil && add(bytes, to: &$0) }) else {
            end(isComplete: false)
            return false
        }
        trim(to: Self.keptBytes, isStored: isStored, behind)
        for wake in state.withLock({ state in swap(&state.waiting, with: []) }) { wake() }
        return true
    }

    private func add(_ bytes: UnsafeRawBufferPointer, to state: inout State) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            var taken = 0
            if let last = state.pieces.last { taken = last.bytes.append(rest) }
            if taken == 0 {
                // However many bodies there are, each has a little for those who keep up.
                let isReserved = budget.reserve(Self.pieceBytes)
                guard isReserved || state.windowBytes < Self.leastWindow else { return false }
                if !isReserved { budget.overdraw(Self.pieceBytes) }
                guard let piece = ChunkBytes(capacity: Self.pieceBytes) else {
                    budget.release(Self.pieceBytes)
                    return false
                }
                state.pieces.append(Piece(start: state.count, bytes: piece))
            }
            offset += taken
            state.count += UInt64(taken)
        }
        return true
    }

    /// Drops the pieces that readers can do without.
    /// - Parameter kept: how many bytes stay in any case.
    private func trim(to kept: UInt64, isStored: Bool, _ behind: () -> Behind?) {
        guard state.withLock({ $0.windowBytes > kept }) else { return }
        let behind = behind()
        let released = state.withLock { state in
            // What was gathered in memory may now be on its way to a level, which has less of it
            // yet.
            if let behind, behind.count >= state.behind?.count ?? 0 { state.behind = behind }
            let stored = state.behind?.count ?? 0
            var index = 0
            var window = state.windowBytes
            // Of what is not stored, readers that are further behind lose their place.
            let unstored = kept > 0 ? Self.largestWindow : Self.leastWindow
            while index + 1 < state.pieces.count, window > kept,
                state.pieces[index].end <= stored || !isStored && window > unstored
            {
                window -= UInt64(state.pieces[index].bytes.count)
                index += 1
            }
            defer { state.pieces.removeFirst(index) }
            return state.pieces[..<index].reduce(0) { $0 + $1.bytes.capacity }
        }
        budget.release(released)
    }

    /// The body ends: complete, and perhaps stored, or broken off.
    func end(isComplete: Bool, stored: CachedResponse? = nil) {
        let waiting = state.withLock { state in
            guard state.isComplete == nil else { return [] as [@Sendable () -> Void] }
            state.isComplete = isComplete
            if let stored, stored.isReadableInParts { state.behind = .whole(stored) }
            return swap(&state.waiting, with: [])
        }
        for wake in waiting { wake() }
    }

    /// Adds the next bytes.
    /// - Parameter ticket: what stores the body; `nil` if it is not stored, or no longer.
    public func append(_ bytes: UnsafeRawBufferPointer, from ticket: StoreTicket?) {
        append(bytes, isStored: ticket != nil) { ticket?.behind }
    }

    /// The body is complete.
    /// - Parameter outcome: how its storing ended; `nil` if it is not stored.
    public func end(with outcome: StoreOutcome?) {
        if case .stored(let response) = outcome {
            end(isComplete: true, stored: response)
        } else {
            end(isComplete: true)
        }
    }

    /// The body will not be complete.
    public func breakOff() { end(isComplete: false) }

    // MARK: Reading

    /// Counts a reader, until it leaves.
    public func join() { state.withLock { $0.readers += 1 } }
    public func leave() {
        let paused = state.withLock { state in
            state.readers -= 1
            return state.readers == 0 ? state.paused.take() : nil
        }
        paused?()
    }

    /// Whether the byte at a position has arrived and is in memory, or is next to those that have.
    func isReachable(_ offset: UInt64, _ nearby: UInt64) -> Bool {
        state.withLock { state in
            guard state.isComplete == nil, offset <= state.count + nearby else { return false }
            return offset >= state.pieces.first?.start ?? state.count
        }
    }

    /// Whether so much more has arrived than anybody has asked for that receiving should pause.
    /// - Parameter resume: called once, on any thread, when half of that has been asked for, or
    ///   nobody reads it any more.
    public func isAhead(by bytes: UInt64, else resume: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.count > state.wanted + bytes, state.readers > 0 else { return false }
            state.paused = resume
            return true
        }
    }

    /// Bytes that have arrived.
    public var count: UInt64 { state.withLock { $0.count } }

    /// Whether it has broken off.
    public var isBroken: Bool { state.withLock { $0.isComplete == false } }

    /// The parts of the rest, which those who have lost their place fetch together.
    public func partsOfRest(sliceBytes: Int) -> PartsBody {
        state.withLock { state in
            if let rest = state.rest { return rest }
            let rest = PartsBody(sliceBytes: sliceBytes)
            state.rest = rest
            return rest
        }
    }

    /// How many are reading it.
    public var readers: Int { state.withLock { $0.readers } }

    /// What is there from an offset on.
    /// - Parameter wake: called once, on any thread, if there is nothing yet and then there is, or
    ///   the body ends.
    public func part(at offset: UInt64, else wake: @escaping @Sendable () -> Void) -> Part {
        var paused: (@Sendable () -> Void)?
        let found = state.withLock { state in
            paused = takePaused(at: offset, in: &state)
            return part(at: offset, in: &state, else: wake)
        }
        paused?()
        return found
    }

    /// Whoever paused, if they may go on.
    private func takePaused(at offset: UInt64, in state: inout State) -> (@Sendable () -> Void)? {
        state.wanted = max(state.wanted, offset)
        guard state.paused != nil, state.count < state.wanted + Self.resumedBytes else {
            return nil
        }
        return state.paused.take()
    }

    /// Receiving goes on when no more than this has not been asked for.
    private static let resumedBytes: UInt64 = 2 << 20

    private func part(
        at offset: UInt64, in state: inout State, else wake: @escaping @Sendable () -> Void
    ) -> Part {
        guard offset < state.count else {
            switch state.isComplete {
            case nil:
                state.waiting.append(wake)
                return .nothingYet
            case true?: return .end
            case false?: return .gone
            }
        }
        if let piece = state.pieces.last(where: { $0.start <= offset }) {
            let start = Int(offset - piece.start)
            return .bytes(piece.bytes, start..<piece.bytes.count)
        }
        guard let behind = state.behind, offset < behind.count else { return .gone }
        return behind.part(at: offset)
    }
}

extension CachedResponse {
    /// Whether readers of its body can go on with what is stored; what is in one piece with its
    /// head is small, and all of it is in the pieces.
    fileprivate var isReadableInParts: Bool {
        switch body {
        case .file, .disk: true
        case .contiguous, .heap, .arriving, .parts: false
        }
    }
}

extension BodyUnderWay.Behind {
    fileprivate func part(at offset: UInt64) -> BodyUnderWay.Part {
        switch self {
        case .file(let file, let count): return .file(file, count: Int(count - offset))
        case .level(let body): return .level(body)
        case .whole(let response):
            switch response.body {
            case .file(let file): return .file(file, count: Int(response.bodyCount - offset))
            case .disk(let body): return .level(body)
            // See `isReadableInParts`.
            case .contiguous, .heap, .arriving, .parts: return .gone
            }
        }
    }
}

/// Replaces a value, and returns what it was.
private func swap<Value>(_ value: inout Value, with new: Value) -> Value {
    defer { value = new }
    return value
}
