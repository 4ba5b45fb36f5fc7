import CLinux

/// Data waiting to be written to a socket, in order: runs of memory and of files, each with the
/// object that keeps it alive. Several runs are written with one call.
///
/// The queue is not a buffer: nothing is copied into it, and whoever fills it stops at the first
/// `blocked` until it is drained, which limits the memory behind it.
public struct OutputQueue {
    /// A run of bytes to be sent, as seen by sinks that are not sockets.
    public struct Run {
        /// The bytes, or `nil` for a run of a file.
        public let memory: UnsafeRawPointer?
        public let file: Int32
        /// The offset in the file at which it begins.
        public let offset: Int
        public let count: Int
        /// Whether it is the last run in the queue.
        public let isLast: Bool
    }

    private struct Segment {
        var owner: AnyObject?
        var buffer: Buffer?
        /// The bytes, or `nil` for a run of a file.
        var memory: UnsafeRawPointer?
        var file: Int32 = -1
        var offset = 0
        var count = 0

        @inline(__always)
        mutating func copy(_ bytes: UnsafeRawBufferPointer) -> Bool {
            guard let buffer, let memory, let source = bytes.baseAddress,
                let start = buffer.memory.baseAddress,
                memory + count == UnsafeRawPointer(start + buffer.end),
                buffer.capacity - buffer.end >= bytes.count
            else { return false }
            (start + buffer.end).copyMemory(from: source, byteCount: bytes.count)
            buffer.end += bytes.count
            count += bytes.count
            return true
        }

        /// Lengthens it by bytes that were written behind it in its buffer.
        @inline(__always)
        mutating func extend(
            to start: UnsafeRawPointer, by bytes: Int, in written: Buffer
        ) -> Bool {
            guard buffer === written, let memory, memory + count == start else { return false }
            count += bytes
            return true
        }

        /// Its first bytes, as a run of their own.
        func front(_ bytes: Int) -> Segment {
            Segment(
                owner: owner, buffer: buffer, memory: memory, file: file, offset: offset,
                count: bytes)
        }

        /// Removes bytes from its front.
        mutating func advance(_ bytes: Int) {
            count -= bytes
            offset += bytes
            if let memory { self.memory = memory + bytes }
        }

        @inline(__always)
        mutating func release() {
            if owner != nil { owner = nil }
            Buffer.release(&buffer)
        }
    }

    /// The result of a flush.
    public enum Flush: Sendable, Equatable {
        /// Everything was handed to the kernel.
        case drained
        /// The socket is full; its becoming writable will be reported.
        case blocked
        /// The turn's share has been written, and other connections go first; no event will follow.
        case turnIsOver
        case failed(Errno)
    }

    /// Up to this many bytes are copied rather than gathered: that costs less than another run.
    public static let copiedBytes = 2048
    /// Capacity kept for later runs: a long response consists of a head and a body.
    private static let keptSegments = 8
    /// So many runs that were sent may stay at the front.
    private static let sentSegments = 64
    /// The next run to be sent, if any: a short response is one run.
    private var first = Segment()
    /// The runs after `first` are those in `next..<end`; the other elements are empty.
    private var segments = ContiguousArray<Segment>()
    private var next = 0
    private var end = 0
    /// Bytes not yet handed to the kernel.
    public private(set) var pendingBytes = 0

    public init() {}

    public var isEmpty: Bool { pendingBytes == 0 }
    private var isSingle: Bool { next == end }
    /// How many runs there is memory for.
    var segmentCount: Int { segments.count }

    /// Appends bytes that `owner` keeps alive and unchanged; `nil` for static bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, owner: AnyObject?) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        append(Segment(owner: owner, memory: base, count: bytes.count))
    }

    /// Appends bytes of a buffer, which must not change until they are written.
    public mutating func append(
        _ bytes: UnsafeRawBufferPointer, owner buffer: consuming Buffer
    ) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        append(Segment(buffer: buffer, memory: base, count: bytes.count))
    }

    /// Appends a run of a file that `owner` keeps open and unchanged.
    public mutating func append(file: Int32, offset: Int, count: Int, owner: AnyObject) {
        guard count > 0 else { return }
        append(Segment(owner: owner, file: file, offset: offset, count: count))
    }

    /// Copies a few bytes after those of the last run, if that run ends where its buffer's free
    /// space begins: that saves a run, and nothing has to keep the bytes alive.
    /// - Returns: whether the bytes were copied; if not, call `append`.
    public mutating func appendCopy(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= Self.copiedBytes, !isEmpty else { return false }
        let isCopied = isSingle ? first.copy(bytes) : segments[end - 1].copy(bytes)
        if isCopied { pendingBytes += bytes.count }
        return isCopied
    }

    /// Appends bytes that were just written to a buffer's free space, of which they are a part from
    /// now on. They lengthen the last run if it ends where they begin.
    /// - Parameter count: how many, from the beginning of the free space.
    public mutating func appendWritten(_ count: Int, to buffer: Buffer) {
        guard count > 0, let start = buffer.writable.baseAddress else { return }
        buffer.end += count
        let isExtended =
            !isEmpty
            && (isSingle
                ? first.extend(to: UnsafeRawPointer(start), by: count, in: buffer)
                : segments[end - 1].extend(to: UnsafeRawPointer(start), by: count, in: buffer))
        if isExtended {
            pendingBytes += count
        } else {
            append(Segment(buffer: buffer, memory: UnsafeRawPointer(start), count: count))
        }
    }

    /// Moves bytes from the front to the end of another queue, runs and what keeps them alive.
    public mutating func move(_ count: Int, to other: inout OutputQueue) {
        precondition(count <= pendingBytes)
        var left = count
        while left > 0 {
            let step = min(left, first.count)
            if let memory = first.memory {
                let bytes = UnsafeRawBufferPointer(start: memory, count: step)
                if !other.appendCopy(bytes) { other.append(first.front(step)) }
            } else {
                other.append(first.front(step))
            }
            consume(step)
            left -= step
        }
    }

    @inline(__always)
    private mutating func append(_ segment: consuming Segment) {
        let wasEmpty = isEmpty
        pendingBytes += segment.count
        if wasEmpty { first = segment } else { appendBehind(segment) }
    }

    private mutating func appendBehind(_ segment: consuming Segment) {
        if end == segments.count, next >= Self.sentSegments, next >= end / 2 { removeSent() }
        if end < segments.count {
            segments[end] = segment
        } else {
            segments.append(segment)
        }
        end += 1
    }

    /// A queue that is never empty would grow by what has been sent.
    @inline(never)
    private mutating func removeSent() {
        segments.removeSubrange(..<next)
        end -= next
        next = 0
    }

    /// Appends a constant.
    public mutating func append(_ text: StaticString) {
        append(
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), owner: nil
        )
    }

    /// The first run in the queue, for sinks that are not sockets.
    public var front: Run? {
        guard !isEmpty else { return nil }
        return Run(
            memory: first.memory, file: first.file, offset: first.offset, count: first.count,
            isLast: isSingle)
    }

    /// Copies the memory runs at the front, up to the first run of a file, as far as they fit.
    /// - Returns: how many bytes were copied.
    public func copyFront(into room: UnsafeMutableRawBufferPointer) -> Int {
        var copied = 0
        guard !isEmpty, Self.copy(first, into: room, &copied) else { return copied }
        for index in next..<end {
            guard Self.copy(segments[index], into: room, &copied) else { break }
        }
        return copied
    }

    /// Copies a run after what was already copied, as far as it fits. Returns `false` if the next
    /// run must not be copied.
    private static func copy(
        _ segment: borrowing Segment, into room: UnsafeMutableRawBufferPointer, _ copied: inout Int
    ) -> Bool {
        guard let memory = segment.memory, let start = room.baseAddress else { return false }
        let count = min(room.count - copied, segment.count)
        (start + copied).copyMemory(from: memory, byteCount: count)
        copied += count
        return copied < room.count
    }

    /// Removes `count` bytes from the front run.
    public mutating func consume(_ count: Int) {
        pendingBytes -= count
        guard pendingBytes > 0 else { return clear() }
        var left = count
        while left > 0 {
            let step = min(left, first.count)
            left -= step
            first.advance(step)
            if first.count == 0 { takeNext() }
        }
    }

    /// Makes the next run the first one, when the first has been written.
    private mutating func takeNext() {
        first.release()
        swap(&first, &segments[next])
        next += 1
        if next == end { (next, end) = (0, 0) }
    }

    /// Discards everything, and releases what kept it alive.
    public mutating func discard() {
        guard !isEmpty else { return }
        pendingBytes = 0
        clear()
    }

    @inline(__always)
    private mutating func clear() {
        first.release()
        if !segments.isEmpty { clearSegments() }
    }

    private mutating func clearSegments() {
        if segments.count > Self.keptSegments {
            segments = []
        } else {
            for index in next..<end { segments[index].release() }
        }
        (next, end) = (0, 0)
    }

    /// The maximum written by one call: a peer that reads as fast as this is written would
    /// otherwise occupy the loop for the length of a whole stored response.
    public static let bytesPerFlush = 1 << 20
    /// The maximum number of calls in one flush, however much they write.
    private static let callsPerFlush = 64
    private static let vectorCount = 64

    /// Writes until the queue is empty, the socket is full, or a turn's share is written.
    public mutating func flush(to fd: Int32) -> Flush {
        var left = Self.bytesPerFlush
        var calls = 0
        while !isEmpty {
            guard left > 0, calls < Self.callsPerFlush else { return .turnIsOver }
            calls += 1
            let result: IOResult
            let wanted: Int
            if first.memory == nil {
                wanted = min(left, first.count)
                result = Transfers.sendFile(
                    fd, file: first.file, offset: first.offset, count: wanted)
            } else {
                (result, wanted) = writeGathered(to: fd, atMost: left)
            }
            switch result {
            case .bytes(let count):
                consume(count)
                left -= count
                if count < wanted, isEmpty || first.memory != nil {
                    return .blocked  // a short write: the socket is full
                }
            case .wouldBlock: return .blocked
            case .endOfStream: return .failed(.inputOutput)  // a file shorter than stated
            case .failed(let error): return .failed(error)
            }
        }
        return .drained
    }

    /// One call for the memory runs up to the first file run, or for the first `limit` bytes.
    private func writeGathered(to fd: Int32, atMost limit: Int) -> (IOResult, Int) {
        if isSingle {
            let bytes = UnsafeRawBufferPointer(
                start: first.memory, count: min(limit, first.count))
            return (Transfers.write(fd, bytes), bytes.count)
        }
        return writeSeveral(to: fd, atMost: limit)
    }

    private func writeSeveral(to fd: Int32, atMost limit: Int) -> (IOResult, Int) {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) {
            vectors in
            var bytes = min(limit, first.count)
            vectors[0] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: first.memory), iov_len: bytes)
            var used = 1
            var index = next
            while index < end, used < Self.vectorCount, bytes < limit,
                let memory = segments[index].memory
            {
                let count = min(limit - bytes, segments[index].count)
                vectors[used] = iovec(
                    iov_base: UnsafeMutableRawPointer(mutating: memory), iov_len: count)
                bytes += count
                used += 1
                index += 1
            }
            let gathered = UnsafeMutableBufferPointer(rebasing: vectors[0..<used])
            let result = Transfers.write(fd, vectors: gathered, more: index < end)
            return (result, bytes)
        }
    }
}
