import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import ProxyProtocols

// Connections of load balancers, which name their clients.
extension Worker {
    /// Waits for the PROXY header of a connection that has its sender's permits.
    func awaitHeader(_ pending: PendingConnection) {
        let arrival = ProxiedArrival(
            worker: self, descriptor: pending.descriptor, ingress: pending.ingress,
            peer: pending.peer, account: pending.account)
        do {
            try loop.add(arrival, descriptor: pending.descriptor, trigger: .levelReadable)
        } catch {
            shared.clients.close(pending.account)
            releasePermit()
            return Descriptors.close(pending.descriptor)
        }
        idleClients.joined(arrival, of: pending.account)
        clients += 1
        metrics.adjust(.clientConnectionsOpen, by: 1)
        arrival.start()
    }

    /// Called when a header has said for whom a connection is.
    func identified(_ arrival: ProxiedArrival, by header: ProxyHeader) {
        metrics.add(header.version == .v1 ? .proxyHeadersV1 : .proxyHeadersV2)
        environment.trace(
            "proxy header",
            [
                "listener": "\(arrival.ingress.name)",
                "sender": "\(String(arrival.peer.clientText))",
                "version": "\(header.version.rawValue)", "for": "\(header.origin)",
            ])
        arrival.leave(closing: false)
        // A worker that drains is not done between the two.
        clients += 1
        clientLeft(arrival.account)
        switch header.origin {
        case .sender:
            // It is one of the sender's own, which has the share of a client for these.
            seekPermits(
                arrival.descriptor, arrival.peer, arrival.ingress, awaitsHeader: false)
        case .client(let source, let destination):
            seekPermits(
                arrival.descriptor, source, arrival.ingress.of(clientTo: destination),
                awaitsHeader: false)
        }
        clients -= 1
        stopIfDrained()
    }

    /// Refuses a connection from where no header is accepted.
    func refuse(_ descriptor: Int32, senderOfNoHeader peer: Endpoint, on ingress: Ingress) {
        note(.sender, from: peer, on: ingress)
        Descriptors.close(descriptor)
    }

    /// Counts a connection that is closed for want of a header, and logs it at times.
    func note(_ refusal: ArrivalRefusalReason, from sender: Endpoint, on ingress: Ingress) {
        metrics.add(refusal.counter)
        guard mayLogRefusal() else { return }
        shared.logger.warning(
            "a connection is closed: it has no valid PROXY header",
            metadata: [
                "listener": "\(ingress.name)", "sender": "\(String(sender.clientText))",
                "reason": "\(refusal.token)", "detail": "\(refusal.explanation)",
            ])
    }
}
