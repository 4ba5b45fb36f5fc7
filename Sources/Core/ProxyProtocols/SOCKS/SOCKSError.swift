/// Why what a client says is no request of SOCKS 5 that can be served.
package enum SOCKSError: String, Error, Sendable, CaseIterable {
    /// It speaks SOCKS 4.
    case version4
    /// It speaks HTTP, or another protocol of text.
    case http
    /// It begins with TLS.
    case tls
    /// It speaks something else.
    case version
    /// It offers no method by which the listener lets clients in.
    case noMethod
    /// Its user and password are not as RFC 1929 says, or the user's name is empty or has a colon.
    case malformedCredentials
    /// The user and password are refused.
    case credentials
    /// Its request is not as RFC 1928 §4 says.
    case malformedRequest
    /// It asks for BIND, UDP ASSOCIATE or another command than CONNECT.
    case command
    /// Its destination is of an unknown type.
    case addressType
    /// Its destination is a name that cannot be one, or has the port 0.
    case malformedDestination

    /// What is wrong, and what was expected.
    package var explanation: String {
        switch self {
        case .version4: "the client speaks SOCKS 4; expected SOCKS 5"
        case .http: "the client speaks HTTP or another protocol of text; expected SOCKS 5"
        case .tls: "the client begins with TLS; expected SOCKS 5 in clear text"
        case .version: "the first byte is not that of SOCKS 5"
        case .noMethod:
            "the client offers no method that the listener accepts: user and password where it "
                + "has authentication, none where it has not"
        case .malformedCredentials:
            "the message with user and password is malformed, or the user's name is empty or has "
                + "a colon"
        case .credentials: "the user or the password is refused"
        case .malformedRequest: "the request is malformed"
        case .command: "the request is not CONNECT"
        case .addressType: "the destination is none of IPv4, IPv6 and a name"
        case .malformedDestination: "the destination's name is none, or its port is 0"
        }
    }

    /// What the client is sent, if that helps: a client of another protocol would take it for
    /// something else.
    var reply: [UInt8] {
        switch self {
        case .version4, .http, .tls, .version: []
        case .noMethod: [SOCKS5.version, SOCKS5.Method.unacceptable]
        case .malformedCredentials, .credentials: [SOCKS5.passwordVersion, 1]
        case .malformedRequest, .malformedDestination: SOCKSReply.generalFailure.bytes
        case .command: SOCKSReply.commandNotSupported.bytes
        case .addressType: SOCKSReply.addressTypeNotSupported.bytes
        }
    }
}
