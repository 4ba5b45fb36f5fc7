import EventLoop
import HTTPCore
import PinfoldEngine
import ProxyProtocols

// What the client says, and the exchanges that decide about it.
extension SOCKSConnection {
    /// Takes one step; returns `false` if the next one needs an event.
    func negotiate() -> Bool {
        guard let input, !input.isEmpty else { return readInput() }
        let (consumed, step) = handshake.take(input.readable.octets)
        input.start += consumed
        budget.spend(.part)
        switch step {
        case .needsMore: return readInput()
        case .send(let bytes): say(bytes)
        case .check(let user, let password): prove(user, password)
        case .connect(let destination):
            connect(
                to: String(decoding: destination.authority, as: UTF8.self),
                at: provenIngress ?? ingress)
        case .refuse(let error, let reply): refuse(error, reply)
        }
        return true
    }

    /// Reads once; returns `false` if nothing was read.
    private func readInput() -> Bool {
        guard inputReadiness == .ready else {
            awaitMore()
            return false
        }
        let room = loop.buffers.makeRoom(in: &input)
        switch transport.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            input?.end += count
            worker.metrics.add(.clientBytesReceived, UInt64(count))
            return true
        case .wouldBlock(let wantsWrite):
            inputReadiness.foundNothing(wantsWrite: wantsWrite)
            awaitMore()
        case .turnIsOver:
            budget.exhaust()
            return true
        case .endOfStream, .truncated, .failed: close()
        }
        return false
    }

    /// Holds no more than what the client has begun to say.
    private func awaitMore() {
        if input?.isEmpty ?? true { Buffer.release(&input) }
        if handshake.heldBytes > 0 { environment.hold(self, bytes: handshake.heldBytes) }
    }

    /// Sends what lets the client go on.
    private func say(_ bytes: [UInt8]) {
        environment.release(self)
        queue(bytes)
        _ = flush()
    }

    // MARK: Exchanges

    /// Has an exchange find out whether the password is right (RFC 1929). To that it is the same as
    /// the password of a request.
    private func prove(_ user: [UInt8], _ password: [UInt8]) {
        let credentials = Base64.encode(user + [UInt8(ascii: ":")] + password)
        // CONNECT as soon as it is parsed: where to is not known yet.
        let head = "OPTIONS * HTTP/1.0\r\nProxy-Authorization: Basic \(credentials)\r\n\r\n"
        begin(.proving, head, at: ingress.forProof) { buffer, exchange in
            buffer.memory.copyBytes(from: "CONNECT".utf8)
            exchange.request.method = .connect
            exchange.request.form = .authority
        }
    }

    // MARK: Refusals

    /// Refuses what is no request.
    private func refuse(_ error: SOCKSError, _ reply: [UInt8]) {
        worker.note(.protocol(error), from: peer, on: ingress)
        environment.release(self)
        queue(reply)
        phase = .answering
        loop.setDeadline(self, after: Lingering.milliseconds)
        if flush() { everythingIsSent() }
    }
}
