/// What goes wrong with a server or the connection to it, in the order of the documentation.
package enum ServerReason: UInt8, Sendable, CaseIterable {
    // Connecting.
    case noServer
    case connectionRefused
    case connectTimeout
    case destinationUnreachable
    case socketMissing
    case socketNotPermitted
    case connectFailed
    // The response.
    case upstreamSpokeUnasked
    case upstreamSpeaksTLS
    case upstreamClosed
    case upstreamReset
    case upstreamSendTimeout
    case firstByteTimeout
    case upstreamBodyTimeout
    case eventStreamTimeout
    case tooManyInterim
    // The response, over HTTP/2.
    case upstreamMalformed
    case upstreamStreamReset
    case upstreamNotProcessed
    case upstreamHTTP2Error
    case upstreamHTTP2NotSpoken

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .noServer:
            ReasonEntry(
                "no-server", .connection, 503, .destinationUnavailable,
                "none of the route's servers can be asked",
                remedy: "The checks of `upstreams.health` have found all of them down, or those "
                    + "that are not have a weight of 0: the operational log and `pinfold status` "
                    + "say why. Retry-After in the reply is the time to the next check.")
        case .connectionRefused:
            ReasonEntry(
                "connection-refused", .connection, 502, .connectionRefused,
                "nothing listens at the server's address and port",
                remedy: "Start the server, or correct the port.")
        case .connectTimeout:
            ReasonEntry(
                "connect-timeout", .connection, 504, .connectionTimeout,
                "the connection to the server was not established in time",
                remedy: "The server or a firewall drops packets, or the server is overloaded. The "
                    + "limit is `timeouts.connect`.")
        case .destinationUnreachable:
            ReasonEntry(
                "destination-unreachable", .connection, 502, .destinationUnroutable,
                "there is no route to the server's address",
                remedy: "Check the gateway's routes and the server's network.")
        case .socketMissing:
            ReasonEntry(
                "socket-missing", .connection, 502, .destinationUnavailable,
                "there is no file at the path of the server's Unix socket",
                remedy: "Start the server, or correct the path: the operational log has it.")
        case .socketNotPermitted:
            ReasonEntry(
                "socket-not-permitted", .connection, 502, .destinationUnavailable,
                "connecting to the server's Unix socket is not permitted",
                remedy: "Let the gateway's user write to the socket, and pass through all folders "
                    + "of its path: the operational log has it.")
        case .connectFailed:
            ReasonEntry(
                "connect-failed", .connection, 502, .destinationUnavailable,
                "the connection to the server failed",
                remedy: "The reply and the operational log have the system's error.")
        case .upstreamSpokeUnasked:
            ReasonEntry(
                "upstream-spoke-unasked", .response, 502, .protocolError,
                "the server sent data before any request, as an HTTP server never does",
                remedy: "The port is probably for another protocol: correct the URL.")
        case .upstreamSpeaksTLS:
            ReasonEntry(
                "upstream-speaks-tls", .response, 502, .protocolError,
                "the server answered a request in clear text with TLS",
                remedy: "Request `https://`, or write `upgrade: https` in the host's entry, or "
                    + "`https://` in a reverse listener's upstream.")
        case .upstreamClosed:
            ReasonEntry(
                "upstream-closed", .response, 502, .connectionTerminated,
                "the server closed the connection without a response",
                remedy: "Check the server's log: it crashed, was restarted, or refuses the request "
                    + "in this way. If its port is for TLS, request `https://`, or write `upgrade: "
                    + "https` in the host's entry.")
        case .upstreamReset:
            ReasonEntry(
                "upstream-reset", .response, 502, .connectionTerminated,
                "the connection to the server broke",
                remedy: "Check the server's log, and any firewall in between.")
        case .upstreamSendTimeout:
            ReasonEntry(
                "upstream-send-timeout", .response, 504, .connectionWriteTimeout,
                "the server stopped reading the request",
                remedy: "Find out why the server does not read. If such pauses are intended, raise "
                    + "`timeouts.body` (for its host only in the entry of `hosts`).")
        case .firstByteTimeout:
            ReasonEntry(
                "first-byte-timeout", .response, 504, .responseTimeout,
                "the server did not begin to respond in time",
                remedy: "If it needs that long, raise `timeouts.firstByte` (for its host only in "
                    + "the entry of `hosts`).")
        case .upstreamBodyTimeout:
            ReasonEntry(
                "upstream-body-timeout", .response, 504, .connectionReadTimeout,
                "the server stopped sending within its response",
                remedy: "If such pauses are intended, raise `timeouts.body`.")
        case .eventStreamTimeout:
            ReasonEntry(
                "event-stream-timeout", .response, 504, .connectionReadTimeout,
                "the server sent nothing in its event stream for timeouts.eventStream",
                remedy: "Have the server send a comment line now and then, or raise "
                    + "`timeouts.eventStream` (for its host only in the entry of `hosts`).")
        case .tooManyInterim:
            ReasonEntry(
                "too-many-interim", .response, 502, .protocolError,
                "the server sent too many interim responses",
                remedy: "Correct the server: it keeps sending 1xx responses.")
        case .upstreamMalformed:
            ReasonEntry(
                "upstream-malformed", .response, 502, .protocolError,
                "the server's response breaks the rules of HTTP/2",
                remedy: "The reply and the operational log say which rule. Correct the server, or "
                    + "write `http2: off` in the host's entry.")
        case .upstreamStreamReset:
            ReasonEntry(
                "upstream-stream-reset", .response, 502, .connectionTerminated,
                "the server reset the request's stream",
                remedy: "The reply has the code that it gave: check the server's log.")
        case .upstreamNotProcessed:
            ReasonEntry(
                "upstream-not-processed", .response, 502, .connectionTerminated,
                "the server refused to process the request, and it could not be sent again",
                remedy: "The server is being stopped, or allows fewer requests at a time than it "
                    + "says: check its log and its limits.")
        case .upstreamHTTP2Error:
            ReasonEntry(
                "upstream-http2-error", .response, 502, .protocolError,
                "the server broke the rules of HTTP/2, and the connection was ended",
                remedy: "The reply and the operational log say which rule. HTTP/1.1 is spoken with "
                    + "the host for a while, unless its entry has `http2: require`. Correct the "
                    + "server, or write `http2: off` there.")
        case .upstreamHTTP2NotSpoken:
            ReasonEntry(
                "upstream-http2-not-spoken", .response, 502, .protocolError,
                "the server does not speak HTTP/2, which the host's entry requires",
                remedy: "Turn HTTP/2 on in the server, or write `http2: auto` in the host's entry.")
        }
    }
}
