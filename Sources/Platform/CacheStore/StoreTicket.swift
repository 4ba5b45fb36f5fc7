import CachePolicy
import HTTPCore

/// How a store ended.
public enum StoreOutcome: Sendable {
    /// It can be looked up from now on; its rows, if it is kept on disk, are queued. Also returned
    /// if it is too large for the memory tier, to be served once.
    case stored(CachedResponse)
    /// It can be loaded from a level below memory, as soon as that has carried it out.
    case storedOnDisk
    case refused(StoreRefusalReason)
}

/// A response being stored while it is received. Used by one thread; abandoned if it is freed
/// before `finish`.
///
/// A copy is gathered in memory, whatever the state of the levels below: after the head while it is
/// small, then in a memory file. A body larger than `wholeBodyBytes` also goes to them as it
/// arrives; the copy is given up if the memory tier would not accept it.
public final class StoreTicket {
    private let store: CacheStore
    private let hash: UInt64
    /// The response's variant.
    public let varyKey: VaryKey
    private var metadata: StoredMetadata
    private let policy: UInt64
    private let staleSince: Int64
    private let expected: UInt64?
    /// `nil` once it has ended.
    private var flight: StoreFlight?

    /// Key, head, and the body while it is small.
    private var block: ResponseBlock?
    /// The body once it is larger.
    private var large: LargeBody?
    /// Whether the body is being gathered in memory.
    private var hasCopy = true
    private var streams: LevelStreams
    private var received: UInt64 = 0
    /// Bytes of key, head and Vary key.
    private var textCount = 0
    /// Bytes taken from the gathering budget, for key, head and a small body.
    private var reserved = 0
    /// The part of them that the body has not used yet.
    private var prepaid = 0
    /// Bytes taken from the staging budget, for a larger body.
    private var staged = 0
    private var isOver = false
    /// The largest body that is stored, in bytes, whatever the levels would accept.
    public var limit = UInt64.max
    /// What others read while it is received.
    public private(set) var shared: BodyUnderWay?

    /// Why nothing more is accepted; `nil` while all is well.
    public private(set) var refusal: StoreRefusalReason?

    init(
        store: CacheStore, key: CacheKeyView, varyKey: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64, staleSince: Int64, expected: UInt64?,
        flight: StoreFlight
    ) throws(StoreRefusalReason) {
        self.store = store
        hash = key.hash
        self.varyKey = varyKey
        self.metadata = metadata
        self.policy = policy
        self.staleSince = staleSince
        self.expected = expected
        self.flight = flight
        streams = LevelStreams(store.levels)
        let text = key.bytes.count + head.count + varyKey.bytes.count
        guard text <= EntryRecord.maximumBytes else { throw .headTooLarge }
        guard store.memory.isValid(flight, key.bytes, head) else { throw .invalidated }
        if let expected { try check(expected) }
        let small = UInt64(store.options.memoryFileBytes)
        let room = expected.map { $0 < small ? Int($0) : 0 } ?? 0
        // Refused now if at all: a small response whose storing has begun is stored.
        guard store.memory.gathering.reserve(text + room) else { throw .queueFull }
        reserved = text + room
        prepaid = room
        textCount = text
        let made = ResponseBlock(
            key: key.bytes, head: head, bodyCapacity: room, heap: store.memory.heap)
        guard let block = made else { throw .memory }
        self.block = consume block
        guard let expected else { return }
        if expected > UInt64(store.options.wholeBodyBytes) { startStreams(atLeast: expected) }
        if expected > UInt64(copyLimit) { dropCopy() }
        guard hasCopy ? mayBeKept(Int(expected)) : !streams.isEmpty else {
            throw streams.refusal ?? .queueFull
        }
    }

    /// Whether a gathered body will be kept, as things stand: the levels' queues matter for what
    /// memory does not accept.
    private func mayBeKept(_ count: Int) -> Bool {
        count <= store.memory.objectLimit || !streams.isEmpty
            || streams.hasRoom(for: textCount + count)
    }

    deinit { abandon() }

    private func check(_ count: UInt64) throws(StoreRefusalReason) {
        guard count <= limit else { throw .tooLarge }
        if count <= UInt64(store.memory.objectLimit) { return }
        if let refusal = streams.refusal(of: count) { throw refusal }
    }

    /// The largest body that is gathered in memory: for the memory tier, or to be written at once.
    private var copyLimit: Int {
        max(store.memory.objectLimit, streams.mayAccept ? store.options.wholeBodyBytes : 0)
    }

    /// Whether a level's backlog exceeds half of what may wait for it. A caller that can slow its
    /// source down may want to (see `CacheStore.whenStoresDrain`).
    public var isCongested: Bool {
        (max(received, expected ?? 0) > UInt64(store.memory.objectLimit) || !streams.isEmpty)
            && streams.isCongested
    }

    /// Adds the next bytes of the body. Returns `false` if the store was refused (see `refusal`),
    /// now or before; the ticket is then of no further use.
    public func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard refusal == nil, !isOver else { return false }
        let total = received + UInt64(bytes.count)
        if let expected, total > expected { return refuse(.lengthMismatch) }
        do throws(StoreRefusalReason) {
            try check(total)
        } catch {
            return refuse(error)
        }
        if total > UInt64(store.options.wholeBodyBytes), streams.canBegin {
            startStreams(atLeast: max(total, expected ?? 0))
        }
        if hasCopy, total > UInt64(copyLimit) { dropCopy() }
        if hasCopy, let failure = gather(bytes, total: total) {
            guard !streams.isEmpty else { return refuse(failure) }
            dropCopy()
        }
        if !streams.isEmpty {
            streams.append(bytes, total: total)
            if hasCopy, total > UInt64(copyLimit) { dropCopy() }
        }
        guard hasCopy || !streams.isEmpty else { return refuse(streams.refusal ?? .tooLarge) }
        received = total
        return true
    }

    /// Whether what is being stored answers requests that come now: not if the key was invalidated,
    /// or it was purged, since the request was sent.
    public var isCurrent: Bool {
        guard let flight, let key = block?.key, let head = block?.head else { return false }
        return store.memory.isValid(flight, key, head)
    }

    /// A response that can be read while its body arrives; `nil` if there is no memory, the ticket
    /// has ended, or it is not current.
    public func share() -> CachedResponse? {
        guard !isOver, isCurrent, let body = shared ?? makeShared() else { return nil }
        shared = body
        var copy = block?.copyOfText()
        guard let text = copy.take() else { return nil }
        return makeResponse(text, .arriving(body))
    }

    /// With what has been received so far.
    private func makeShared() -> BodyUnderWay? {
        let behind: BodyUnderWay.Behind?
        let rest: [UnsafeRawBufferPointer]
        if let file {
            (behind, rest) = (.file(file, count: UInt64(file.count)), [])
        } else if hasCopy {
            behind = nil
            if case .heap(let heap) = large { rest = [heap.bytes] } else { rest = [gathered] }
        } else if let partial = streams.received() {
            (behind, rest) = (partial.written.map { .level($0) }, partial.rest)
        } else {
            return nil
        }
        let body = BodyUnderWay(
            expectedCount: expected, budget: store.memory.sharing, behind: behind)
        for bytes in rest { guard body.append(bytes) else { return nil } }
        return body.count == received ? body : nil
    }

    /// The body while it is after the head.
    private var gathered: UnsafeRawBufferPointer {
        block?.body ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// The body while it is in a memory file.
    private var file: MemoryFile? {
        if hasCopy, case .file(let file) = large { file } else { nil }
    }

    /// Where the body is being stored, for readers that are behind.
    var behind: BodyUnderWay.Behind? {
        if let file { return .file(file, count: UInt64(file.count)) }
        return streams.received()?.written.map { .level($0) }
    }

    /// Appends to the copy in memory.
    private func gather(_ bytes: UnsafeRawBufferPointer, total: UInt64) -> StoreRefusalReason? {
        guard reserve(bytes.count, total: total) else { return .queueFull }
        let isSmall = max(total, expected ?? 0) < UInt64(store.options.memoryFileBytes)
        if large == nil, isSmall {
            return block?.append(bytes, limit: store.options.memoryFileBytes) == true
                ? nil : .memory
        }
        if large == nil {
            let body = LargeBody(store.memory.files, store.memory.heap)
            if let gathered = block?.body, !body.append(gathered) { return .memory }
            block?.dropBody()
            large = body
        }
        return large?.append(bytes) == true ? nil : .memory
    }

    /// Takes budget for the next bytes of the copy: from the gathering budget while the body may be
    /// written from it, from the staging budget after that.
    private func reserve(_ count: Int, total: UInt64) -> Bool {
        let owed = max(0, count - prepaid)
        if total > UInt64(store.options.wholeBodyBytes) {
            guard store.memory.staging.reserve(reserved + owed) else { return false }
            staged += reserved + owed
            store.memory.gathering.release(reserved)
            reserved = 0
        } else {
            guard store.memory.gathering.reserve(owed) else { return false }
            reserved += owed
        }
        prepaid -= count - owed
        return true
    }

    private func releaseAll() {
        store.memory.gathering.release(reserved)
        store.memory.staging.release(staged)
        reserved = 0
        staged = 0
    }

    private func dropCopy() {
        guard hasCopy else { return }
        hasCopy = false
        large = nil
        block?.dropBody()
        store.memory.gathering.release(reserved)
        store.memory.staging.release(staged)
        reserved = 0
        staged = 0
    }

    /// Starts sending the body, of at least `count` bytes, to the levels below, beginning with what
    /// has been gathered so far.
    private func startStreams(atLeast count: UInt64) {
        guard let key = block?.key else { return }
        let arriving = ArrivingResponse(
            key: CacheKeyView(bytes: key, hash: hash), varyKey: varyKey, textBytes: textCount,
            expectedLength: expected)
        streams.begin(arriving, atLeast: count) { stream throws(StoreRefusalReason) in
            try sendGathered(to: stream)
        }
    }

    private func sendGathered(to stream: any LevelStream) throws(StoreRefusalReason) {
        guard let large else {
            if let gathered = block?.body, !gathered.isEmpty { try stream.append(gathered) }
            return
        }
        var offset = 0
        let piece = UnsafeMutableRawBufferPointer.allocate(
            byteCount: store.options.chunkBytes, alignment: 16)
        defer { piece.deallocate() }
        while offset < large.count {
            let count = min(piece.count, large.count - offset)
            let part = UnsafeMutableRawBufferPointer(rebasing: piece[..<count])
            guard large.read(into: part, at: offset) else { throw .memory }
            try stream.append(UnsafeRawBufferPointer(part))
            offset += count
        }
    }

    private func refuse(_ reason: StoreRefusalReason) -> Bool {
        refusal = reason
        store.count(reason)
        abandon()
        return false
    }

    /// Gives up the store: nothing of it will be visible, and what is on disk of it is removed.
    public func abandon() {
        guard !isOver else { return }
        isOver = true
        streams.abandon()
        large = nil
        block = nil
        releaseAll()
        if let flight = flight.take() { store.endFlight(flight) }
    }

    /// Completes the body: makes the response visible.
    /// - Parameter trailers: stored with it, unless there are too many.
    public func finish(trailers: TrailerSection? = nil) -> StoreOutcome {
        if let refusal { return .refused(refusal) }
        guard !isOver else { return .refused(.lengthMismatch) }
        if let expected, expected != received {
            _ = refuse(.lengthMismatch)
            return .refused(.lengthMismatch)
        }
        if let trailers { add(trailers) }
        let outcome = streams.isEmpty ? finishWhole() : finishStreams()
        if case .refused(let reason) = outcome {
            _ = refuse(reason)
        } else {
            isOver = true
            releaseAll()
        }
        return outcome
    }

    /// Adds trailers to the head. They are left out if there is no room for them.
    private func add(_ trailers: TrailerSection) {
        guard let text = block?.head, let body = block?.body,
            let head = StoredTrailers.head(text.octets, with: trailers)
        else { return }
        let count = textCount + head.count - text.count
        guard count <= EntryRecord.maximumBytes,
            store.memory.gathering.reserve(count + body.count)
        else { return }
        defer { store.memory.gathering.release(count + body.count) }
        guard head.withUnsafeBytes({ replaceHead(by: $0) }) else { return }
        metadata = metadata.withTrailers(headBytes: head.count)
    }

    private func replaceHead(by head: UnsafeRawBufferPointer) -> Bool {
        var made = block?.withHead(head)
        guard let larger = made.take() else { return false }
        block = consume larger
        return true
    }

    private func makeResponse(_ block: consuming ResponseBlock, _ body: BodyStorage)
        -> CachedResponse
    {
        CachedResponse(
            keyHash: hash, varyKey: varyKey, metadata: metadata, policy: policy, block: block,
            body: body, chunkBytes: store.options.chunkBytes, staleSince: staleSince)
    }

    private func finishWhole() -> StoreOutcome {
        guard var block = block.take(), let flight = flight.take() else {
            return .refused(.memory)
        }
        if large == nil { block.trim() }
        let response = makeResponse(block, large?.complete() ?? .contiguous)
        let refused = store.publish(response, flight: flight)
        return refused.map { .refused($0) } ?? .stored(response)
    }

    private func finishStreams() -> StoreOutcome {
        var bodies = streams.finish()
        guard !bodies.isEmpty else {
            let fits = hasCopy && received <= UInt64(store.memory.objectLimit)
            return fits ? finishWhole() : .refused(streams.refusal ?? .queueFull)
        }
        // Whatever of them is not published is removed.
        defer { for body in bodies { body.stream.abandon() } }
        guard let block = block.take(), let flight = flight.take() else {
            return .refused(.memory)
        }
        var inMemory: CachedResponse?
        if hasCopy, let large {
            var text = block.copyOfText()
            if let taken = text.take() { inMemory = makeResponse(taken, large.complete()) }
        }
        for index in bodies.indices.dropFirst() {
            var text = block.copyOfText()
            guard let taken = text.take() else { continue }
            bodies[index].response = makeResponse(taken, .disk(bodies[index].body))
        }
        let response = makeResponse(block, .disk(bodies[0].body))
        bodies[0].response = response
        let refused = store.publish(
            response, streamedTo: bodies, inMemory: inMemory, flight: flight)
        if let refused { return .refused(refused) }
        return inMemory.map { .stored($0) } ?? .storedOnDisk
    }
}
