import Addressing
import EventLoop
import HTTPCore
import Resolver
import TLS

/// Why the gateway answers an exchange itself, or cuts it off: one case per reason.
///
/// The same case appears in the reply's body, its Proxy-Status, the access log and the metric.
package enum ExchangeFault: Error, Sendable {
    // The request.
    case request(WireError)
    case notAProxyRequest
    case clientNotAllowed
    case connectOnReverseRoute
    case connectPortRefused(UInt16)
    case tunnelRefused
    case destinationRefused(DestinationRefusal)
    case loopDetected
    case requestTimeout
    case onlyIfCached
    case storedBodyUnreadable
    case clientExchangeLimit
    // The way upstream.
    case tooManyPending
    case poolWaitTimeout
    case nameNotResolved(ResolveFailure)
    case connectFailed(Errno)
    case connectTimeout
    case tlsFailed(TLSError)
    case tlsTimeout
    case descriptorsExhausted
    // The upstream's answer.
    case response(WireError)
    case upstreamSpokeUnasked
    case upstreamClosed
    case upstreamReset(Errno)
    case firstByteTimeout
    case upstreamBodyTimeout
    case upgradeOverInterimLimit
    // The gateway.
    case superseded

    /// The status of the reply.
    package var status: UInt16 {
        switch self {
        case .request(let error): error.status
        case .notAProxyRequest: 400
        case .connectOnReverseRoute: 405
        case .clientNotAllowed, .connectPortRefused, .tunnelRefused, .destinationRefused: 403
        case .loopDetected: 508
        case .requestTimeout: 408
        case .onlyIfCached: 504
        case .tooManyPending, .descriptorsExhausted, .clientExchangeLimit: 503
        case .nameNotResolved(.timeout): 504
        case .nameNotResolved(.overloaded), .nameNotResolved(.cancelled): 503
        case .nameNotResolved: 502
        case .poolWaitTimeout, .connectTimeout, .tlsTimeout, .firstByteTimeout,
            .upstreamBodyTimeout:
            504
        case .connectFailed(let error): error == .timedOut ? 504 : 502
        case .tlsFailed, .response, .upstreamSpokeUnasked, .upstreamClosed, .upstreamReset,
            .upgradeOverInterimLimit,
            .storedBodyUnreadable, .superseded:
            502
        }
    }

    /// A short token: of the reply's `reason`, the access log and the metric's label.
    package var reason: String {
        switch self {
        case .request(let error): "\(error.reason)"
        case .response(let error): "upstream-\(error.reason)"
        case .destinationRefused: "destination-refused"
        case .nameNotResolved(let failure): "dns-\(failure.rawValue)"
        case .tlsFailed(let error): "tls-\(error.token)"
        case .connectFailed(let error): Self.connectReason(error)
        default: "\(Self.plainReasons[plainIndex])"
        }
    }

    private static func connectReason(_ error: Errno) -> String {
        switch error {
        case .connectionRefused: "connection-refused"
        case .timedOut: "connect-timeout"
        case .hostUnreachable, .networkUnreachable: "destination-unreachable"
        default: "connect-failed"
        }
    }

    /// The error type of Proxy-Status (RFC 9209 §2.3).
    package var proxyStatusError: String {
        switch self {
        case .request, .requestTimeout: "http_request_error"
        case .notAProxyRequest, .clientNotAllowed, .connectOnReverseRoute, .connectPortRefused,
            .tunnelRefused:
            "http_request_denied"
        case .destinationRefused: "destination_ip_prohibited"
        case .loopDetected: "proxy_loop_detected"
        case .onlyIfCached, .superseded: "proxy_internal_response"
        case .storedBodyUnreadable: "proxy_internal_error"
        case .tooManyPending, .poolWaitTimeout, .descriptorsExhausted, .clientExchangeLimit:
            "connection_limit_reached"
        case .nameNotResolved(let failure): "\(failure.proxyStatus)"
        case .connectFailed(.connectionRefused): "connection_refused"
        case .connectFailed(.timedOut), .connectTimeout: "connection_timeout"
        case .connectFailed(.hostUnreachable), .connectFailed(.networkUnreachable):
            "destination_ip_unroutable"
        case .connectFailed: "destination_unavailable"
        case .tlsFailed(let error): error.proxyStatusType
        case .tlsTimeout: "connection_timeout"
        case .response(.truncatedHead), .response(.truncatedBody): "http_response_incomplete"
        case .response(.headTooLarge), .response(.tooManyFields):
            "http_response_header_section_size"
        case .response, .upstreamSpokeUnasked, .upgradeOverInterimLimit: "http_protocol_error"
        case .upstreamClosed: "connection_terminated"
        case .upstreamReset: "connection_terminated"
        case .firstByteTimeout: "http_response_timeout"
        case .upstreamBodyTimeout: "connection_read_timeout"
        }
    }

    /// One sentence: what was wrong, and what was expected where that helps.
    package var explanation: String {
        switch self {
        case .request(let error): "the request was refused: \(error.explanation)"
        case .response(let error): "the server's response was refused: \(error.explanation)"
        case .notAProxyRequest:
            "this is a forward proxy: expected an absolute URL in the request line, or CONNECT"
        case .clientNotAllowed:
            "the client's address is in none of the networks of access.clients"
        case .connectOnReverseRoute: "CONNECT is not served by a reverse listener"
        case .connectPortRefused(let port): "CONNECT to port \(port) is not allowed"
        case .tunnelRefused: "tunnels to this host are refused by its configuration"
        case .destinationRefused(.deniedHost):
            "the destination is refused: access.destinations.deny names its host"
        case .destinationRefused(.deniedNetwork):
            "the destination is refused: access.destinations.deny names its network"
        case .destinationRefused(let refusal):
            "the destination is refused (\(refusal.rawValue)); "
                + "access.destinations.allow can allow it"
        case .loopDetected: "the request has already passed through this gateway"
        case .requestTimeout: "the request did not arrive in time"
        case .onlyIfCached: "nothing usable is stored, and the request allows stored responses only"
        case .storedBodyUnreadable: "the stored response could not be read"
        case .clientExchangeLimit:
            "this client has as many requests under way as limits.perClient.exchanges allows"
        case .tooManyPending: "too many requests wait for a connection to this server"
        case .poolWaitTimeout: "no connection to the server became free in time"
        case .nameNotResolved(.badName):
            "the host is neither an address nor a name that can have one"
        case .nameNotResolved(let failure): "the host name has no address (\(failure.rawValue))"
        case .connectFailed(let error): "the connection to the server failed: \(error)"
        case .connectTimeout: "the connection to the server was not established in time"
        case .tlsFailed(let error): "no secure connection to the server: \(error)"
        case .tlsTimeout: "the TLS handshake with the server did not end in time"
        case .descriptorsExhausted: "the gateway has no file descriptor left"
        case .upstreamSpokeUnasked:
            "the server sent something before it was asked, as if it were no HTTP server"
        case .upstreamClosed: "the server closed the connection before its response"
        case .upstreamReset(let error): "the connection to the server broke: \(error)"
        case .firstByteTimeout: "the server did not begin to answer in time"
        case .upstreamBodyTimeout: "the server stopped sending within its response"
        case .upgradeOverInterimLimit: "the server sent too many interim responses"
        case .superseded: "the configuration changed while the request was waiting"
        }
    }
}

// MARK: The metric's labels

extension ExchangeFault {
    private static let plainReasons: [StaticString] = [
        "not-a-proxy-request", "client-not-allowed", "connect-on-reverse-route",
        "connect-port-refused", "tunnel-refused", "loop-detected", "request-timeout",
        "only-if-cached", "stored-body-unreadable", "too-many-pending", "pool-wait-timeout",
        "connect-timeout", "tls-timeout", "descriptors-exhausted", "upstream-closed",
        "upstream-reset", "first-byte-timeout", "upstream-body-timeout", "too-many-interim",
        "superseded", "client-exchange-limit", "upstream-spoke-unasked", "other",
    ]

    /// The index into `plainReasons` of a case without further parts.
    private var plainIndex: Int {
        switch self {
        case .notAProxyRequest: 0
        case .clientNotAllowed: 1
        case .connectOnReverseRoute: 2
        case .connectPortRefused: 3
        case .tunnelRefused: 4
        case .loopDetected: 5
        case .requestTimeout: 6
        case .onlyIfCached: 7
        case .storedBodyUnreadable: 8
        case .tooManyPending: 9
        case .poolWaitTimeout: 10
        case .connectTimeout: 11
        case .tlsTimeout: 12
        case .descriptorsExhausted: 13
        case .upstreamClosed: 14
        case .upstreamReset: 15
        case .firstByteTimeout: 16
        case .upstreamBodyTimeout: 17
        case .upgradeOverInterimLimit: 18
        case .superseded: 19
        case .clientExchangeLimit: 20
        case .upstreamSpokeUnasked: 21
        case .request, .response, .destinationRefused, .nameNotResolved, .tlsFailed,
            .connectFailed:
            22
        }
    }

    /// Every label that `metricIndex` can name.
    package static let metricReasons: [StaticString] =
        [
            "bad-request", "bad-response", "destination-refused", "dns", "tls-trust", "tls",
            "connection-refused", "destination-unreachable", "connect-failed",
        ] + plainReasons

    /// The index of this fault's label in `metricReasons`.
    package var metricIndex: Int {
        switch self {
        case .request: 0
        case .response: 1
        case .destinationRefused: 2
        case .nameNotResolved: 3
        case .tlsFailed(.trust): 4
        case .tlsFailed: 5
        case .connectFailed(.connectionRefused): 6
        case .connectFailed(.hostUnreachable), .connectFailed(.networkUnreachable): 7
        case .connectFailed(.timedOut): 9 + 11
        case .connectFailed: 8
        default: 9 + plainIndex
        }
    }

    /// Whether the client's own connection is better ended, for what it holds is scarce.
    package var leavesNoRoom: Bool {
        if case .descriptorsExhausted = self { true } else { false }
    }

    /// Whether the fault shows that the host cannot be reached, as opposed to an answer of it.
    package var isConnectionLevel: Bool {
        switch self {
        case .nameNotResolved(.overloaded), .nameNotResolved(.cancelled): false
        case .nameNotResolved, .connectFailed, .connectTimeout, .tlsFailed, .tlsTimeout: true
        default: false
        }
    }
}
