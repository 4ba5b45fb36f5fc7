import HTTPCore

/// A server's side of SOCKS 5 (RFC 1928), up to the client's request: bytes in, steps out.
///
///     greeting ──► 05 00 ──────────────────────────────────────► request ──► connect
///        └───────► 05 02 ──► credentials ──► check ──► 01 00 ──────┘
///
/// Every message is refused as soon as it cannot become a good one. Bytes after the request are
/// never taken: they are meant for the destination.
package struct SOCKSHandshake: Sendable {
    /// What follows from the bytes taken so far.
    package enum Step: Equatable, Sendable {
        /// The message is not complete.
        case needsMore
        /// This is to be sent, and the client goes on.
        case send([UInt8])
        /// The client is this user, if the password is right: ``judged(_:)`` says so.
        case check(user: [UInt8], password: [UInt8])
        /// The request. The client is answered with a ``SOCKSReply``.
        case connect(SOCKSDestination)
        /// This is to be sent, and the connection to be closed.
        case refuse(SOCKSError, [UInt8])
    }

    private enum Phase {
        case greeting
        case credentials
        case judging
        case request
        case over
    }

    private let needsPassword: Bool
    private var phase = Phase.greeting
    /// What has arrived of the present message, at most 513 bytes.
    private var received: [UInt8] = []

    /// Expects the first byte of a connection.
    ///
    /// - Parameter needsPassword: whether a client must say who it is (RFC 1929).
    package init(needsPassword: Bool) { self.needsPassword = needsPassword }

    /// How many bytes are held.
    package var heldBytes: Int { received.count }

    /// Takes the next bytes, up to the end of a message.
    ///
    /// - Returns: how many of them were taken, and what follows from them.
    package mutating func take(_ bytes: Span<UInt8>) -> (consumed: Int, step: Step) {
        var index = 0
        while index < bytes.count {
            switch phase {
            case .judging, .over: return (index, .needsMore)
            case .greeting, .credentials, .request: break
            }
            received.append(bytes[index])
            index += 1
            let step: Step?
            do throws(SOCKSError) {
                step = try continued()
            } catch {
                phase = .over
                step = .refuse(error, error.reply)
            }
            if let step {
                received = []
                return (index, step)
            }
        }
        return (index, .needsMore)
    }

    /// Says whether the user and the password were right.
    ///
    /// - Returns: what is to be sent; if they were wrong, the connection is then to be closed (RFC
    ///   1929 §2).
    package mutating func judged(_ isRight: Bool) -> [UInt8] {
        phase = isRight ? .request : .over
        return isRight ? [SOCKS5.passwordVersion, 0] : SOCKSError.credentials.reply
    }

    private mutating func continued() throws(SOCKSError) -> Step? {
        switch phase {
        case .greeting: try greeting()
        case .credentials: try credentials()
        case .request: try request()
        case .judging, .over: nil
        }
    }

    // MARK: Messages

    /// `VER NMETHODS METHODS` (RFC 1928 §3).
    private mutating func greeting() throws(SOCKSError) -> Step? {
        guard received[0] == SOCKS5.version else { throw Self.otherProtocol(received[0]) }
        guard received.count >= 2 else { return nil }
        let count = Int(received[1])
        guard count > 0 else { throw .noMethod }
        guard received.count == 2 + count else { return nil }
        let method = needsPassword ? SOCKS5.Method.password : SOCKS5.Method.none
        guard received[2...].contains(method) else { throw .noMethod }
        phase = needsPassword ? .credentials : .request
        return .send([SOCKS5.version, method])
    }

    private static func otherProtocol(_ first: UInt8) -> SOCKSError {
        switch first {
        case 4: .version4
        case 0x16: .tls
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            0x0A, 0x0D:
            .http
        default: .version
        }
    }

    /// `VER ULEN UNAME PLEN PASSWD` (RFC 1929 §2).
    private mutating func credentials() throws(SOCKSError) -> Step? {
        guard received[0] == SOCKS5.passwordVersion else { throw .malformedCredentials }
        guard received.count >= 2 else { return nil }
        let nameEnd = 2 + Int(received[1])
        guard nameEnd > 2 else { throw .malformedCredentials }
        guard received.count > nameEnd,
            received.count == nameEnd + 1 + Int(received[nameEnd])
        else { return nil }
        // Basic's credentials are one text: a colon would make another user of it.
        guard !received[2..<nameEnd].contains(UInt8(ascii: ":")) else {
            throw .malformedCredentials
        }
        phase = .judging
        return .check(
            user: Array(received[2..<nameEnd]), password: Array(received[(nameEnd + 1)...]))
    }

    /// `VER CMD RSV ATYP DST.ADDR DST.PORT` (RFC 1928 §4).
    private mutating func request() throws(SOCKSError) -> Step? {
        let count = received.count
        switch count {
        case 1: guard received[0] == SOCKS5.version else { throw .malformedRequest }
        case 2: guard received[1] == SOCKS5.connect else { throw .command }
        case 3: guard received[2] == 0 else { throw .malformedRequest }
        default: break
        }
        guard count > 3 else { return nil }
        guard let type = SOCKS5.AddressType(rawValue: received[3]) else { throw .addressType }
        guard let address = SOCKS5.address(of: type, in: received) else { return nil }
        guard !address.isEmpty else { throw .malformedDestination }
        guard count == address.upperBound + 2 else { return nil }
        let port = UInt16(SOCKS5.number(received.suffix(2)))
        guard port > 0, let host = SOCKSDestination.Host(received[address], type)
        else { throw .malformedDestination }
        phase = .over
        return .connect(SOCKSDestination(host, port: port))
    }
}
