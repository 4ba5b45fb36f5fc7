import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldTLS

// How connections that have their permits begin to be served.
extension Worker {
    /// Admits a connection that is within all limits.
    func admit(
        _ descriptor: Int32, _ peer: Endpoint, _ ingress: Ingress, account: ClientAccount?
    ) {
        guard let transport = makeTransport(descriptor, ingress) else {
            if let account { leaves(account) }
            return Descriptors.close(descriptor)
        }
        var ingress = ingress
        if ingress.path != nil, let process = UnixSockets.peer(of: descriptor) {
            ingress = ingress.of(process)
        }
        let client = makeClient(transport, ingress, peer, account)
        do {
            try loop.add(client, descriptor: descriptor)
        } catch {
            if let account { leaves(account) }
            return Descriptors.close(descriptor)
        }
        if let account { idleClients.joined(client, of: account) }
        if ingress.isCounted { clients += 1 }
        environment.trace(
            "accepted", ["listener": "\(ingress.name)", "client": "\(String(peer.clientText))"])
        metrics.add(.clientConnectionsAccepted)
        metrics.adjust(.clientConnectionsOpen, by: 1)
        client.start()
    }

    private func makeClient(
        _ transport: Transport, _ ingress: Ingress, _ peer: Endpoint, _ account: ClientAccount?
    ) -> any AdmittedConnection {
        switch ingress.speaks {
        case .http:
            ClientConnection(
                worker: self, transport: transport, ingress: ingress, peer: peer, account: account)
        case .socks5:
            SOCKSConnection(
                worker: self, transport: transport, ingress: ingress, peer: peer, account: account)
        case .transparent:
            TransparentConnection(
                worker: self, transport: transport, ingress: ingress, peer: peer, account: account)
        }
    }

    /// The transport of an accepted connection, or `nil` if there is no memory for it.
    private func makeTransport(_ descriptor: Int32, _ ingress: Ingress) -> Transport? {
        guard let tls = ingress.tls else { return Transport(descriptor: descriptor) }
        let session = try? TLSServerConnection(context: tls.context, fileDescriptor: descriptor)
        return session.map { Transport(descriptor: descriptor, tls: $0) }
    }
}
