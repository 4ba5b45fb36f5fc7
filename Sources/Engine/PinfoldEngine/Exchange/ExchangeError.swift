import Activity
import EventLoop
import HTTP2
import HTTPCore
import PinfoldResolver
import PinfoldTLS
import Transformation
import Trust

/// Why the gateway answers an exchange itself or cuts it off, with the details of this exchange.
///
/// Its ``Reason`` is what is reported and counted, and documents how to add one. Errors without
/// details are their reasons; a reason with details has a case of its own, and is not given by the
/// first four.
package enum ExchangeError: Error, Sendable {
    case access(AccessReason)
    case tunnel(TunnelReason)
    case gateway(GatewayReason)
    case server(ServerReason)
    // The request.
    /// The client has not proved to this recipient who it is.
    case authentication(AuthenticationReason, ProofRecipient)
    /// A request to purge.
    case purge(PurgeRequestError)
    case request(WireError)
    /// The fields of a message over HTTP/2.
    case fields(MessageError)
    case connectPortRefused(UInt16)
    case deniedByRule(RuleDenial)
    case rateLimited(RateExcess)
    /// The host that no entry names, and the port requested.
    case hostNotListed(BoundAuthority)
    /// The client's first bytes in an inspected tunnel.
    case tunnelHello(TLSWireError)
    case destinationRefused(DestinationRefusalReason)
    // The server's side.
    case nameNotResolved(ResolveError)
    case connectFailed(Errno)
    /// The same for a server on a Unix socket.
    case unixSocketFailed(Errno)
    case connectTimeout
    case tlsFailed(TLSError)
    case tlsTimeout
    /// A failure of a proxy on the way.
    indirect case proxy(ProxyError)
    // The upstream's answer.
    case response(WireError)
    case upstreamReset(Errno)
    /// A server that was contacted in clear text, and has never responded yet, closed the
    /// connection without a byte, or reset it with this error.
    case upstreamUnanswered(Errno?)
    /// What the server sent over HTTP/2 breaks this rule.
    case upstreamMalformed(StaticString)
    /// The server reset the stream of the request.
    case upstreamStreamReset(ErrorCode)
    /// The server broke the rules of HTTP/2 for the whole connection.
    case upstreamHTTP2(ConnectionReason)
    /// The server failed in this way, and the stored response must not be used without it.
    indirect case unconfirmed(ExchangeError)
    // The route's rules.
    case transformation(TransformationError)

    /// The reason: the part that is the same for all errors of this kind.
    package var reason: Reason {
        switch self {
        case .access(let reason): .access(reason)
        case .tunnel(let reason): .tunnel(reason)
        case .gateway(let reason): .gateway(reason)
        case .server(let reason): .server(reason)
        case .authentication(let reason, _): .authentication(reason)
        case .purge(let error): .purge(error.reason)
        case .request(let error): .request(error)
        case .fields(let error): error.wireError.map { .request($0) } ?? .fields(error)
        case .connectPortRefused: .access(.connectPortRefused)
        case .hostNotListed: .access(.hostNotListed)
        case .deniedByRule: .access(.deniedByRule)
        case .rateLimited(let excess):
            .access(excess.reason.kind == .day ? .quotaExceeded : .rateLimited)
        case .tunnelHello(.changed): .tunnel(.helloChanged)
        case .tunnelHello: .tunnel(.helloMalformed)
        case .destinationRefused: .access(.destinationRefused)
        case .nameNotResolved(let failure): .name(failure)
        case .connectFailed(.connectionRefused): .server(.connectionRefused)
        case .connectFailed(.timedOut), .connectTimeout: .server(.connectTimeout)
        case .connectFailed(.hostUnreachable), .connectFailed(.networkUnreachable):
            .server(.destinationUnreachable)
        case .connectFailed: .server(.connectFailed)
        case .unixSocketFailed(.connectionRefused): .server(.connectionRefused)
        case .unixSocketFailed(.noSuchFile): .server(.socketMissing)
        case .unixSocketFailed(.accessDenied): .server(.socketNotPermitted)
        case .unixSocketFailed: .server(.connectFailed)
        case .tlsFailed(let error): error.reason
        case .tlsTimeout: .tls(.timeout)
        case .proxy(let fault): .proxy(fault.reason)
        case .response(let error): .response(error)
        case .upstreamUnanswered(nil): .server(.upstreamClosed)
        case .upstreamReset, .upstreamUnanswered: .server(.upstreamReset)
        case .upstreamMalformed: .server(.upstreamMalformed)
        case .upstreamStreamReset: .server(.upstreamStreamReset)
        case .upstreamHTTP2: .server(.upstreamHTTP2Error)
        case .unconfirmed: .gateway(.mustRevalidate)
        case .transformation(let failure): .transformation(failure.reason)
        }
    }

    /// The status of the reply.
    package var status: UInt16 {
        switch self {
        case .deniedByRule(let denial): denial.status
        // RFC 9110 §15.5.2: a server that is not a proxy.
        case .authentication(let reason, .origin) where reason.isChallenge: 401
        default: reason.entry.status
        }
    }

    /// One sentence: what was wrong, and what was expected where that helps. It is the reason's
    /// meaning unless the case has details.
    package var explanation: String {
        switch self {
        case .purge(let error): error.explanation
        case .request(let error): "the request was refused: \(error.explanation)"
        case .fields(let error): "the request was refused: \(error.explanation)"
        case .response(let error): "the server's response was refused: \(error.explanation)"
        // The reply itself says what to write: these errors are fixed in the configuration file.
        case .access(.tunnelRefused):
            "\(reason.entry.meaning): request it as http:// with upgrade: https in the entry, or "
                + "write tunnel: inspect there"
        case .access(.clearTextRefused):
            "\(reason.entry.meaning): write upgrade: https in the entry, https:// in a reverse "
                + "listener's upstream, or clearText: allow"
        case .access(.pinnedPortRefused):
            "\(reason.entry.meaning): name the pinsets there too, or a pinset of mode: none to "
                + "exempt it"
        case .tunnelHello(let error): "\(reason.entry.meaning) (\(error))"
        case .connectPortRefused(let port): Self.explanation(connectPort: port)
        case .deniedByRule(let denial): "the rule \(denial.rule) of access.rules denies the request"
        case .rateLimited(let excess): Self.explanation(of: excess)
        case .hostNotListed(let authority):
            "\(authority) is not listed: add it to match of an entry of hosts, as in "
                + "match: [\"\(HostText.bracketed(authority.host))\"] (access.hosts is listed, and "
                + "an entry \"**\" names no host)"
        case .destinationRefused(.deniedHost):
            "the destination is refused: access.destinations.deny names its host"
        case .destinationRefused(.deniedNetwork):
            "the destination is refused: access.destinations.deny names its network"
        case .destinationRefused(let refusal): Self.explanation(of: refusal)
        case .connectFailed(let error), .unixSocketFailed(let error):
            "the connection to the server failed: \(error)"
        case .tlsFailed(let error):
            "no secure connection to the server: \(error)"
                + (error.looksLikeClearText ? Self.clearTextKeys : "")
        case .server(.upstreamSpeaksTLS): reason.entry.meaning + ": " + Self.secureKeys
        case .upstreamUnanswered(nil):
            "\(reason.entry.meaning); if it speaks TLS on this port, \(Self.secureKeys)"
        case .upstreamUnanswered(let error?):
            "the connection to the server broke: \(error); if it speaks TLS on this port, "
                + Self.secureKeys
        case .upstreamReset(let error): "the connection to the server broke: \(error)"
        case .upstreamMalformed(let rule): "the server's response was refused: \(rule)"
        case .upstreamStreamReset(let code): "\(reason.entry.meaning): \(code.text)"
        case .upstreamHTTP2(let error): "\(reason.entry.meaning): \(error.explanation)"
        case .transformation(let failure): Self.explanation(of: failure)
        case .unconfirmed(let cause): "\(reason.entry.meaning): \(cause.explanation)"
        case .proxy(let fault):
            reason.entry.meaning + (fault.detail.map { ": \($0)" } ?? "")
        default: reason.entry.meaning
        }
    }
}

extension ExchangeError {
    /// What to write if a server that speaks TLS was contacted in clear text, and the reverse.
    private static let secureKeys =
        "request https://, or write upgrade: https in its entry of hosts"
    private static let clearTextKeys =
        "; if its port is for clear text, request http://, without upgrade: https in its entry of "
        + "hosts"

    private static func explanation(of failure: TransformationError) -> String {
        let meaning = Reason.transformation(failure.reason).entry.meaning
        let place = failure.location.map { " (\($0))" } ?? ""
        return "\(meaning): \(failure.detail)\(place)"
    }

    private static func explanation(of excess: RateExcess) -> String {
        let rule = "the rule \(excess.rule) of access.rules"
        let seconds = excess.reason.retrySeconds
        switch excess.reason.kind {
        case .requests: return "\(rule) allows no more requests now: ask again in \(seconds) s"
        case .exchanges:
            return "\(rule) allows no more requests at once: ask again in \(seconds) s"
        case .day: return "the bytes that \(rule) allows in a day are used up"
        }
    }

    /// The part of the invalid content that is quoted.
    package var excerpt: [UInt8] {
        if case .transformation(let failure) = self { failure.excerpt } else { [] }
    }

    private static func explanation(connectPort port: UInt16) -> String {
        let hint =
            port == 80
            ? "; some clients use CONNECT for http:// URLs, too, and need port 80" : ""
        return "CONNECT to port \(port) is not allowed: add it to access.connectPorts, as in "
            + "[443, \(port)]\(hint)"
    }

    private static func explanation(of refusal: DestinationRefusalReason) -> String {
        let named = "the destination is refused (\(refusal.token))"
        return refusal.isOpenedByHostName
            ? "\(named): to allow it, add its host name, address or network to "
                + "access.destinations.allow"
            : "\(named): to allow it, add its address or network to access.destinations.allow, "
                + "where a host name opens private networks only"
    }
}

// MARK: Consequences

extension ExchangeError {
    /// Whether the client's connection should be closed because it holds a scarce resource.
    package var leavesNoRoom: Bool {
        if case .gateway(.descriptorsExhausted) = self { true } else { false }
    }

    /// Whether the gateway itself is the cause: a limit, a lack of descriptors, a reload. Such an
    /// error says nothing about the host.
    package var isOwn: Bool {
        switch self {
        case .gateway(let reason): reason.isOwn
        case .purge: true
        case .transformation(let failure): failure.reason == .overloaded
        case .nameNotResolved(let failure): failure.isOwn
        case .unconfirmed(let cause): cause.isOwn
        default: false
        }
    }

    /// What the error says about the host's reachability; `nil` if nothing, because the gateway is
    /// the cause. A server that is not trusted has answered: that it is the wrong one shows in the
    /// metrics of trust.
    package var reachabilityEvidence: ReachabilityEvent? {
        switch self {
        case .nameNotResolved(let failure) where failure.isOwn: nil
        case .nameNotResolved: .connectionFailed(.nameResolution)
        case .connectFailed, .unixSocketFailed, .connectTimeout: .connectionFailed(.connect)
        case .tlsFailed(.trust): .responseReceived
        case .tlsFailed, .tlsTimeout: .connectionFailed(.tls)
        case .unconfirmed(let cause): cause.reachabilityEvidence
        default: nil
        }
    }
}
