import EventLoop
import TLS

/// The bytes of an upstream connection: clear, or through TLS.
///
/// Reads say whether the socket was seen empty: after that the next edge will come, and before
/// that reading must go on.
struct Transport {
    /// What a read brought.
    enum ReadResult {
        case bytes(Int, drained: Bool)
        /// Nothing there. `wantsWrite`: and nothing will be before the socket takes bytes.
        case wouldBlock(wantsWrite: Bool)
        /// Nothing yet; there may be more, but others have their turn first.
        case turnIsOver
        /// The peer ended its direction well.
        case endOfStream
        /// The stream was cut: with TLS, without its end mark.
        case truncated
        case failed(ExchangeFault)
    }

    let descriptor: Int32
    let tls: TLSClientConnection?

    /// What is spoken, for the access log.
    var version: UpstreamTLSVersion {
        switch tls?.version {
        case .tls12: .tls12
        case .tls13: .tls13
        case nil: .none
        }
    }

    /// - Parameter trustsShortRead: take a short read as proof that the socket is empty; not when
    ///   the peer is known to have finished, whose end would then not be seen.
    /// - Parameter budget: what it costs is taken from there.
    func read(
        into memory: UnsafeMutableRawBufferPointer, trustsShortRead: Bool = false,
        spending budget: inout TurnBudget
    ) -> ReadResult {
        let result = read(into: memory, trustsShortRead: trustsShortRead)
        budget.spend(.systemCall)
        if let tls { budget.spend(.record, times: tls.recordsOfLastRead) }
        if case .bytes(let count, _) = result { budget.spend(bytes: count) }
        return result
    }

    private func read(
        into memory: UnsafeMutableRawBufferPointer, trustsShortRead: Bool
    ) -> ReadResult {
        guard let tls else {
            switch Transfers.read(descriptor, into: memory) {
            case .bytes(let count):
                return .bytes(count, drained: trustsShortRead && count < memory.count)
            case .wouldBlock: return .wouldBlock(wantsWrite: false)
            case .endOfStream: return .endOfStream
            case .failed(let error): return .failed(.upstreamReset(error))
            }
        }
        switch tls.read(into: memory, trustsShortReceive: trustsShortRead) {
        case .bytes(let count, let drained): return .bytes(count, drained: drained)
        case .wantRead: return .wouldBlock(wantsWrite: false)
        case .wantWrite: return .wouldBlock(wantsWrite: true)
        case .turnIsOver: return .turnIsOver
        case .endOfStream: return .endOfStream
        case .truncated: return .truncated
        case .failed: return .failed(tls.failure.map { .tlsFailed($0) } ?? .upstreamClosed)
        }
    }

    func flush(_ output: inout OutputQueue) -> OutputQueue.Flush {
        guard let tls else { return output.flush(to: descriptor) }
        while let front = output.front {
            guard let memory = front.memory else { return .failed(Errno(code: 95)) }
            switch tls.write(UnsafeRawBufferPointer(start: memory, count: front.count)) {
            case .bytes(let count):
                output.consume(count)
                if count < front.count { return .blocked }
            case .wantRead, .wantWrite: return .blocked
            case .failed: return .failed(.connectionReset)
            }
        }
        return .drained
    }

    /// Ends the sending direction; false: the socket is full, call again when it is writable.
    func finishSending() -> Bool {
        if let tls { return tls.shutdown() }
        Sockets.shutdownWrite(descriptor)
        return true
    }
}
