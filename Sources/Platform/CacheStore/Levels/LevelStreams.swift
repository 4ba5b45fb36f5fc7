/// The levels below memory, for one response that is being received: into which of them its body is
/// streamed, and why the others do not accept it. Used by one thread.
struct LevelStreams {
    private struct Target {
        let level: any CacheLevel
        var stream: (any LevelStream)?
        /// Why the level does not accept the body, and is not asked again; `nil` if it may.
        var refusal: StoreRefusalReason?
    }

    private var targets: [Target]

    init(_ levels: [any CacheLevel]) {
        targets = levels.map {
            Target(level: $0, refusal: $0.state == .ready ? nil : .diskOff)
        }
    }

    /// Whether no level receives the body.
    var isEmpty: Bool { !targets.contains { $0.stream != nil } }

    /// Whether a level may accept the body.
    var mayAccept: Bool { targets.contains { $0.refusal == nil } }

    /// Whether a level could still begin to receive it.
    var canBegin: Bool { targets.contains { $0.stream == nil && $0.refusal == nil } }

    /// Why a level does not accept the body; `nil` if all may. That it is too large for one is the
    /// reason only if no level has another.
    var refusal: StoreRefusalReason? {
        var reason: StoreRefusalReason?
        for target in targets {
            guard let refusal = target.refusal else { continue }
            if refusal != .tooLarge { return refusal }
            reason = refusal
        }
        return reason
    }

    /// Why no level accepts a body of `count` bytes; `nil` if one may.
    func refusal(of count: UInt64) -> StoreRefusalReason? {
        var reason = StoreRefusalReason.tooLarge
        for target in targets where count <= target.level.largestBody {
            guard let refusal = target.refusal else { return nil }
            reason = refusal
        }
        return reason
    }

    func hasRoom(for bytes: Int) -> Bool {
        targets.contains { $0.refusal == nil && $0.level.hasRoom(for: bytes) }
    }

    /// Whether a level that may accept the body is too far behind for it.
    var isCongested: Bool { targets.contains { $0.refusal == nil && $0.level.isCongested } }

    /// Begins to stream into every level that accepts it.
    /// - Parameters:
    ///   - count: bytes that the body will have at least.
    ///   - feed: appends what has been received so far.
    mutating func begin(
        _ arriving: ArrivingResponse, atLeast count: UInt64,
        _ feed: (any LevelStream) throws(StoreRefusalReason) -> Void
    ) {
        for index in targets.indices
        where targets[index].stream == nil && targets[index].refusal == nil {
            do throws(StoreRefusalReason) {
                guard count <= targets[index].level.largestBody else { throw .tooLarge }
                let stream = try targets[index].level.beginStream(arriving)
                try feed(stream)
                targets[index].stream = stream
            } catch {
                targets[index].refusal = error
            }
        }
    }

    /// Appends to the streams that there are.
    /// - Parameter total: bytes of the body with these.
    mutating func append(_ bytes: UnsafeRawBufferPointer, total: UInt64) {
        for index in targets.indices {
            guard let stream = targets[index].stream else { continue }
            do throws(StoreRefusalReason) {
                if total > targets[index].level.largestBody {
                    stream.abandon()
                    throw .tooLarge
                }
                try stream.append(bytes)
            } catch {
                targets[index].stream = nil
                targets[index].refusal = error
            }
        }
    }

    /// What has been received so far, as the first level has it from which it can be read.
    func received() -> PartialBody? {
        targets.lazy.compactMap { $0.stream?.received() }.first
    }

    /// A body that has been streamed into a level.
    struct Body {
        let level: any CacheLevel
        let stream: any LevelStream
        let body: LevelBody
        /// The response with this body, to be published.
        var response: CachedResponse?
    }

    /// Ends the streams; those that cannot be completed are left out.
    mutating func finish() -> [Body] {
        var bodies: [Body] = []
        for index in targets.indices {
            guard let stream = targets[index].stream.take() else { continue }
            do throws(StoreRefusalReason) {
                let body = try stream.finish()
                bodies.append(Body(level: targets[index].level, stream: stream, body: body))
            } catch {
                targets[index].refusal = error
            }
        }
        return bodies
    }

    /// Gives all of them up.
    mutating func abandon() {
        for index in targets.indices {
            targets[index].stream?.abandon()
            targets[index].stream = nil
        }
    }
}
