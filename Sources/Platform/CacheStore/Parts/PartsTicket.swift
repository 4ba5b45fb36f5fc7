import CachePolicy

/// A run of bytes that is being stored in slices while it is received. Used by one thread. What has
/// arrived is kept, whether or not the rest does.
public final class PartsTicket {
    public let parts: PartsBody
    /// The position of the next byte.
    public private(set) var position: UInt64
    /// Where the run ends, as announced.
    public let end: UInt64
    /// The run for those who read it while it arrives; `nil` if it is not shared. What is stored
    /// may begin before it.
    public let run: PartsUnderWay?
    private let store: CacheStore
    private let key: CacheKey
    private let options: PolicyOptions
    private let times: StoredTimes
    /// The slice that is being received; `nil` before its first byte, or if it is not needed.
    private var slice: StoreTicket?
    /// What is stored of that slice already, if its bytes and those that arrive are one run.
    private var known: StoredSlice?
    private var isSkipping = false
    private var count: UInt64 = 0

    init(
        _ store: CacheStore, _ parts: PartsBody, of key: CacheKey, range: Range<UInt64>,
        run: PartsUnderWay?, times: StoredTimes, options: PolicyOptions
    ) {
        self.store = store
        self.parts = parts
        self.key = key
        position = range.lowerBound
        end = range.upperBound
        self.run = run
        self.times = times
        self.options = options
    }

    deinit { close(isComplete: false) }

    /// Whether a level is behind.
    public var isCongested: Bool { store.levels.contains { $0.isCongested } }

    /// Adds the next bytes. Those after the announced end are ignored.
    public func append(_ bytes: UnsafeRawBufferPointer) {
        let bytes = UnsafeRawBufferPointer(
            rebasing: bytes.prefix(Int(clamping: end - position)))
        let ahead = run.map { $0.range.lowerBound - min($0.range.lowerBound, position) } ?? 0
        var offset = 0
        while offset < bytes.count {
            let sliceEnd = parts.slice(at: position).upperBound
            let taken = Int(min(UInt64(bytes.count - offset), sliceEnd - position))
            if slice == nil, !isSkipping { open() }
            let piece = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + taken])
            if let slice, !slice.append(piece) { drop() }
            position += UInt64(taken)
            count += UInt64(taken)
            offset += taken
            if position == sliceEnd { finishSlice() }
        }
        guard let run, ahead < bytes.count else { return }
        run.body.append(UnsafeRawBufferPointer(rebasing: bytes[Int(ahead)...]), from: nil)
    }

    /// The run has ended. What has arrived is stored.
    /// - Parameter isComplete: whether the rest, if any, is not to come.
    public func close(isComplete: Bool) {
        if position > 0 { finishSlice() }
        guard let run else { return }
        store.runs.end(run)
        isComplete ? run.body.end(with: nil) : run.body.breakOff()
    }

    /// Begins a slice, with what is known of it before this position.
    private func open() {
        known = nil
        var start = position
        if let stored = store.sliceInMemory(parts, of: key, at: position),
            stored.range.lowerBound <= position, stored.range.upperBound >= position
        {
            let sliceEnd = min(parts.slice(at: position).upperBound, end)
            if stored.range.upperBound >= sliceEnd {
                isSkipping = true
                return
            }
            known = stored
            start = stored.range.lowerBound
        }
        let head = StoredSlice.head(from: start)
        guard
            let metadata = StoredMetadata(
                storedHead: head.span, times: times, hasQuery: false, options: options),
            let ticket = head.withUnsafeBytes({ head in
                parts.key(of: key, at: position).withView { view in
                    try? store.beginStore(
                        key: view, vary: .none, head: head, metadata: metadata,
                        expectedLength: nil)
                }
            })
        else {
            isSkipping = true
            return
        }
        slice = ticket
        guard let known else { return }
        guard known.withBytes(start..<position, { ticket.append($0) }) else { return drop() }
    }

    /// The slice is not stored.
    private func drop() {
        slice?.abandon()
        slice = nil
        isSkipping = true
    }

    /// Nothing more of the slice arrives.
    private func finishSlice() {
        defer {
            slice = nil
            known = nil
            isSkipping = false
        }
        guard let slice else { return }
        // What was known after these bytes stays known.
        if let known, known.range.upperBound > position,
            !known.withBytes(position..<known.range.upperBound, { slice.append($0) })
        {
            return slice.abandon()
        }
        _ = slice.finish()
    }
}

extension PartsBody {
    func key(of key: CacheKey, at offset: UInt64) -> CacheKey {
        key.withView { self.key(of: $0.bytes, at: offset) }
    }
}

extension StoredSlice {
    /// Calls `body` with the bytes at these positions, in pieces. Returns `false` if one cannot be
    /// had, or `body` does.
    fileprivate func withBytes(
        _ positions: Range<UInt64>, _ body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        let start = Int(positions.lowerBound - range.lowerBound)
        let end = Int(positions.upperBound - range.lowerBound)
        guard start < end else { return true }
        switch response.body {
        case .contiguous(let view):
            return body(UnsafeRawBufferPointer(rebasing: view.bytes[start..<end]))
        case .heap(let heap):
            return body(UnsafeRawBufferPointer(rebasing: heap.bytes[start..<end]))
        case .file(let file):
            let piece = UnsafeMutableRawBufferPointer.allocate(
                byteCount: min(end - start, 64 << 10), alignment: 16)
            defer { piece.deallocate() }
            var offset = start
            while offset < end {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: piece[..<min(piece.count, end - offset)])
                guard file.read(into: part, at: offset), body(UnsafeRawBufferPointer(part)) else {
                    return false
                }
                offset += part.count
            }
            return true
        case .disk, .arriving, .parts: return false
        }
    }
}
