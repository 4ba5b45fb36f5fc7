import EventLoop
import HTTPCore
import PinfoldTLS

extension UpstreamPool {
    func establishOrFail(
        _ origin: Origin, _ made: EstablishedConnection, _ timeline: ConnectionTimeline,
        in session: TLSClientConnection? = nil
    ) {
        var use: PrivateUse?
        if origin.key.proxyHeader != nil {
            use = claim(origin, for: made, timeline)
            guard use != nil else { return }
        }
        do throws(ExchangeError) {
            try establish(origin, made, timeline, in: session, use)
        } catch {
            made.transport.close()
            failed(origin, StreamError(error, by: timeline), use)
        }
    }

    /// Requests a tunnel to the origin from a proxy.
    func openTunnel(
        _ origin: Origin, _ proxy: UpstreamProxy, for client: IPNetwork?,
        _ timeline: ConnectionTimeline
    ) {
        // The first waiter will get it. What it has passed through ends loops for all.
        let via = origin.waiters.first?.consumer.passage.via ?? []
        var operation: ProxiedConnection?
        operation = ProxiedConnection(
            environment: environment,
            subject: ProxiedConnection.Subject(
                tunnel: ProxyTunnel.Subject(
                    authority: BoundAuthority(host: origin.key.host, port: origin.key.port),
                    proxy: proxy, policy: origin.policy, via: via),
                client: client,
                // The library's user and the operator of a reverse listener have named the server.
                rules: proxy.standing != nil && !origin.key.isFixed
                    ? origin.policy.destinationRules : nil,
                match: origin.match, stepMilliseconds: origin.timeouts.connectMilliseconds),
            timeline: timeline
        ) { [unowned self] result in
            if let operation { operations[ObjectIdentifier(operation)] = nil }
            operation = nil
            switch result {
            case .success(let opened):
                establishOrFail(
                    origin, opened.connection, timeline, in: opened.tunnel.session)
            case .failure(let failure): failed(origin, failure)
            }
        }
        guard let operation else { return }
        operations[ObjectIdentifier(operation)] = operation
        operation.start()
    }
}
