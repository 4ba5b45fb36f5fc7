import CLinux
import EventLoop
import HTTPCore
import PinfoldMetrics

@testable import PinfoldEngine

// Where connections may go, the responses to CONNECT, and tunnels.
extension SimulatedWorld {
    /// An operation that is connecting must have a name that resolves to the address, and a policy
    /// that allows it.
    func checkMayConnect(_ endpoint: Endpoint) {
        for client in clients {
            guard let exchange = client.exchange, case .opening = exchange.state.step,
                let request = client.request, let target = request.target,
                target.port == endpoint.port
            else { continue }
            if target.name.allows(endpoint.address, port: endpoint.port, trust: request.trust) {
                return
            }
        }
        for wait in upstreams.waits where wait.operation != nil {
            let key = wait.origin.key
            guard key.port == endpoint.port, let name = servers[key.host] else { continue }
            let isNamed = name.addresses.contains { $0.address == endpoint.address }
            let trust = wait.origin.policy.trust
            if isNamed, key.isFixed { return }
            if name.allows(endpoint.address, port: endpoint.port, trust: trust) { return }
        }
        fail("a connection to \(endpoint), which nobody may make")
    }

    /// A refusal names its reason.
    func checkReply(_ status: Int, _ phrase: String, _ request: SimulatedRequest) {
        guard let target = request.target else { return }
        let text = "CONNECT \(request.number) to \(target.text): \(status) \(phrase)"
        if status < 400 { return fail("\(text) without a tunnel") }
        guard Reason.tokens.contains(phrase) else { return fail("\(text): no such reason") }
        let refusals = request.ingress == 0 ? 403 : 405
        let mustRefuse =
            !request.isServed || request.ingress != 0 || target.port != SimulatedTarget.port
            || target.name.isDenied
        // How much somebody may ask for is decided before what.
        if isRated, status == 429 { return }
        if mustRefuse, status != refusals, request.isServed { fail("\(text): is not refused") }
        guard status == 403, !mustRefuse else { return }
        if !target.name.hasRefused(port: target.port, trust: request.trust) {
            fail("\(text): nothing there is refused")
        }
    }

    /// The gateway's end of a connection whose far end plays the server of a switched protocol.
    func makeServerTransport() -> Transport {
        guard let (near, far) = ScriptedSockets.pair() else { return Transport(descriptor: -1) }
        serverEnd = far
        return Transport(descriptor: near)
    }

    /// A client has been given the connection to the server of a switched protocol: it is that
    /// server's, and open.
    func takeServer(_ server: Transport) {
        let far = serverEnd
        serverEnd = -1
        var byte: UInt8 = 0
        if far < 0 || send(far, [7], 1, Int32(MSG_NOSIGNAL)) != 1
            || recv(server.descriptor, &byte, 1, 0) != 1 || byte != 7
        {
            fail("a client is given another connection than its server's")
        }
        Descriptors.close(server.descriptor)
        Descriptors.close(far)
    }

    /// A client's connection is handed over, and so is, or was, a server's.
    func openTunnel(
        for request: SimulatedRequest, of exchange: Exchange, head: Buffer
    ) -> DownstreamHandover? {
        var server = serverEnd
        serverEnd = -1
        if request.target != nil { server = sockets.takeLatest() }
        guard server >= 0 else {
            fail("a tunnel without a server")
            return nil
        }
        guard let (near, far) = ScriptedSockets.pair() else { return nil }
        var leftover: Buffer?
        var early: [UInt8] = []
        if random.chance(30) {
            early = random.bytes(1 + random.below(200))
            let buffer = exchange.environment.loop.buffers.take(bytes: early.count)
            buffer.writable.copyBytes(from: early)
            buffer.end = early.count
            leftover = buffer
        }
        var pending = OutputQueue()
        pending.append(head.readable, owner: head)
        let tunnel = SimulatedTunnel(
            self, request, of: exchange, client: far, server: server, early: early)
        tunnels.append(tunnel)
        return DownstreamHandover(
            transport: Transport(descriptor: near), leftover: leftover, pending: pending,
            closed: { _ in tunnel.noteClosed() })
    }

    /// Forgets the tunnels that are over on both sides.
    func dropTunnels() {
        tunnels.removeAll { $0.isOver && $0.isClosed }
    }

    /// What the network's parts still hold when everything is over.
    func checkNetworkAtEnd() {
        if let violation = resolver.violationAtEnd() { fail(violation) }
        if let violation = sockets.violationAtEnd() { fail(violation) }
    }
}
