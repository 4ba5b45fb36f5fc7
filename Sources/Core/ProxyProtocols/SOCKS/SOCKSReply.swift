import HTTPCore

/// What a server of SOCKS 5 answers to a request (RFC 1928 §6).
package enum SOCKSReply: UInt8, Sendable, CaseIterable {
    case succeeded
    case generalFailure
    case notAllowed
    case networkUnreachable
    case hostUnreachable
    case connectionRefused
    case expired
    case commandNotSupported
    case addressTypeNotSupported

    /// The reply as it is sent. It names no address, as that of the connection to the server is of
    /// no use to a client.
    package var bytes: [UInt8] {
        [SOCKS5.version, rawValue, 0] + SOCKSDestination(.address(.v4(0)), port: 0).bytes
    }

    /// What it says, for people.
    var text: StaticString {
        switch self {
        case .succeeded: "connected"
        case .generalFailure: "general failure"
        case .notAllowed: "not allowed by its rules"
        case .networkUnreachable: "network unreachable"
        case .hostUnreachable: "host unreachable"
        case .connectionRefused: "connection refused"
        case .expired: "time to live expired"
        case .commandNotSupported: "command not supported"
        case .addressTypeNotSupported: "kind of address not supported"
        }
    }
}

/// Why a SOCKS5 proxy has refused to connect (RFC 1928 §6): a ``SOCKSReply``, or a code that the
/// RFC does not know.
package struct SOCKS5RefusalReason: Sendable, Hashable, CustomStringConvertible {
    /// The code of the reply; never 0.
    package let code: UInt8

    package init(code: UInt8) { self.code = code }

    /// Whether the proxy's rules forbid the target, so that to ask again is in vain.
    package var isByRule: Bool { code == SOCKSReply.notAllowed.rawValue }

    package var description: String {
        guard let reply = SOCKSReply(rawValue: code) else { return "unknown code (\(code))" }
        return "\(reply.text) (\(code))"
    }
}
