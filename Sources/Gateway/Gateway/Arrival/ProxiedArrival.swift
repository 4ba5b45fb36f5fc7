import EventLoop
import HTTPCore
import ProxyProtocols

/// A connection until its PROXY header says who the client is; then another object serves it.
///
///     accepted ──► the sender's permits ──► ProxiedArrival ──► header
///         of a client ──► the sender's permits released, the client's sought ──► connection
///         of the sender itself ────────────────────────────────────────────────► connection
///
/// Nothing is read beyond the header: what follows it is left in the socket, for TLS or for the
/// parser of requests. So nobody reads a second header as one.
final class ProxiedArrival: OpeningConnection {
    private var parser = ProxyHeaderParser()

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        guard !isClosed else { return }
        withUnsafeTemporaryAllocation(
            byteCount: ProxyHeaderParser.maximumBytes, alignment: 1
        ) { memory in
            switch Transfers.peek(descriptor, into: memory) {
            case .bytes(let count):
                take(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
            case .wouldBlock: break
            case .endOfStream, .failed: refuse(.closed)
            }
        }
    }

    /// Takes what belongs to the header of the bytes that have arrived.
    private func take(_ arrived: UnsafeMutableRawBufferPointer) {
        let taken: (consumed: Int, header: ProxyHeader?)
        do throws(ProxyHeaderError) {
            taken = try parser.take(UnsafeRawBufferPointer(arrived).octets)
        } catch {
            return refuse(.header(error))
        }
        let ours = UnsafeMutableRawBufferPointer(rebasing: arrived[..<taken.consumed])
        guard case .bytes(taken.consumed) = Transfers.read(descriptor, into: ours) else {
            return refuse(.closed)
        }
        worker.metrics.add(.clientBytesReceived, UInt64(taken.consumed))
        if let header = taken.header {
            worker.identified(self, by: header)
        } else {
            worker.environment.hold(self, bytes: parser.heldBytes)
        }
    }

    override func deadlineReached() { refuse(.timeout) }

    private func refuse(_ refusal: ArrivalRefusalReason) {
        guard !isClosed else { return }
        worker.note(refusal, from: peer, on: ingress)
        close()
    }
}
