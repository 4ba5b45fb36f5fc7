import EventLoop

/// What an HTTP/2 connection reads: the bytes of its peer that have not been looked at yet.
///
/// A buffer that content on its way elsewhere still refers to stays as it is, and what follows is
/// read into another one. An idle connection holds none.
package struct FrameInput: ~Copyable {
    /// The result of a read.
    package enum Result {
        /// So many more bytes are there.
        case bytes(Int)
        case nothing
        /// The turn's budget is spent; there may be more data.
        case turnIsOver
        /// The peer has ended its direction, or cut it off.
        case ended(ReadEnd)
    }

    package enum ReadEnd {
        case closed, truncated
        case failed(TransportError)
    }

    package private(set) var buffer: Buffer?
    /// Whether a read may bring something.
    package var readiness = InputReadiness.ready
    /// Whether the peer may have ended its direction, so that a short read does not prove that
    /// nothing more is to be read: until a read has found nothing, and once that is reported.
    private var peerMayHaveFinished = true
    private var wantsLargeBuffer = false

    /// - Parameter buffer: what has been read already.
    package init(_ buffer: Buffer? = nil) { self.buffer = buffer }

    package var isEmpty: Bool { buffer?.isEmpty ?? true }

    /// Takes note of what the socket has reported.
    package mutating func note(_ reported: Readiness) {
        readiness.note(reported)
        if !reported.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
            peerMayHaveFinished = true
        }
    }

    /// Reads the next time whatever the socket has reported.
    package mutating func recheck() {
        readiness = .ready
        peerMayHaveFinished = true
    }

    /// - Parameter isLarge: whether a peer that sends fast is read from in large parts.
    package mutating func read(
        from transport: Transport, by buffers: BufferPool, isLarge: Bool,
        spending budget: inout TurnBudget
    ) -> Result {
        guard readiness == .ready else { return .nothing }
        let room = roomForReading(buffers)
        switch transport.read(
            into: room, trustsShortRead: !peerMayHaveFinished, spending: &budget)
        {
        case .bytes(let count, let drained):
            if drained { readiness = .empty }
            buffer?.end += count
            wantsLargeBuffer = isLarge && (count == room.count || count > BufferPool.smallBytes)
            return .bytes(count)
        case .wouldBlock(let wantsWrite):
            readiness.foundNothing(wantsWrite: wantsWrite)
            peerMayHaveFinished = false
            return .nothing
        case .turnIsOver: return .turnIsOver
        case .endOfStream: return end(.closed)
        case .truncated: return end(.truncated)
        case .failed(let error): return end(.failed(error))
        }
    }

    private mutating func end(_ end: ReadEnd) -> Result {
        readiness = .empty
        return .ended(end)
    }

    private mutating func roomForReading(
        _ buffers: BufferPool
    ) -> UnsafeMutableRawBufferPointer {
        if wantsLargeBuffer, let current = buffer, current.isEmpty,
            current.capacity < BufferPool.largeBytes
        {
            buffer = buffers.takeLarge()
        }
        return buffers.makeOwnRoom(in: &buffer, isLarge: wantsLargeBuffer)
    }

    /// Gives the buffer back if nothing is in it, and nothing is to be read now. What has been read
    /// and not been looked at is part of what follows.
    package mutating func rest() {
        if readiness != .ready, isEmpty { Buffer.release(&buffer) }
    }

    package mutating func discard() { buffer = nil }
}
