import Trust

/// Why a tunnel that is inspected was closed, as far as its client is the cause. The order is that
/// of the documentation.
///
/// The client has had its answer to CONNECT by then: it gets a TLS alert where it speaks TLS.
package enum TunnelReason: UInt8, Sendable, CaseIterable {
    case notTLS
    case helloMalformed
    case nameMissing
    case nameMismatch
    case helloChanged
    case encryptedHello
    case tls13Refused
    case sessionUnknown
    case handshakeTimeout

    /// Everything that is said of it.
    package var entry: ReasonEntry {
        switch self {
        case .notTLS:
            Self.entry(
                "tunnel-not-tls", "the tunnel is inspected, and what it is used for is not TLS",
                "Only TLS proves who the server is. If this host's tunnels carry something else, "
                    + "give its port an entry of `hosts` with `tunnel: pass`.")
        case .helloMalformed:
            Self.entry(
                "tunnel-hello-malformed",
                "the client's first messages in an inspected tunnel are not those of TLS, or too "
                    + "long",
                "The operational log says what is wrong with them: look at the client.")
        case .nameMissing:
            Self.entry(
                "tunnel-name-missing", "the client names no server in its TLS handshake",
                "The client sends no SNI: update it, or ask for the host with `http://` and "
                    + "`upgrade: https`, or set up `interception`.")
        case .nameMismatch:
            Self.entry(
                "tunnel-name-mismatch",
                "the client names another server in its TLS handshake than in its CONNECT",
                "Look at what the client sends as SNI: it must be the host of its CONNECT.")
        case .helloChanged:
            Self.entry(
                "tunnel-hello-changed",
                "the client's second ClientHello, which the server asked for, is not its first",
                "The operational log says what has changed beyond what RFC 8446, section 4.1.2 "
                    + "allows. No client that is in order does that: look at the client.")
        case .encryptedHello:
            Self.entry(
                "tunnel-encrypted-hello",
                "the client may name another server in an encrypted ClientHello, which cannot be "
                    + "read",
                "Switch off Encrypted ClientHello in the client, or at the server (the HTTPS "
                    + "record of its name in DNS).")
        case .tls13Refused:
            Self.entry(
                "tunnel-tls13-refused",
                "client and server speak TLS 1.3 in an inspected tunnel, where the server's "
                    + "certificate is encrypted",
                "Choose in the host's entry: `tls13Tunnel: probe` (a weaker check) or "
                    + "`tls13Tunnel: intercept`; or have client or server speak TLS 1.2.")
        case .sessionUnknown:
            Self.entry(
                "tunnel-session-unknown",
                "the server resumes a session that was not seen to begin under the present "
                    + "configuration",
                "Nothing: the client's next connection makes a full handshake, as after every "
                    + "change of pins. If it happens time and again, switch off session "
                    + "resumption in the client.")
        case .handshakeTimeout:
            Self.entry(
                "tunnel-handshake-timeout",
                "the client did not complete its TLS handshake in an inspected tunnel in time",
                "The client or its network is slow: `timeouts.head` is the bound.", 408)
        }
    }

    private static func entry(
        _ token: String, _ meaning: String, _ remedy: String, _ status: UInt16 = 403
    ) -> ReasonEntry {
        ReasonEntry(token, .tunnel, status, .requestDenied, meaning, remedy: remedy)
    }
}
