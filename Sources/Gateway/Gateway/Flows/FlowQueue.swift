import HTTPCore
import PinfoldEngine
import Synchronization

/// The limits of a queue of records, and of what each of them takes.
package struct FlowQueueLimits: Sendable, Equatable {
    /// The bytes that each worker may have queued; further records are dropped and counted. Rounded
    /// up to a power of two of at least 64 KiB.
    package var queueBytes = 1 << 20
    /// The maximum number of bytes kept of a method; the rest is cut off. Likewise for the others.
    package var methodBytes = 64
    /// The maximum number of bytes kept of a target.
    package var targetBytes = 8192
    /// The same for the host that a request names, which no line of the access log has.
    package var authorityBytes = 0
    /// The maximum number of bytes kept of a user agent.
    package var userAgentBytes = 1024
    /// The maximum number of bytes kept of a referer.
    package var refererBytes = 2048
    /// How long a line of the access log waits to be written together with others, in milliseconds.
    package var flushMilliseconds = 100

    /// The defaults.
    package init() {}
}

/// A queue of records between one worker and the thread of a log, or the one that exports spans: a
/// ring of bytes with one producer and one consumer, without locks.
///
/// Positions count bytes from the start and only increase; a position's offset in the ring is its
/// remainder modulo the capacity. Only the producer moves `head`, and only the consumer moves
/// `tail`. An entry is never split: if it does not fit before the ring's end, a marker sends the
/// consumer to the start.
struct FlowQueue: @unchecked Sendable {
    /// The minimum capacity; the longest entry fits several times.
    static let minimumCapacity = 1 << 16
    /// The largest capacity.
    static let maximumCapacity = 1 << 28
    /// The maximum size of the texts of a head together, whatever was configured.
    static let maximumTextBytes = 16 * 1024

    private let base: UnsafeMutableRawPointer
    let capacity: Int
    private let shared: UnsafeMutablePointer<Atomic<UInt64>>
    private let producer: UnsafeMutablePointer<ProducerState>
    private let limits: FlowQueueLimits

    /// Precedes an entry's record and texts.
    private struct Prefix: BitwiseCopyable {
        /// Bytes from this prefix to the next one; `skip` if the rest of the ring is unused.
        var size: UInt32
        var method: UInt32
        var target: UInt32
        var host: UInt32
        var userAgent: UInt32
        var referer: UInt32
        var cipherSuite: UInt32
        var subject: UInt32
        var tunnel: UInt32
        var steps: UInt32
        var rule: UInt32
        var reported: UInt32
        var user: UInt32
        var way: UInt32
        var authority: UInt32
        var fields: UInt32

        static var skip: UInt32 { .max }
    }

    /// State used only by the producer.
    private struct ProducerState {
        var head: UInt64 = 0
        /// The consumer's position when last read: never beyond the real one.
        var tailSeen: UInt64 = 0
        /// Whether the consumer was notified that the ring is filling up.
        var hasUrged = false
    }

    /// Indexes of the shared counters, with those of the two threads on different cache lines.
    private enum Cell {
        static var head: Int { 0 }
        static var pushed: Int { 1 }
        static var refused: Int { 2 }
        static var tail: Int { 16 }
        static var count: Int { 32 }
    }

    /// Every entry starts at a multiple of this.
    private static var alignment: Int { 16 }
    private static var recordOffset: Int { align(MemoryLayout<Prefix>.size) }
    private static var textOffset: Int { recordOffset + align(MemoryLayout<FlowRecord>.size) }

    private static func align(_ size: Int) -> Int { (size + alignment - 1) & ~(alignment - 1) }

    /// Allocates a ring of the limits' size.
    init(limits: FlowQueueLimits) {
        self.limits = limits
        var capacity = FlowQueue.minimumCapacity
        while capacity < limits.queueBytes && capacity < FlowQueue.maximumCapacity {
            capacity *= 2
        }
        self.capacity = capacity
        base = .allocate(byteCount: capacity, alignment: FlowQueue.alignment)
        shared = .allocate(capacity: Cell.count)
        for index in 0..<Cell.count { (shared + index).initialize(to: Atomic(0)) }
        producer = .allocate(capacity: 1)
        producer.initialize(to: ProducerState())
    }

    /// Frees the ring; no thread may use it any more.
    func deallocate() {
        producer.deinitialize(count: 1)
        producer.deallocate()
        shared.deinitialize(count: Cell.count)
        shared.deallocate()
        base.deallocate()
    }

    /// The total number of entries queued; from any thread.
    var pushed: UInt64 { shared[Cell.pushed].load(ordering: .relaxed) }
    /// The total number of entries refused because the ring was full; from any thread.
    var refused: UInt64 { shared[Cell.refused].load(ordering: .relaxed) }

    // MARK: The producer

    /// The result of pushing an entry.
    enum Push: Equatable {
        /// Queued.
        case queued
        /// Queued, and the ring has just become more than half full: the consumer should be woken.
        case queuedHalfFull
        /// Not queued: the ring is full.
        case refused
    }

    /// Copies a record and its texts into the ring, each text up to its limit, along with the texts
    /// of a session, of what rules did, and of who was asking, which are short.
    func push(
        _ record: FlowRecord, head bytes: Span<UInt8>, _ texts: FlowTexts,
        session: ClientSession? = nil, notes: FlowNotes = FlowNotes()
    ) -> Push {
        var room = FlowQueue.maximumTextBytes
        let method = cut(texts.method, to: limits.methodBytes, of: bytes, room: &room)
        let target = cut(texts.target, to: limits.targetBytes, of: bytes, room: &room)
        let host = cut(texts.authority, to: limits.authorityBytes, of: bytes, room: &room)
        let userAgent = cut(texts.userAgent, to: limits.userAgentBytes, of: bytes, room: &room)
        let referer = cut(texts.referer, to: limits.refererBytes, of: bytes, room: &room)
        let (cipherSuite, subject, tunnel) = (
            session?.cipherSuite.count ?? 0, session?.subjectBytes.count ?? 0,
            session?.tunnelBytes.count ?? 0
        )
        let textCount =
            method.count + target.count + host.count + userAgent.count + referer.count
            + cipherSuite + subject + tunnel + notes.count
        let size = FlowQueue.align(FlowQueue.textOffset + textCount)
        guard let (place, isHalfFull) = reserve(size) else {
            increment(Cell.refused)
            return .refused
        }
        let prefix = Prefix(
            size: UInt32(size), method: UInt32(method.count), target: UInt32(target.count),
            host: UInt32(host.count), userAgent: UInt32(userAgent.count),
            referer: UInt32(referer.count),
            cipherSuite: UInt32(cipherSuite), subject: UInt32(subject),
            tunnel: UInt32(tunnel), steps: UInt32(notes.steps.count),
            rule: UInt32(notes.rule.count), reported: UInt32(notes.reported.count),
            user: UInt32(notes.user.count), way: UInt32(notes.way.count),
            authority: UInt32(notes.authority.count), fields: UInt32(notes.fields.count))
        place.storeBytes(of: prefix, as: Prefix.self)
        // Never deinitialized: a record is plain numbers.
        (place + FlowQueue.recordOffset).initializeMemory(
            as: FlowRecord.self, repeating: record, count: 1)
        var end = place + FlowQueue.textOffset
        bytes.withUnsafeBytes { all in
            end = copy(all, method, to: end)
            end = copy(all, target, to: end)
            end = copy(all, host, to: end)
            end = copy(all, userAgent, to: end)
            end = copy(all, referer, to: end)
        }
        if let session {
            end = Self.copy(session.cipherSuite, to: end)
            end = Self.copy(session.subjectBytes, to: end)
            end = Self.copy(session.tunnelBytes, to: end)
        }
        if notes.count > 0 {
            end = Self.copy(notes.steps, to: end)
            end = Self.copy(notes.rule, to: end)
            end = Self.copy(notes.reported, to: end)
            end = Self.copy(notes.user, to: end)
            end = Self.copy(notes.way, to: end)
            end = Self.copy(notes.authority, to: end)
            _ = Self.copy(notes.fields, to: end)
        }
        increment(Cell.pushed)
        // Pairs with the sleeper's flag: see `AccessLogCore.wakeIfSleeping`.
        shared[Cell.head].store(producer.pointee.head, ordering: .sequentiallyConsistent)
        return isHalfFull ? .queuedHalfFull : .queued
    }

    /// Reserves space for an entry of `size` bytes. Returns where it goes, and whether the ring has
    /// just become more than half full; `nil` if there is no space.
    private func reserve(_ size: Int) -> (UnsafeMutableRawPointer, isHalfFull: Bool)? {
        let state = producer
        let offset = Int(truncatingIfNeeded: state.pointee.head) & (capacity - 1)
        let skipped = capacity - offset < size ? capacity - offset : 0
        let end = state.pointee.head + UInt64(skipped + size)
        if end - state.pointee.tailSeen > UInt64(capacity / 2) {
            // The consumer's cache line is read only when the ring seems to fill up. Acquiring: it
            // must have finished reading what is overwritten now.
            state.pointee.tailSeen = shared[Cell.tail].load(ordering: .acquiring)
        }
        let used = end - state.pointee.tailSeen
        guard used <= UInt64(capacity) else { return nil }
        if skipped > 0 { (base + offset).storeBytes(of: Prefix.skip, as: UInt32.self) }
        state.pointee.head = end
        let wasUrged = state.pointee.hasUrged
        state.pointee.hasUrged = used > UInt64(capacity / 2)
        let place = base + (skipped > 0 ? 0 : offset)
        return (place, state.pointee.hasUrged && !wasUrged)
    }

    private func increment(_ cell: Int) {
        shared[cell].store(shared[cell].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    /// The part of a range that is within the bytes and within both limits.
    private func cut(
        _ range: ByteRange, to limit: Int, of bytes: Span<UInt8>, room: inout Int
    ) -> Range<Int> {
        let start = min(Int(range.start), bytes.count)
        let count = max(0, min(Int(range.count), bytes.count - start, limit, room))
        room -= count
        return start..<(start + count)
    }

    private func copy(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard let start = bytes.baseAddress else { return place }
        place.copyMemory(from: start + range.lowerBound, byteCount: range.count)
        return place + range.count
    }

    private static func copy(
        _ bytes: [UInt8], to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        UnsafeMutableRawBufferPointer(start: place, count: bytes.count).copyBytes(from: bytes)
        return place + bytes.count
    }

    // MARK: The consumer

    /// An entry in the ring; valid until the body that received it returns.
    struct Entry {
        var record: FlowRecord
        var method: UnsafeRawBufferPointer
        var target: UnsafeRawBufferPointer
        /// `host[:port]` as the request names it, if the limits have room for it.
        var host: UnsafeRawBufferPointer
        var userAgent: UnsafeRawBufferPointer
        var referer: UnsafeRawBufferPointer
        /// For a client that speaks TLS, otherwise empty.
        var cipherSuite: UnsafeRawBufferPointer
        var subject: UnsafeRawBufferPointer
        /// `host:port` of the intercepted tunnel that the request came through, otherwise empty.
        var tunnel: UnsafeRawBufferPointer
        /// What the rules of its route changed, otherwise empty.
        var steps: UnsafeRawBufferPointer
        /// The name of the access rule that decided, otherwise empty.
        var rule: UnsafeRawBufferPointer
        /// The names of access rules that only report, separated by commas, otherwise empty.
        var reported: UnsafeRawBufferPointer
        /// Who was asking, where the listener wanted to know, otherwise empty.
        var user: UnsafeRawBufferPointer
        /// The name of the parent that the request went through, or the path of the Unix socket
        /// that it went to, otherwise empty.
        var way: UnsafeRawBufferPointer
        /// `host:port` of a request at a transparent listener, otherwise empty.
        var authority: UnsafeRawBufferPointer
        /// The fields of its heads that the log tells (``HeadFields``), otherwise empty.
        var fields = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Whether there is nothing to take.
    var isEmpty: Bool {
        let head = shared[Cell.head].load(ordering: .sequentiallyConsistent)
        return head == shared[Cell.tail].load(ordering: .relaxed)
    }

    /// The producer's position: entries before it can be taken.
    var headPosition: UInt64 { shared[Cell.head].load(ordering: .acquiring) }

    /// Passes the entries before `end` to `body`, oldest first, until it returns `false`, and frees
    /// those that were passed. Returns whether all were.
    func drain(upTo end: UInt64, _ body: (Entry) -> Bool) -> Bool {
        var tail = shared[Cell.tail].load(ordering: .relaxed)
        defer { shared[Cell.tail].store(tail, ordering: .releasing) }
        while tail < end {
            let offset = Int(truncatingIfNeeded: tail) & (capacity - 1)
            let place = UnsafeRawPointer(base + offset)
            guard place.load(as: UInt32.self) != Prefix.skip else {
                tail += UInt64(capacity - offset)
                continue
            }
            let prefix = place.load(as: Prefix.self)
            tail += UInt64(prefix.size)
            if !body(entry(at: place, prefix)) { return tail >= end }
        }
        return true
    }

    private func entry(at place: UnsafeRawPointer, _ prefix: Prefix) -> Entry {
        let record = place.load(
            fromByteOffset: FlowQueue.recordOffset, as: FlowRecord.self)
        var start = place + FlowQueue.textOffset
        func next(_ count: UInt32) -> UnsafeRawBufferPointer {
            defer { start += Int(count) }
            return UnsafeRawBufferPointer(start: start, count: Int(count))
        }
        return Entry(
            record: record, method: next(prefix.method), target: next(prefix.target),
            host: next(prefix.host),
            userAgent: next(prefix.userAgent), referer: next(prefix.referer),
            cipherSuite: next(prefix.cipherSuite), subject: next(prefix.subject),
            tunnel: next(prefix.tunnel), steps: next(prefix.steps), rule: next(prefix.rule),
            reported: next(prefix.reported), user: next(prefix.user),
            way: next(prefix.way), authority: next(prefix.authority),
            fields: next(prefix.fields))
    }
}
