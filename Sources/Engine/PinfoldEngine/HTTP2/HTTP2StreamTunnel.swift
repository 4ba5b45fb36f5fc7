import EventLoop
import HTTP2
import HTTPCore
import PinfoldEngine

/// The bytes of a tunnel in a stream (RFC 9113 §8.5): one end of a pair of sockets, whose other end
/// is what a client's connection is to every other tunnel. So relays, inspection and interception
/// know nothing of streams.
///
///     client ══ DATA ══ stream ── this end ══ pair ══ other end ── relay ══ server
///
/// Backpressure goes through the pair: content that the other end does not read is not credited to
/// the client, and nothing is read from this end that the client's windows do not allow.
final class HTTP2StreamTunnel: EventHandler {
    private let stream: HTTP2ClientStream
    private let descriptor: Int32
    /// What the client has sent and the pair has not taken.
    private var queue = OutputQueue()
    private var inputReadiness = InputReadiness.ready
    /// The client has ended its direction.
    private var clientEnded = false
    /// The other end is closed.
    private(set) var isOver = false
    private var leaves: (() -> Void)?
    private var isClosed = false

    private init(_ stream: HTTP2ClientStream, _ descriptor: Int32) {
        self.stream = stream
        self.descriptor = descriptor
    }

    /// How much the pair takes in each direction: little, so that the other end notices that the
    /// client reads, however slowly.
    private static let bufferBytes: Int32 = 16 << 10

    /// Makes the pair. `nil` if descriptors have run out.
    static func make(
        of stream: HTTP2ClientStream
    ) -> (tunnel: HTTP2StreamTunnel, otherEnd: Transport)? {
        guard let pair = try? Descriptors.socketPair(buffer: bufferBytes) else { return nil }
        let tunnel = HTTP2StreamTunnel(stream, pair.0)
        do {
            try stream.connection.loop.add(tunnel, descriptor: pair.0)
        } catch {
            Descriptors.close(pair.0)
            Descriptors.close(pair.1)
            return nil
        }
        return (tunnel, Transport(descriptor: pair.1))
    }

    // MARK: From the client

    /// Content of the stream has arrived, or its end.
    func arrived(_ bytes: UnsafeRawBufferPointer, endsStream: Bool) {
        guard !isClosed else { return stream.connection.consumed(bytes.count, of: stream) }
        if endsStream { clientEnded = true }
        if !bytes.isEmpty {
            let buffer = stream.connection.buffers.take(bytes: bytes.count)
            buffer.writable.copyMemory(from: bytes)
            buffer.end = bytes.count
            queue.append(buffer.readable, owner: buffer)
        }
        write()
    }

    /// The client sends nothing more.
    func clientHasEnded() {
        arrived(UnsafeRawBufferPointer(start: nil, count: 0), endsStream: true)
    }

    private func write() {
        let before = queue.pendingBytes
        let result = queue.flush(to: descriptor)
        let connection = stream.connection
        connection.consumed(before - queue.pendingBytes, of: stream)
        switch result {
        case .drained:
            if clientEnded { Sockets.shutdownWrite(descriptor) }
        case .blocked: break
        case .turnIsOver: connection.loop.requeue(self)
        // The other end is closed, of which there is another report.
        case .failed:
            connection.consumed(queue.pendingBytes, of: stream)
            queue.discard()
        }
        connection.sendSoon()
    }

    // MARK: To the client

    override func ready(_ readiness: Readiness) {
        guard !isClosed else { return }
        if readiness.mayWrite, !queue.isEmpty { write() }
        inputReadiness.note(readiness)
        // Nobody else says so if the other end has been given to another owner.
        if readiness.contains(.hungUp) {
            isOver = true
            inputReadiness = .ready
        }
        drained()
    }

    override func continueWork() {
        guard !isClosed else { return }
        if !queue.isEmpty { write() }
        drained()
    }

    /// What was read has been taken by the connection.
    func drained() {
        read()
        concludeIfOver()
    }

    private func read() {
        while !isClosed, inputReadiness == .ready, stream.isFlushed, !stream.isEnding {
            let buffer = stream.connection.buffers.takeSmall()
            switch Transfers.read(descriptor, into: buffer.writable) {
            case .bytes(let count):
                buffer.end = count
                stream.send(buffer.readable, owner: buffer)
                guard stream.flush() else { return }
            case .wouldBlock: inputReadiness.foundNothing(wantsWrite: false)
            case .endOfStream: _ = stream.finish(trailers: nil)
            case .failed: inputReadiness = .empty
            }
        }
    }

    // MARK: The end

    /// The tunnel is over, on its other end.
    /// - Parameters:
    ///   - isBroken: whether one side was cut off, which the other one must notice (RFC 9113 §8.5).
    ///   - leaves: called when the client has been sent everything, or is gone.
    func ended(isBroken: Bool, _ leaves: @escaping () -> Void) {
        guard !isClosed else { return leaves() }
        self.leaves = leaves
        guard !isBroken else {
            close()
            stream.tunnel = nil
            return stream.connection.fail(stream, .connectError)
        }
        // What the pair still holds is sent before that.
        isOver = true
        inputReadiness = .ready
        stream.progressed = stream.connection.loop.now
        drained()
    }

    private func concludeIfOver() {
        guard isOver, !isClosed, stream.isEnding, stream.isFlushed else { return }
        close()
        stream.tunnel = nil
        stream.connection.exchangeEnded(on: stream)
    }

    /// The client is gone.
    func cut() { close() }

    private func close() {
        guard !isClosed else { return }
        isClosed = true
        queue.discard()
        stream.connection.loop.remove(self)
        Descriptors.close(descriptor)
        leaves.take()?()
    }
}
