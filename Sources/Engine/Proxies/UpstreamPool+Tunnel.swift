import Addressing
import EventLoop
import TLS

extension UpstreamPool {
    func establishOrFail(
        _ origin: Origin, _ made: (descriptor: Int32, endpoint: Endpoint),
        _ times: ConnectionTimes, in session: TLSClientConnection? = nil
    ) {
        do throws(ExchangeFault) {
            try establish(origin, made, times, in: session)
        } catch {
            Descriptors.close(made.descriptor)
            failed(origin, error)
        }
    }

    /// Asks a proxy for a tunnel to the origin, over the connection to it.
    func openTunnel(
        _ origin: Origin, _ proxy: UpstreamProxy,
        _ made: (descriptor: Int32, endpoint: Endpoint), _ times: ConnectionTimes
    ) {
        let tunnel = ProxyTunnel(
            environment: environment, origin: origin, proxy: proxy, descriptor: made.descriptor
        ) { [unowned self] result in
            switch result {
            case .success(let opened):
                var times = times
                times.tunnel = opened.microseconds
                establishOrFail(origin, made, times, in: opened.session)
            case .failure(let fault): failed(origin, fault)
            }
        }
        tunnel.start(timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }
}
