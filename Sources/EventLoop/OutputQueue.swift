import CLinux

/// What waits to be written to a socket, in order: runs of memory and of files, each with the
/// object that keeps it alive. Writing gathers several runs into one call.
///
/// The queue is not a buffer: nothing is copied in, and who fills it stops at its first
/// `blocked` until it is drained, which bounds the memory behind it.
package struct OutputQueue {
    /// A run of bytes to be sent, as sinks that are not sockets see it.
    package struct Run {
        /// The bytes; nil for a run of a file.
        package let memory: UnsafeRawPointer?
        package let file: Int32
        /// Where in the file it begins.
        package let offset: Int
        package let count: Int
        /// Nothing waits behind it.
        package let isLast: Bool
    }

    private struct Segment {
        var owner: AnyObject?
        var buffer: Buffer?
        /// The bytes; nil for a run of a file.
        var memory: UnsafeRawPointer?
        var file: Int32 = -1
        var offset = 0
        var count: Int

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

        mutating func release() {
            owner = nil
            Buffer.release(&buffer)
        }
    }

    /// How a flush ended.
    package enum Flush: Equatable {
        /// Everything was handed to the kernel.
        case drained
        /// The socket is full; its writability will be reported.
        case blocked
        /// So much was written that others have their turn first; no event will tell when.
        case turnIsOver
        case failed(Errno)
    }

    /// So many bytes are copied sooner than gathered: that costs less than a run of their own does.
    private static let copiedBytes = 2048
    /// Places that stay for the next runs: most responses are a head and a body.
    private static let keptPlaces = 8
    /// The runs are those of `first..<end`; the other places are empty.
    private var segments = ContiguousArray<Segment>()
    private var first = 0
    private var end = 0
    /// Bytes not yet handed to the kernel.
    package private(set) var pendingBytes = 0

    package init() {}

    package var isEmpty: Bool { first == end }

    /// Adds bytes that `owner` keeps alive and unchanged; nil for static bytes.
    package mutating func append(_ bytes: UnsafeRawBufferPointer, owner: AnyObject?) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        append(Segment(owner: owner, memory: base, count: bytes.count))
    }

    /// Adds bytes of a buffer, which stay unchanged until they are written.
    package mutating func append(
        _ bytes: UnsafeRawBufferPointer, owner buffer: consuming Buffer
    ) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        append(Segment(buffer: buffer, memory: base, count: bytes.count))
    }

    /// Adds a run of a file that `owner` keeps open and unchanged.
    package mutating func append(file: Int32, offset: Int, count: Int, owner: AnyObject) {
        guard count > 0 else { return }
        append(Segment(owner: owner, file: file, offset: offset, count: count))
    }

    /// Copies a few bytes behind those of the last run, if that ends where its buffer's free room
    /// begins: one run less to gather, and nobody has to keep the bytes alive.
    /// - Returns: whether they were copied; else `append` takes them.
    package mutating func appendCopy(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= Self.copiedBytes, first < end else { return false }
        let (count, pending) = (bytes.count, pendingBytes)
        let isCopied = segments.withUnsafeMutableBufferPointer { places in
            places[end - 1].copy(bytes)
        }
        if isCopied { pendingBytes = pending + count }
        return isCopied
    }

    @inline(__always)
    private mutating func append(_ segment: consuming Segment) {
        pendingBytes += segment.count
        if end < segments.count {
            segments[end] = segment
        } else {
            segments.append(segment)
        }
        end += 1
    }

    /// Adds a constant.
    package mutating func append(_ text: StaticString) {
        append(
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), owner: nil
        )
    }

    /// The first run that waits, for sinks that are not sockets.
    package var front: Run? {
        guard first < end else { return nil }
        return segments.withUnsafeBufferPointer { places in
            Run(
                memory: places[first].memory, file: places[first].file,
                offset: places[first].offset, count: places[first].count,
                isLast: first + 1 == end)
        }
    }

    /// Copies the memory runs at the front, up to the first run of a file, as far as there is room.
    /// - Returns: how many bytes were copied.
    package func copyFront(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let start = room.baseAddress else { return 0 }
        var copied = 0
        for index in first..<end {
            guard copied < room.count, let memory = segments[index].memory else { break }
            let count = min(room.count - copied, segments[index].count)
            (start + copied).copyMemory(from: memory, byteCount: count)
            copied += count
        }
        return copied
    }

    /// Takes `count` bytes off the front run.
    package mutating func consume(_ count: Int) {
        pendingBytes -= count
        guard pendingBytes > 0 else { return clear() }
        var left = count
        while left > 0 {
            let step = min(left, segments[first].count)
            left -= step
            segments[first].count -= step
            segments[first].offset += step
            if let memory = segments[first].memory { segments[first].memory = memory + step }
            if segments[first].count == 0 {
                segments[first].release()
                first += 1
            }
        }
    }

    /// Forgets everything and what it kept alive.
    package mutating func discard() {
        pendingBytes = 0
        clear()
    }

    private mutating func clear() {
        if segments.count > Self.keptPlaces {
            segments = []
        } else {
            segments.withUnsafeMutableBufferPointer { places in
                for index in first..<end { places[index].release() }
            }
        }
        (first, end) = (0, 0)
    }

    /// What one call writes at most: a peer that reads as fast as this is written would keep the
    /// loop for the length of a whole stored response.
    package static let bytesPerFlush = 1 << 20
    /// The calls that one flush makes at most, whatever they write.
    private static let callsPerFlush = 64
    private static let vectorCount = 16

    /// Writes until the queue is empty, the socket full, or a turn's share is written.
    package mutating func flush(to fd: Int32) -> Flush {
        var left = Self.bytesPerFlush
        var calls = 0
        while first < end {
            guard left > 0, calls < Self.callsPerFlush else { return .turnIsOver }
            calls += 1
            let result: IOResult
            let wanted: Int
            if segments[first].memory == nil {
                wanted = min(left, segments[first].count)
                result = Transfers.sendFile(
                    fd, file: segments[first].file, offset: segments[first].offset, count: wanted)
            } else {
                (result, wanted) = writeGathered(to: fd, atMost: left)
            }
            switch result {
            case .bytes(let count):
                consume(count)
                left -= count
                if count < wanted, isEmpty || segments[first].memory != nil {
                    return .blocked  // a short write: the socket is full
                }
            case .wouldBlock: return .blocked
            case .endOfStream: return .failed(.inputOutput)  // a file shorter than said
            case .failed(let error): return .failed(error)
            }
        }
        return .drained
    }

    /// One call for the memory runs up to the first file run, or for the first `limit` bytes.
    private func writeGathered(to fd: Int32, atMost limit: Int) -> (IOResult, Int) {
        if first + 1 == end {
            let bytes = UnsafeRawBufferPointer(
                start: segments[first].memory, count: min(limit, segments[first].count))
            return (Transfers.write(fd, bytes), bytes.count)
        }
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) {
            vectors in
            var used = 0
            var bytes = 0
            var index = first
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
