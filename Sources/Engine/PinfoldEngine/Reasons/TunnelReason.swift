import Trust

/// Why an inspected tunnel was closed if its client is the cause, in the order of the
/// documentation.
///
/// By then the client has received the response to its CONNECT: it gets a TLS alert if it speaks
/// TLS.
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

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .notTLS:
            Self.entry(
                "tunnel-not-tls", "the tunnel is inspected, but does not carry TLS",
                "Only TLS proves the server's identity. If this host's tunnels carry something "
                    + "else, give its port an entry of `hosts` with `tunnel: pass`.")
        case .helloMalformed:
            Self.entry(
                "tunnel-hello-malformed",
                "the client's first messages in an inspected tunnel are not valid TLS, or are too "
                    + "long",
                "The operational log says what is wrong with them: check the client.")
        case .nameMissing:
            Self.entry(
                "tunnel-name-missing", "the client does not name a server in its TLS handshake",
                "The client does not send SNI: update it, or request the host with `http://` and "
                    + "`upgrade: https`, or set up `interception`.")
        case .nameMismatch:
            Self.entry(
                "tunnel-name-mismatch",
                "the client names a different server in its TLS handshake than in its CONNECT",
                "Check what the client sends as SNI: it must be the host of its CONNECT.")
        case .helloChanged:
            Self.entry(
                "tunnel-hello-changed",
                "the client's second ClientHello, which the server asked for, differs from its "
                    + "first",
                "The operational log says what has changed beyond what RFC 8446, section 4.1.2 "
                    + "allows. No correct client does that: check the client.")
        case .encryptedHello:
            Self.entry(
                "tunnel-encrypted-hello",
                "the client may name a different server in an encrypted ClientHello, which cannot "
                    + "be read",
                "Disable Encrypted ClientHello in the client, or for the server (the HTTPS record "
                    + "of its name in DNS).")
        case .tls13Refused:
            Self.entry(
                "tunnel-tls13-refused",
                "client and server speak TLS 1.3 in an inspected tunnel, where the server's "
                    + "certificate is encrypted",
                "Choose in the host's entry: `tls13Tunnel: probe` (a weaker check) or "
                    + "`tls13Tunnel: intercept`; or have the client or the server speak TLS 1.2.")
        case .sessionUnknown:
            Self.entry(
                "tunnel-session-unknown",
                "the server resumes a session whose beginning was not observed under the current "
                    + "configuration",
                "Nothing: the client's next connection makes a full handshake, as after every "
                    + "change of pins. If it happens repeatedly, disable session resumption in the "
                    + "client.")
        case .handshakeTimeout:
            Self.entry(
                "tunnel-handshake-timeout",
                "the client did not complete its TLS handshake in an inspected tunnel in time",
                "The client or its network is slow: the limit is `timeouts.head`.", 408)
        }
    }

    private static func entry(
        _ token: String, _ meaning: String, _ remedy: String, _ status: UInt16 = 403
    ) -> ReasonEntry {
        ReasonEntry(token, .tunnel, status, .requestDenied, meaning, remedy: remedy)
    }
}
