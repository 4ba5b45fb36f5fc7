import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldTLS

// The beginning of an intercepted tunnel: the 200 for CONNECT is sent, and the client's first bytes
// show whether it speaks TLS.
extension ClientConnection {
    /// A connection whose tunnel ends here; `nil` if there is no memory for its TLS.
    convenience init?(
        worker: Worker, tunnel: InterceptedTunnel, handover: DownstreamHandover,
        source: TunnelIdentitySource
    ) {
        let (outer, carrier) = (tunnel.ingress, handover.transport)
        guard
            let session = try? TLSServerConnection(
                context: tunnel.interception.context, fileDescriptor: carrier.descriptor,
                outer: carrier.tls, source: source, sessionScope: "\(tunnel.authority)",
                offer: tunnel.offer)
        else { return nil }
        self.init(
            worker: worker, transport: Transport(descriptor: carrier.descriptor, tls: session),
            ingress: Ingress(
                name: outer.name, label: outer.label, endpoint: outer.endpoint,
                role: .bound(tunnel.authority), identity: tunnel.identity,
                original: outer.original),
            peer: tunnel.peer, account: tunnel.account, tunnel: tunnel)
        opening = .greeting
        output = handover.pending
        input = handover.leftover
    }

    /// Takes one step towards the handshake, below the tunnel's TLS; returns `false` if the next
    /// one needs an event.
    func continueGreeting() -> Bool {
        guard sendGreeting() else { return false }
        let firstBytes = FirstBytes(input?.readable)
        guard let input, firstBytes != .unknown else { return readGreeting() }
        guard firstBytes == .tls, let session = transport.tls else {
            handshakeFailed(.notTLS)
            return http.isOpen
        }
        session.setEarly(input.readable)
        Buffer.release(&self.input)
        opening = .handshaking
        inputReadiness = .ready
        return true
    }

    /// Writes the response to CONNECT; returns `false` if some of it is left.
    private func sendGreeting() -> Bool {
        switch transport.carrier.flush(&output, on: worker.loop, spending: &budget) {
        case .drained: return true
        case .blocked: break
        case .turnIsOver: worker.loop.requeue(self)
        case .failed: close()
        }
        return false
    }

    /// Reads once; returns `false` if nothing was read.
    private func readGreeting() -> Bool {
        guard inputReadiness == .ready else { return false }
        let room = buffers.makeRoom(in: &input)
        switch transport.carrier.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            input?.end += count
            worker.metrics.add(.clientBytesReceived, UInt64(count))
            return true
        case .wouldBlock(let wantsWrite):
            inputReadiness.foundNothing(wantsWrite: wantsWrite)
        case .turnIsOver:
            budget.exhaust()
            return true
        case .endOfStream, .truncated, .failed: handshakeFailed(.truncated)
        }
        return false
    }

    func certificateIssued(_ result: Result<TLSServerIdentity, IssuanceError>) {
        guard http.phase == .opening, let tls = transport.tls as? TLSServerConnection
        else { return }
        // A client that has left by now will not have seen the certificate.
        if http.peerHasFinished { isUntried = false }
        switch result {
        case .success(let identity): tls.answer(.present(identity))
        case .failure(let failure):
            worker.shared.logger.warning(
                "no certificate is issued for an intercepted tunnel",
                metadata: [
                    "authority": "\(tunnel.map { "\($0.authority)" } ?? "")",
                    "reason": "\(failure)",
                ])
            tls.answer(.refuse(.internalError))
        }
        drive()
    }
}

// What the worker does for tunnels that end here.
extension Worker {
    package func takeOver(_ tunnel: InterceptedTunnel, _ handover: DownstreamHandover) {
        let source = TunnelIdentitySource(tunnel, mailbox: mailbox)
        guard
            let client = ClientConnection(
                worker: self, tunnel: tunnel, handover: handover, source: source),
            (try? loop.add(client, descriptor: client.descriptor)) != nil
        else {
            Descriptors.close(handover.transport.descriptor)
            return handover.closed(true)
        }
        source.clientToken = client.token
        if let account = client.account { idleClients.joined(client, of: account) }
        client.start()
        client.drive()
    }
}
