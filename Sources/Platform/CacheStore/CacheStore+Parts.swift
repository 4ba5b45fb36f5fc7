import CachePolicy

// Responses of which parts are stored.
extension CacheStore {
    /// What is stored of a slice.
    public enum SliceState {
        /// This, in memory.
        case inMemory(StoredSlice)
        /// A level below memory may have it: `load` its key.
        case inLevel
        case nothing
    }

    /// Stores the head of a representation of which parts are stored.
    /// - Parameters:
    ///   - head: `StoredHead.bytes` of a 206, with the length of the whole.
    ///   - flight: as for `beginStore`.
    public func publish(
        _ parts: PartsBody, key: CacheKeyView, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64, flight: StoreFlight?
    ) throws(StoreRefusalReason) {
        let bytes = parts.bytes
        let ticket = try beginStore(
            key: key, vary: vary, head: head, metadata: metadata, policy: policy,
            expectedLength: UInt64(bytes.count), flight: flight)
        guard bytes.withUnsafeBytes({ ticket.append($0) }) else {
            throw ticket.refusal ?? .lengthMismatch
        }
        if case .refused(let reason) = ticket.finish() { throw reason }
    }

    /// Begins to store a run of bytes.
    /// - Parameters:
    ///   - range: their positions.
    ///   - run: the bytes of it that others read while they arrive; `nil` if nobody can.
    public func beginParts(
        _ parts: PartsBody, of key: CacheKey, range: Range<UInt64>, run: PartsUnderWay?,
        times: StoredTimes, options: PolicyOptions
    ) -> PartsTicket {
        PartsTicket(
            self, parts, of: key, range: range, run: run, times: times, options: options)
    }

    /// Finds a run that is being received and will soon have the bytes at a position, or announces
    /// one: whoever has announced it must receive it, with `beginParts`, or end it.
    public func joinRun(
        of parts: PartsBody, at offset: UInt64, orAdd range: () -> Range<UInt64>
    ) -> (run: PartsUnderWay, isNew: Bool) {
        runs.join(parts.set, at: offset, orAdd: range, budget: memory.sharing)
    }

    /// The first run that is being received and begins within these positions.
    public func run(of parts: PartsBody, within content: Range<UInt64>) -> PartsUnderWay? {
        runs.first(of: parts.set, within: content)
    }

    /// A run that was announced will not be received.
    public func abandonRun(_ run: PartsUnderWay) {
        runs.end(run)
        run.body.breakOff()
    }

    /// What is stored of the slice that has a position.
    public func slice(of parts: PartsBody, key: CacheKey, at offset: UInt64) -> SliceState {
        let key = parts.key(of: key, at: offset)
        if let slice = sliceInMemory(key) { return .inMemory(slice) }
        let inLevels = key.withView { view in levelVariants(view) { _ in VaryKey.none } }
        if case .candidates = inLevels { return .inLevel }
        return .nothing
    }

    /// Reads a slice from the levels below memory: as `load`.
    public func loadSlice(
        of parts: PartsBody, key: CacheKey, at offset: UInt64, policy: PolicyOptions,
        completion: @escaping @Sendable (LoadResult) -> Void
    ) -> Bool {
        parts.key(of: key, at: offset).withView {
            load($0, [.none], policy: policy, completion: completion)
        }
    }

    func sliceInMemory(_ parts: PartsBody, of key: CacheKey, at offset: UInt64) -> StoredSlice? {
        sliceInMemory(parts.key(of: key, at: offset))
    }

    /// The responses that memory holds for a key.
    public func responses(_ key: CacheKeyView) -> [CachedResponse] {
        switch lookup(key) {
        case .none: []
        case .one(let response): [response]
        case .several(let responses): responses
        }
    }

    private func sliceInMemory(_ key: CacheKey) -> StoredSlice? {
        guard case .one(let response) = key.withView({ lookup($0) }) else { return nil }
        return StoredSlice(response)
    }
}
