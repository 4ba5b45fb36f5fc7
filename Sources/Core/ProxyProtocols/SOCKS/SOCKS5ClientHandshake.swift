/// A client's part of asking a SOCKS5 proxy for a connection (RFC 1928), with or without a user
/// name and password (RFC 1929): bytes in, bytes to send out.
///
///     choosing ──► replying ──► ended
///         └──► authenticating ──►┘
///
/// Nothing is sent before the proxy has answered the previous message, and not one byte beyond its
/// last answer is consumed: what follows belongs to the connection that it has opened.
package struct SOCKS5ClientHandshake: Sendable {
    /// A user name and password, each of 1 to 255 bytes (RFC 1929 §2).
    package struct Credentials: Sendable, Hashable {
        let user: [UInt8]
        let password: [UInt8]

        /// `nil` if one of them is empty or too long.
        package init?(user: [UInt8], password: [UInt8]) {
            guard 1...255 ~= user.count, 1...255 ~= password.count else { return nil }
            self.user = user
            self.password = password
        }
    }

    /// What follows from the bytes that were consumed.
    package enum Action: Sendable, Hashable {
        /// More bytes of the proxy are needed.
        case wait
        /// These bytes are to be sent; then more of the proxy's are needed.
        case send([UInt8])
        /// The proxy has connected: whatever follows is from the target.
        case opened
    }

    private enum State {
        /// The proxy chooses a method of authentication.
        case choosing
        /// The proxy checks the password.
        case authenticating
        /// The proxy connects.
        case replying
        case ended
    }

    private let target: SOCKSDestination
    private let credentials: Credentials?
    private var state = State.choosing
    /// The bytes of the message that is being received.
    private var message: [UInt8] = []

    /// - Parameters:
    ///   - target: what the proxy is asked to connect to: an address that the client has resolved,
    ///     or a name that the proxy resolves.
    ///   - credentials: what is offered to prove who asks; `nil` to ask as anybody.
    package init(to target: SOCKSDestination, as credentials: Credentials? = nil) {
        self.target = target
        self.credentials = credentials
    }

    /// The first message: the methods of authentication that are offered (RFC 1928 §3). With
    /// credentials, a proxy may still choose none.
    package var greeting: [UInt8] {
        credentials == nil
            ? [SOCKS5.version, 1, SOCKS5.Method.none]
            : [SOCKS5.version, 2, SOCKS5.Method.none, SOCKS5.Method.password]
    }

    /// Takes bytes of the proxy.
    /// - Returns: what follows, and how many of the bytes were consumed. If it is
    ///   ``Action/send(_:)``, the rest is for the next call.
    package mutating func receive(
        _ bytes: Span<UInt8>
    ) throws(SOCKS5Error) -> (action: Action, consumed: Int) {
        var consumed = 0
        while consumed < bytes.count {
            message.append(bytes[consumed])
            consumed += 1
            guard let action = try take() else { continue }
            message = []
            return (action, consumed)
        }
        return (.wait, consumed)
    }

    /// What follows from the message so far; `nil` if it is incomplete.
    private mutating func take() throws(SOCKS5Error) -> Action? {
        switch state {
        case .choosing:
            guard message[0] == SOCKS5.version else { throw .notSOCKS5(message[0]) }
            return message.count == 2 ? try chosen(message[1]) : nil
        case .authenticating:
            guard message[0] == SOCKS5.passwordVersion else { throw .malformed }
            guard message.count == 2 else { return nil }
            guard message[1] == 0 else { throw .authenticationFailed }
            return ask()
        case .replying: return try reply()
        case .ended: throw .malformed
        }
    }

    private mutating func chosen(_ method: UInt8) throws(SOCKS5Error) -> Action {
        switch method {
        case SOCKS5.Method.none: return ask()
        case SOCKS5.Method.password:
            guard let credentials else { throw .authenticationRequired }
            state = .authenticating
            return .send(
                [SOCKS5.passwordVersion, UInt8(credentials.user.count)] + credentials.user
                    + [UInt8(credentials.password.count)] + credentials.password)
        case SOCKS5.Method.unacceptable:
            throw credentials == nil ? .authenticationRequired : .authenticationFailed
        default: throw .methodNotOffered(method)
        }
    }

    /// The request to connect (RFC 1928 §4).
    private mutating func ask() -> Action {
        state = .replying
        return .send([SOCKS5.version, SOCKS5.connect, 0] + target.bytes)
    }

    /// The answer to it (RFC 1928 §6). The address in it, which the proxy connects from, is
    /// skipped.
    private mutating func reply() throws(SOCKS5Error) -> Action? {
        guard message[0] == SOCKS5.version else { throw .notSOCKS5(message[0]) }
        guard message.count >= 2 else { return nil }
        // Some proxies end their answer here.
        guard message[1] == 0 else { throw .refused(SOCKS5RefusalReason(code: message[1])) }
        guard message.count >= 3 else { return nil }
        guard message[2] == 0 else { throw .malformed }
        guard message.count >= 4 else { return nil }
        guard let type = SOCKS5.AddressType(rawValue: message[3]) else { throw .malformed }
        guard let address = SOCKS5.address(of: type, in: message),
            message.count == address.upperBound + 2
        else { return nil }
        state = .ended
        return .opened
    }
}

/// Why a handshake with a SOCKS5 proxy has failed.
package enum SOCKS5Error: Error, Sendable, Hashable, CustomStringConvertible {
    /// Its first byte is not that of the version: it does not speak SOCKS5.
    case notSOCKS5(UInt8)
    /// It wants to know who asks, and no credentials were given.
    case authenticationRequired
    /// It does not accept the user name and password.
    case authenticationFailed
    /// It has chosen a method of authentication that was not offered.
    case methodNotOffered(UInt8)
    /// It does not connect.
    case refused(SOCKS5RefusalReason)
    /// Its message breaks the format.
    case malformed

    package var description: String {
        switch self {
        case .notSOCKS5(let byte):
            "its answer begins with the byte \(byte), expected 5: it does not speak SOCKS5"
        case .authenticationRequired: "it asks for a user name and password, and none were given"
        case .authenticationFailed: "it does not accept the user name and password"
        case .methodNotOffered(let method):
            "it has chosen the method of authentication \(method), which was not offered"
        case .refused(let refusal): "it refused to connect: \(refusal)"
        case .malformed: "its message is not a valid answer of SOCKS5"
        }
    }
}
