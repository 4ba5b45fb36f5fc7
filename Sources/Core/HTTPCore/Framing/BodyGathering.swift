/// What gathering found in the next bytes of a body.
public struct GatheredStep: Sendable, Equatable {
    /// See ``BodyDecoder/decode(_:)``; the content may come from several chunks.
    public var step: BodyStep
    /// The number of decoding steps it took.
    public var parts: Int
}

extension BodyDecoder {
    /// Decodes more bytes like ``decode(_:)``, but gathers all available content into one part:
    /// whatever lies between two runs of content (chunk sizes, line endings) is dropped, and the
    /// later run is moved down to the earlier one. A body in chunks of one byte is thus passed on
    /// in as few writes as one without chunks.
    ///
    /// - Parameters:
    ///   - bytes: the received bytes; those that are consumed may be modified.
    ///   - limit: the maximum number of steps, at least one: each takes time, however small.
    public mutating func gather(
        _ bytes: UnsafeMutableRawBufferPointer, atMost limit: Int
    ) throws(WireError) -> GatheredStep {
        if let failure { throw failure }
        let first = try decode(bytes, from: 0)
        guard case .data(let offset, let count, var consumed) = first, isChunked else {
            return GatheredStep(step: first, parts: 1)
        }
        var total = count
        var parts = 1
        loop: while parts < limit, consumed < bytes.count {
            do throws(WireError) {
                let step = try decode(bytes, from: consumed)
                parts &+= 1
                switch step {
                case .data(let next, let count, let used):
                    Self.move(bytes, from: consumed &+ next, count: count, to: offset &+ total)
                    total &+= count
                    consumed &+= used
                case .needMore(let used):
                    consumed &+= used
                    break loop
                case .end(let used):
                    consumed &+= used
                    break loop
                }
            } catch {
                // Content that precedes the error is returned first; the next call throws.
                failure = error
                break loop
            }
        }
        return GatheredStep(
            step: .data(offset: offset, count: total, consumed: consumed), parts: parts)
    }

    private mutating func decode(
        _ bytes: UnsafeMutableRawBufferPointer, from start: Int
    ) throws(WireError) -> BodyStep {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
        return try decode(rest.octets)
    }

    private static func move(
        _ bytes: UnsafeMutableRawBufferPointer, from source: Int, count: Int, to target: Int
    ) {
        guard let base = bytes.baseAddress, count > 0 else { return }
        (base + target).copyMemory(from: base + source, byteCount: count)
    }
}
