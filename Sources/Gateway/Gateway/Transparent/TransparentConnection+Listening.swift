import EventLoop
import HTTPCore
import PinfoldEngine
import ProxyProtocols
import Trust

// What the client speaks, and what becomes of it.
extension TransparentConnection {
    /// The most bytes that are looked at: a ClientHello may have 16 KiB, in records of any size.
    private static let lookedAtBytes = 18 * 1024

    /// Looks at what has arrived; returns `false` if the next look needs an event.
    func lookAtInput() -> Bool {
        guard inputReadiness == .ready else { return false }
        budget.spend(.systemCall)
        return withUnsafeTemporaryAllocation(
            byteCount: Self.lookedAtBytes, alignment: 1
        ) { memory in
            switch Transfers.peek(descriptor, into: memory) {
            case .bytes(let count):
                budget.spend(bytes: count)
                inputReadiness = .empty
                hasSpoken = true
                return decide(UnsafeRawBufferPointer(rebasing: memory[..<count]))
            case .wouldBlock:
                inputReadiness = .empty
                return false
            case .endOfStream, .failed:
                close()
                return false
            }
        }
    }

    /// Decides what the client speaks; returns `false` if more of it must arrive first.
    private func decide(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let refusal = ownConnection {
            refuse(refusal)
            return true
        }
        switch OpeningProtocol(bytes.octets) {
        case .undecided:
            guard peerHasFinished || isSilent else {
                return awaitMore(after: bytes.count, mayBeAll: true)
            }
            // No more of it will be a request.
            relay()
        case .begun: return awaitMore(after: bytes.count)
        case .http: serveRequests()
        case .other: relay()
        case .tls: return openByHello(bytes)
        }
        return true
    }

    /// Waits for the rest of what the client has begun to say, which counts as unfinished until it
    /// is here. It stays in the socket.
    /// - Parameters:
    ///   - bytes: how much has arrived.
    ///   - mayBeAll: whether the client may be waiting for an answer to it.
    /// - Returns: `false`, since it is an event that is awaited.
    private func awaitMore(after bytes: Int, mayBeAll: Bool = false) -> Bool {
        // The rest will not come.
        guard !peerHasFinished else {
            close()
            return false
        }
        let rest = max(0, givesUpAt - loop.now)
        mayAwaitAnswer = mayBeAll
        loop.setDeadline(
            self, after: mayBeAll ? min(rest, OpeningProtocol.silenceMilliseconds) : rest)
        // The last step: it may be this connection that makes room for others.
        environment.hold(self, bytes: bytes)
        return false
    }

    /// Anything else: the address is the host.
    private func relay() {
        worker.metrics.add(.transparentOther)
        open(to: nil, .other)
    }

    /// HTTP: each request names its host.
    private func serveRequests() {
        worker.metrics.add(.transparentHTTP)
        speaks(.http)
        leave(closing: false)
        worker.serveRequests(of: self)
    }

    /// TLS: the first message names the host.
    private func openByHello(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let hello: ClientHello
        do throws(TLSWireError) {
            var opening = ClientOpening()
            guard let found = try opening.take(bytes)?.hello else {
                guard bytes.count >= Self.lookedAtBytes else {
                    return awaitMore(after: bytes.count)
                }
                throw .tooLong("the ClientHello")
            }
            hello = found
        } catch {
            refuse(.malformedTLS(error))
            return true
        }
        if let name = hello.serverName, !RequestedName.isValid(name) {
            refuse(.malformedName)
            return true
        }
        worker.metrics.add(.transparentTLS)
        alertVersion = hello.recordVersion
        open(to: hello.serverName, .tls)
        return true
    }

    // MARK: Tunnels

    /// Has an exchange decide about a tunnel, as about a CONNECT.
    /// - Parameter name: the host; `nil` for the address.
    func open(to name: String?, _ opening: OriginalDestination.Opening) {
        speaks(opening)
        let host = name ?? String(destination.address.text)
        connect(to: HostText.text(host, port: destination.port), at: ingress)
    }
}

extension Worker {
    /// Serves the requests of a connection that turned out to carry HTTP.
    func serveRequests(of former: TransparentConnection) {
        let client = ClientConnection(
            worker: self, transport: Transport(descriptor: former.descriptor),
            ingress: former.ingress, peer: former.peer, account: former.account)
        do throws(Errno) {
            try loop.add(client, descriptor: former.descriptor)
        } catch {
            Descriptors.close(former.descriptor)
            return clientLeft(former.account)
        }
        if let account = former.account { idleClients.joined(client, of: account) }
        client.start()
        client.drive()
    }
}
