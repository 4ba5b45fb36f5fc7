import EventLoop
import PinfoldTLS
import Trust

// The steps of an inspected tunnel. Each returns whether the next one may follow immediately.
extension InspectedTunnel {
    /// Reads the ClientHello.
    func readClientHello() -> Bool {
        if let input, input.count > seen {
            let fresh = UnsafeRawBufferPointer(rebasing: input.readable[seen...])
            do throws(TLSWireError) {
                guard let found = try clientOpening.take(fresh) else {
                    seen += fresh.count
                    return true
                }
                seen += found.count
                hello = found.hello
                return admit(found.hello)
            } catch {
                if error == .notTLS { return fail(.tunnel(.notTLS), nil) }
                return fail(.tunnelHello(error), .handshakeFailure)
            }
        }
        // A server that sends data before a ClientHello does not speak TLS.
        if readServer() != nil { return fail(.tunnel(.notTLS), nil) }
        return step == .greeting && readClient() != nil
    }

    private func admit(_ hello: ClientHello) -> Bool {
        if let reason = objection(to: hello) {
            return fail(
                .tunnel(reason), reason == .encryptedHello ? .accessDenied : .unrecognizedName)
        }
        // It is kept, because interception of the tunnel would need it, too.
        sendCopy(bytes: seen)
        helloSent = environment.readClock()
        flight = ServerFlight(answering: hello)
        go(to: .answering, within: policy.timeouts(for: authority).connectMilliseconds)
        return true
    }

    /// Queues a copy of the client's first bytes for the server.
    func sendCopy(bytes count: Int) {
        guard let server, let input else { return }
        let copy = environment.loop.buffers.take(bytes: count)
        copy.writable.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: input.readable.prefix(count)))
        copy.end = count
        server.output.append(copy.readable, owner: copy)
    }

    /// Reads the server's flight, and keeps it.
    func answer() -> Bool {
        guard let buffer = readServer() else { return false }
        held += buffer.readable
        do throws(TLSWireError) {
            switch try flight?.take(buffer.readable) {
            case .presented(let proof): return verify(proof)
            case .resumed: return resume(by: flight?.ticket ?? [])
            case .encrypted: return handleTLS13()
            case .alert(let code): return fail(alert: code)
            case nil: return true
            }
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
    }

    /// The server refuses: passes its alert on to the client.
    func fail(alert code: UInt8) -> Bool {
        fail(
            .tlsFailed(.alertReceived(code: code, name: TLSAlert(code: code).name)),
            TLSAlert(code: code))
    }

    /// Lets both sides complete their handshake, and observes it.
    func finish() -> Bool {
        guard ending?.isOver == false, ending?.isBroken == false else { return relay() }
        do throws(TLSWireError) {
            var moved = false
            if let fresh = clientBytes() {
                try ending?.takeFromClient(fresh.readable)
                server?.output.append(fresh.readable, owner: fresh)
                moved = true
            }
            guard step == .finishing else { return false }
            if let buffer = readServer() {
                try ending?.takeFromServer(buffer.readable)
                output.append(buffer.readable, owner: buffer)
                moved = true
            }
            // Recorded before the client can use it.
            if ending?.isOver == true, ending?.isBroken == false, let session {
                note(session, ticket: ending?.ticket ?? [])
            }
            return moved && step == .finishing
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
    }

    /// What the client has sent since its ClientHello and has not been processed yet.
    private func clientBytes() -> Buffer? {
        if input?.isEmpty ?? true { _ = readClient() }
        guard let bytes = input, !bytes.isEmpty else { return nil }
        input = nil
        return bytes
    }

    /// Why a ClientHello is refused.
    private func objection(to hello: ClientHello) -> TunnelReason? {
        guard let name = hello.serverName else {
            if hello.encryptedHello != .none { return .encryptedHello }
            // An address cannot be sent as a server name (RFC 6066 §3).
            return isForAddress ? nil : .nameMissing
        }
        // Some clients include the port, which is unambiguous, too.
        guard name == authority.host || name == "\(authority)" else {
            return hello.encryptedHello == .none ? .nameMismatch : .encryptedHello
        }
        // A well-formed one may be GREASE, which browsers send together with the host's name in
        // clear text: what it can lead to depends on the version (``handleTLS13()``).
        return hello.encryptedHello == .unknown ? .encryptedHello : nil
    }
}

extension TLSError {
    /// The error for a server's first messages that cannot be parsed.
    init(_ error: TLSWireError) {
        switch error {
        case .notTLS: self = .notTLS
        case .unprovable: self = .unauthenticated
        default: self = .protocolViolation("\(error)")
        }
    }
}
