import EventLoop
import HTTPCore
import PinfoldTLS

extension UpstreamPool {
    func establishOrFail(
        _ origin: Origin, _ made: EstablishedConnection,
        _ times: ConnectionTimes, in session: TLSClientConnection? = nil
    ) {
        do throws(ExchangeError) {
            try establish(origin, made, times, in: session)
        } catch {
            made.transport.close()
            failed(origin, StreamError(error))
        }
    }

    /// Requests a tunnel to the origin from a proxy, over the connection to it.
    func openTunnel(
        _ origin: Origin, _ proxy: UpstreamProxy,
        _ made: EstablishedConnection, _ times: ConnectionTimes
    ) {
        let tunnel = ProxyTunnel(
            environment: environment, origin: origin, proxy: proxy, connection: made.transport
        ) { [unowned self] result in
            switch result {
            case .success(let opened):
                var times = times
                times.tunnel = opened.microseconds
                establishOrFail(origin, made, times, in: opened.session)
            case .failure(let fault): failed(origin, StreamError(fault))
            }
        }
        tunnel.start(timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }
}
