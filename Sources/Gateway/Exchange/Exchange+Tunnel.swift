import Addressing
import Configuration
import EventLoop
import HTTPCore
import Notation

// CONNECT, and leaving HTTP after 101: the exchange becomes a relay and ends with it.
extension Exchange {
    /// CONNECT: relays bytes once the destination is connected.
    func tunnel() {
        let policy = worker.policy
        guard policy.configuration.access.connectPorts.contains(request.port) else {
            return reply(with: .connectPortRefused(request.port), closing: false)
        }
        let host = withRequestHead { $0.text(at: request.host) }.lowercasedASCII
        let target = policy.target(host: host, port: request.port, by: .tunnel)
        hostLabel = policy.route(entryIndex: target.entryIndex)
        if let refusal = target.refusal { return reply(with: refusal, closing: false) }
        guard isAdmitted() else { return }
        become(.tunnelling)
        let reachability = policy.reachability(host: host, port: request.port)
        let timeouts = policy.timeouts(entryIndex: target.entryIndex)
        let operation = ConnectOperation(
            worker: worker, host: host, port: request.port, client: clientNetwork,
            rules: policy.destinationRules, hostMatch: target.match
        ) { [weak self] result in
            guard let self, phase == .tunnelling else {
                if case .success(let made) = result { Descriptors.close(made.descriptor) }
                return
            }
            connectOperation = nil
            switch result {
            case .failure(let fault):
                worker.note(reachability, fault)
                reply(with: fault, closing: false)
            case .success(let made):
                worker.note(reachability, nil)
                upstreamEndpoint = made.endpoint
                established(Transport(descriptor: made.descriptor, tls: nil), timeouts)
            }
        }
        connectOperation = operation
        operation.start(timeoutMilliseconds: timeouts.connectMilliseconds)
    }

    private func established(_ transport: Transport, _ timeouts: TimeoutsConfiguration) {
        guard let client else { return Descriptors.close(transport.descriptor) }
        status = 200
        responseHeadSent = true
        let head = worker.loop.buffers.takeSmall()
        var writer = HeadWriter(head.writable)
        writer.append("HTTP/1.1 200 Connection established\r\nVia: 1.1 pinfold\r\n\r\n")
        head.end = writer.count
        client.sendInterim(head)
        worker.metrics.add(.tunnelsOpened)
        relay(transport, earlyFromUpstream: nil, timeouts)
    }

    /// 101: the upstream has agreed to the protocol that the client asked for.
    func switchProtocols(_ bytes: Span<UInt8>) {
        guard let client, let upstream else { return }
        // What is left of the request would be taken for the other protocol's.
        guard upstream.requestIsSent, switchesToWhatWasAsked(bytes) else {
            upstream.cancel()
            self.upstream = nil
            return fail(.response(.unexpectedSwitch))
        }
        status = 101
        responseHeadSent = true
        let head = buffer(for: response.length)
        var writer = HeadWriter(head.writable)
        writer.append("HTTP/1.1 101 Switching Protocols\r\n")
        writer.appendForwardedFields(
            response.fields, of: bytes, omitting: FieldIDSet([.contentLength]))
        writer.append("Connection: Upgrade\r\n")
        for field in response.fields where field.id == .upgrade {
            writer.append(field: .upgrade, bytes.extracting(field.value.indices))
        }
        appendResponseVia(to: &writer)
        writer.appendLineEnd()
        head.end = writer.count
        client.sendInterim(head)
        worker.metrics.add(.upgrades)
        let detached = upstream.detach()
        self.upstream = nil
        relay(
            detached.transport, earlyFromUpstream: detached.leftover,
            origin?.timeouts ?? worker.policy.timeouts)
    }

    /// A server may switch only to protocols that the request names (RFC 9110 §7.8).
    private func switchesToWhatWasAsked(_ bytes: Span<UInt8>) -> Bool {
        guard response.fields.contains(.upgrade) else { return false }
        return withRequestHead { head in
            for field in response.fields where field.id == .upgrade {
                for protocolName in bytes.listMembers(field.value) {
                    let wasAsked = request.fields.contains { asked in
                        asked.id == .upgrade
                            && head.listMembers(asked.value).contains {
                                head.extracting($0).equalsIgnoringCase(
                                    bytes.extracting(protocolName))
                            }
                    }
                    guard wasAsked else { return false }
                }
            }
            return true
        }
    }

    private func relay(
        _ transport: Transport, earlyFromUpstream: Buffer?, _ timeouts: TimeoutsConfiguration
    ) {
        become(.tunnelling)
        let account = clientReference?.account
        guard let detached = client?.detach() else {
            Descriptors.close(transport.descriptor)
            return finish()
        }
        clientReference = nil
        keepOnlyTheHead()
        worker.metrics.adjust(.tunnelsOpen, by: 1)
        // Counted when it was read, before there was a relay.
        let early = UInt64(detached.leftover?.count ?? 0)
        let relay = Relay(
            worker: worker, idleMilliseconds: timeouts.tunnelMilliseconds
        ) { [self] toUpstream, toClient, wasIdle in
            if wasIdle { fault = .tunnelIdleTimeout }
            worker.metrics.adjust(.tunnelsOpen, by: -1)
            worker.clientLeft(account)
            worker.metrics.add(.tunnelBytesToUpstream, toUpstream)
            worker.metrics.add(.tunnelBytesToClient, toClient)
            worker.metrics.add(.clientBytesReceived, toUpstream - min(early, toUpstream))
            relayedBytes = (toUpstream, toClient)
            finish()
        }
        do {
            try relay.start(
                client: detached.descriptor, upstream: transport,
                earlyFromClient: detached.leftover, earlyFromUpstream: earlyFromUpstream,
                pendingForClient: detached.pending)
        } catch {
            Descriptors.close(detached.descriptor)
            Descriptors.close(transport.descriptor)
            worker.metrics.adjust(.tunnelsOpen, by: -1)
            worker.clientLeft(account)
            finish()
        }
    }

    /// A tunnel may be open for days: of the request it keeps what the log will say.
    private func keepOnlyTheHead() {
        let head = worker.loop.buffers.take(bytes: max(1, request.length))
        head.writable.copyMemory(from: requestHead)
        head.end = request.length
        requestBuffer = head
        requestHeadStart = 0
    }
}

extension Span where Element == UInt8 {
    /// The members of a list of tokens, which the head's parser has found to be one.
    fileprivate func listMembers(_ value: ByteRange) -> [Range<Int>] {
        var members: [Range<Int>] = []
        var start: Int?
        for index in Int(value.start)...Int(value.end) {
            let isEnd = index == Int(value.end)
            let separates = isEnd || self[index] == 0x2C || self[index] == 0x20 || self[index] == 9
            if separates, let begun = start {
                members.append(begun..<index)
                start = nil
            } else if !separates, start == nil {
                start = index
            }
        }
        return members
    }
}
