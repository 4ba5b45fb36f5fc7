import EventLoop
import PinfoldTLS
import Trust

// What an inspected tunnel takes in, and what that leads to; each step says whether it may go on at
// once.
extension InspectedTunnel {
    /// Takes in the ClientHello.
    func greet() -> Bool {
        if let input, input.count > seen {
            let fresh = UnsafeRawBufferPointer(rebasing: input.readable[seen...])
            do throws(TLSWireError) {
                guard let found = try opening.take(fresh) else {
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
        // Who speaks before a ClientHello speaks no TLS.
        if readServer() != nil { return fail(.tunnel(.notTLS), nil) }
        return step == .greeting && readClient() != nil
    }

    private func admit(_ hello: ClientHello) -> Bool {
        if let reason = objection(to: hello) {
            return fail(
                .tunnel(reason), reason == .encryptedHello ? .accessDenied : .unrecognizedName)
        }
        // It is kept: who intercepts the tunnel in the end needs it, too.
        sendCopy(bytes: seen)
        flight = ServerFlight(answering: hello)
        go(to: .answering, within: policy.timeouts(for: authority).connectMilliseconds)
        return true
    }

    /// Queues a copy of the first bytes of the client's for the server.
    func sendCopy(bytes count: Int) {
        guard let server, let input else { return }
        let copy = environment.loop.buffers.take(bytes: count)
        copy.writable.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: input.readable.prefix(count)))
        copy.end = count
        server.output.append(copy.readable, owner: copy)
    }

    /// Takes in the server's flight, and keeps it.
    func answer() -> Bool {
        guard let buffer = readServer() else { return false }
        held += buffer.readable
        do throws(TLSWireError) {
            switch try flight?.take(buffer.readable) {
            case .presented(let proof): return judge(proof)
            case .resumed: return resume(by: flight?.ticket ?? [])
            case .encrypted: return meetEncryption()
            case .alert(let code): return fail(alert: code)
            case nil: return true
            }
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
    }

    /// The server will not: the client is told what it said.
    func fail(alert code: UInt8) -> Bool {
        fail(
            .tlsFailed(.alertReceived(code: code, name: TLSAlert(code: code).name)),
            TLSAlert(code: code))
    }

    /// Lets both sides end their handshake, and looks on.
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
            // Known before the client can use it.
            if ending?.isOver == true, ending?.isBroken == false, let session {
                note(session, ticket: ending?.ticket ?? [])
            }
            return moved && step == .finishing
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
    }

    /// What the client has said since its ClientHello, and was not taken yet.
    private func clientBytes() -> Buffer? {
        if input?.isEmpty ?? true { _ = readClient() }
        guard let bytes = input, !bytes.isEmpty else { return nil }
        input = nil
        return bytes
    }

    /// Why what a client asks for is not inspected.
    private func objection(to hello: ClientHello) -> TunnelReason? {
        guard let name = hello.serverName else {
            if hello.encryptedHello != .none { return .encryptedHello }
            // An address is never a name (RFC 6066 §3), so there is none to send.
            return isForAddress ? nil : .nameMissing
        }
        // Some send the port along, which can mean nothing else either.
        guard name == authority.host || name == "\(authority)" else {
            return hello.encryptedHello == .none ? .nameMismatch : .encryptedHello
        }
        // One that is well-formed may be GREASE, as browsers send it with the name of the host in
        // the clear: what it can lead to depends on the version (``meetEncryption()``).
        return hello.encryptedHello == .unknown ? .encryptedHello : nil
    }
}

extension TLSError {
    /// What a server's first messages are, where they cannot be followed.
    init(_ error: TLSWireError) {
        switch error {
        case .notTLS: self = .notTLS
        case .unprovable: self = .unauthenticated
        default: self = .protocolViolation("\(error)")
        }
    }
}
