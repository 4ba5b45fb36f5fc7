import CachePolicy

// Looking at what is stored for a key, head and body, as if nobody had looked.
extension CacheStore {
    /// Reads all variants of a key from memory, and from the first level below it that has any.
    /// Nothing is kept of what is read, and nothing counts as used: no entry moves between the
    /// levels or in an order of eviction. Bodies on disk stay there (`readChunk`), unless they are
    /// in the row of their head.
    ///
    /// - Parameters:
    ///   - inMemoryOnly: whether the levels below memory do not matter.
    ///   - policy: the policy for the metadata of heads that are read from a level.
    ///   - completion: called once, on one of the levels' threads or at once, with what was found,
    ///     those in memory first; with an error if it would lack something.
    public func look(
        at key: CacheKey, inMemoryOnly: Bool = false, policy: PolicyOptions = PolicyOptions(),
        completion: @escaping @Sendable (Result<[SeenResponse], CacheListingError>) -> Void
    ) {
        look(at: key, inMemoryOnly, policy, attempts: Self.lookAttempts, completion)
    }

    /// How often a key is looked at that changes meanwhile.
    private static let lookAttempts = 3

    /// Throws if what is on disk cannot be read now, although a disk is configured.
    public func checkReadable() throws(CacheListingError) { _ = try disk.hasRows() }

    private func look(
        at key: CacheKey, _ inMemoryOnly: Bool, _ policy: PolicyOptions, attempts: Int,
        _ completion: @escaping @Sendable (Result<[SeenResponse], CacheListingError>) -> Void
    ) {
        if disk.isBeside { disk.catchUp(memory) }
        let inMemory = key.withView { memory.entries($0) }
            .map { SeenResponse(response: $0.response, isInMemory: true) }
        if inMemoryOnly { return completion(.success(inMemory)) }
        let (look, generation) = (LevelLook(), disk.generation)
        do throws(CacheListingError) {
            try checkReadable()
            let below = key.withView { view in levelVariants(view) { _ in nil } }
            try disk.confirm(generation)
            if below == .none { return completion(.success(inMemory)) }
        } catch {
            return completion(.failure(error))
        }
        let load = LevelLoad(
            key: key.bytes, hash: key.hash, variants: nil, policy: policy, memory: memory,
            look: look, born: bans.settled
        ) { [self] result in
            do throws(CacheListingError) {
                if let failure = look.failure { throw failure }
                try disk.confirm(generation)
            } catch {
                return completion(.failure(error))
            }
            if look.hasChanged, attempts > 1 {
                // Its successor may be in memory.
                return self.look(at: key, inMemoryOnly, policy, attempts: attempts - 1, completion)
            }
            completion(.success(inMemory + result.unseen(in: inMemory)))
        }
        if !load.begin(at: levels[...], wakes: true) {
            completion(.failure(disk.index.phase == .off(.closed) ? .closed : .busy))
        }
    }
}

/// A stored response that was looked at.
public struct SeenResponse: Sendable {
    public let response: CachedResponse
    /// Whether it was found in memory; it may be on disk as well.
    public let isInMemory: Bool
}

extension LoadResult {
    /// What was found of other variants than those.
    fileprivate func unseen(in seen: [SeenResponse]) -> [SeenResponse] {
        guard case .found(let responses, _) = self else { return [] }
        return responses.filter { response in
            !seen.contains { $0.response.varyKey == response.varyKey }
        }.map { SeenResponse(response: $0, isInMemory: false) }
    }
}
