/// What gathering made of the next bytes of a body.
package struct GatheredStep: Sendable, Equatable {
    /// As of ``BodyDecoder/decode(_:)``; the content may come from several chunks.
    package var step: BodyStep
    /// How many steps of the decoder it took.
    package var parts: Int
}

extension BodyDecoder {
    /// Reads on like ``decode(_:)``, but takes all the content that is at hand as one part: what
    /// lies between two runs of content (chunk sizes, line ends) is dropped, and the later run
    /// moved down to the earlier one. A body in chunks of one byte is thus passed on in as few
    /// writes as one without chunks.
    ///
    /// - Parameters:
    ///   - bytes: what was received; those that are consumed may change.
    ///   - limit: how many steps to make at most, at least one: each costs time, however small.
    package mutating func gather(
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
                // What came before the error is content; the next call tells.
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
