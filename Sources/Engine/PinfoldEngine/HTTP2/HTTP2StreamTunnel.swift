import EventLoop
import HTTPCore

/// A stream that carries a tunnel.
package protocol TunnelledStream: AnyObject {
    var loop: EventLoop { get }
    /// Whether the connection has taken everything that was queued.
    var isFlushed: Bool { get }
    /// Whether the end of its content has been queued.
    var isEnding: Bool { get }
    /// Queues content.
    func queue(_ buffer: Buffer)
    func flush() -> Bool
    func finish(trailers: TrailerSection?) -> Bool
    /// Everything that can be sent is sent at the end of the turn.
    func sendSoon()
    /// So many bytes that the peer sent have been taken.
    func tunnelTook(_ count: Int)
    /// So many bytes that the peer sent have to wait.
    func tunnelKeeps(_ count: Int)
    /// The tunnel's other end is closed: what is still to be sent has a time of its own.
    func tunnelHasOneEnd()
    /// Everything has been sent, and the tunnel is over.
    func tunnelEnded()
    /// The tunnel was cut off, which the peer must notice.
    func tunnelBroke()
}

/// The bytes of a tunnel in a stream (RFC 9113 §8.5): one end of a pair of sockets, whose other end
/// is what a connection is to every other tunnel. So relays, inspection and interception
/// know nothing of streams.
///
///     client ══ DATA ══ stream ── this end ══ pair ══ other end ── relay ══ server
///
/// With a server it is the same in reverse. Backpressure goes through the pair: content that the
/// other end does not read is not credited to the peer, and nothing is read from this end that the
/// peer's windows do not allow.
package final class HTTP2StreamTunnel: EventHandler {
    private let stream: any TunnelledStream
    private let descriptor: Int32
    /// What the peer has sent and the pair has not taken.
    private var queue = OutputQueue()
    /// The buffer of its last bytes.
    private var last: Buffer?
    /// The peer is gone, and the other end is still given what it has sent to its end.
    private var isOrphaned = false
    private var inputReadiness = InputReadiness.ready
    /// The peer has ended its direction.
    private var peerEnded = false
    /// The other end is closed.
    package private(set) var isOver = false
    /// Ends what the other end is part of, if the peer cuts the tunnel off.
    package var cutOff: (() -> Void)?
    private var leaves: (() -> Void)?
    private var isClosed = false

    private init(_ stream: any TunnelledStream, _ descriptor: Int32) {
        self.stream = stream
        self.descriptor = descriptor
    }

    /// How much the pair takes in each direction: little, so that the other end notices that the
    /// client reads, however slowly.
    private static let bufferBytes: Int32 = 16 << 10

    /// Makes the pair. `nil` if descriptors have run out.
    package static func make(
        of stream: any TunnelledStream
    ) -> (tunnel: HTTP2StreamTunnel, otherEnd: Transport)? {
        guard let pair = try? Descriptors.socketPair(buffer: bufferBytes) else { return nil }
        let tunnel = HTTP2StreamTunnel(stream, pair.0)
        do {
            try stream.loop.add(tunnel, descriptor: pair.0)
        } catch {
            Descriptors.close(pair.0)
            Descriptors.close(pair.1)
            return nil
        }
        return (tunnel, Transport(descriptor: pair.1))
    }

    // MARK: From the peer

    /// Content of the stream has arrived, or its end.
    package func arrived(_ bytes: UnsafeRawBufferPointer, endsStream: Bool) {
        guard !isClosed else { return stream.tunnelTook(bytes.count) }
        if endsStream { peerEnded = true }
        add(bytes)
        write()
        let kept = min(bytes.count, queue.pendingBytes)
        if kept > 0 { stream.tunnelKeeps(kept) }
    }

    /// Copies what has arrived behind what waits, however small the pieces are.
    private func add(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            if last?.writable.isEmpty ?? true { last = stream.loop.buffers.takeSmall() }
            guard let last else { return }
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(last.writable.count))
            last.writable.copyMemory(from: part)
            queue.appendWritten(part.count, to: last)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }

    /// The peer sends nothing more.
    package func peerHasEnded() {
        arrived(UnsafeRawBufferPointer(start: nil, count: 0), endsStream: true)
    }

    private func write() {
        let before = queue.pendingBytes
        let result = queue.flush(to: descriptor)
        stream.tunnelTook(before - queue.pendingBytes)
        switch result {
        case .drained:
            last = nil
            if peerEnded { Sockets.shutdownWrite(descriptor) }
            if isOrphaned { close() }
        case .blocked: break
        case .turnIsOver: stream.loop.requeue(self)
        // The other end is closed, of which there is another report.
        case .failed:
            stream.tunnelTook(queue.pendingBytes)
            queue.discard()
            last = nil
            if isOrphaned { close() }
        }
        stream.sendSoon()
    }

    // MARK: To the peer

    package override func ready(_ readiness: Readiness) {
        guard !isClosed else { return }
        if readiness.mayWrite, !queue.isEmpty { write() }
        inputReadiness.note(readiness)
        // Nobody else says so if the other end has been given to another owner.
        if readiness.contains(.hungUp) {
            isOver = true
            inputReadiness = .ready
            guard !isOrphaned else { return close() }
            stream.tunnelHasOneEnd()
        }
        drained()
    }

    package override func continueWork() {
        guard !isClosed else { return }
        if !queue.isEmpty { write() }
        drained()
    }

    /// What was read has been taken by the connection.
    package func drained() {
        read()
        concludeIfOver()
    }

    private func read() {
        while !isClosed, !isOrphaned, inputReadiness == .ready, stream.isFlushed, !stream.isEnding {
            let buffer = stream.loop.buffers.takeSmall()
            switch Transfers.read(descriptor, into: buffer.writable) {
            case .bytes(let count):
                buffer.end = count
                stream.queue(buffer)
                guard stream.flush() else { return }
            case .wouldBlock: inputReadiness.foundNothing(wantsWrite: false)
            case .endOfStream: _ = stream.finish(trailers: nil)
            case .failed:
                // The other end was closed before it had read everything.
                close()
                return stream.tunnelBroke()
            }
        }
    }

    // MARK: The end

    /// The tunnel is over, on its other end.
    /// - Parameters:
    ///   - isBroken: whether one side was cut off, which the other one must notice (RFC 9113 §8.5).
    ///   - leaves: called when the peer has been sent everything, or is gone.
    package func ended(isBroken: Bool, _ leaves: @escaping () -> Void = {}) {
        guard !isClosed else { return leaves() }
        self.leaves = leaves
        guard !isBroken, !isOrphaned else {
            close()
            return isOrphaned ? () : stream.tunnelBroke()
        }
        // What the pair still holds is sent before that.
        isOver = true
        inputReadiness = .ready
        stream.tunnelHasOneEnd()
        drained()
    }

    private func concludeIfOver() {
        guard isOver, !isClosed, !isOrphaned, stream.isEnding, stream.isFlushed else { return }
        close()
        stream.tunnelEnded()
    }

    /// Whether the peer has ended its direction, and the other end has got everything.
    var isComplete: Bool { peerEnded && queue.isEmpty }

    /// The peer is gone. What it has sent to its end is still given to the other end.
    func peerIsGone() {
        guard peerEnded, !queue.isEmpty, !isOver else { return cut() }
        isOrphaned = true
    }

    /// The tunnel is cut off, unless the peer has ended it and the other end has got everything.
    package func cut() {
        guard !isClosed else { return }
        let isComplete = isComplete
        close()
        if !isComplete { cutOff.take()?() }
    }

    /// Closes it before anybody has used it.
    func discard() { close() }

    private func close() {
        guard !isClosed else { return }
        isClosed = true
        queue.discard()
        last = nil
        stream.loop.remove(self)
        Descriptors.close(descriptor)
        leaves.take()?()
    }
}
