/// Why a request is not allowed, in the order of the documentation.
package enum AccessReason: UInt8, Sendable, CaseIterable {
    case notAProxyRequest
    case requestForProxy
    case misdirected
    case clientNotAllowed
    case clientSubjectNotAllowed
    case connectOnReverseRoute
    case connectPortRefused
    case hostNotListed
    case deniedByRule
    case deniedByDefault
    case ambiguousPath
    case rateLimited
    case quotaExceeded
    case tunnelRefused
    case interceptionImpossible
    case clearTextRefused
    case pinnedPortRefused
    case destinationRefused
    case ownListenerRefused
    case protocolSwitchRefused
    case loopDetected

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .notAProxyRequest:
            ReasonEntry(
                "not-a-proxy-request", .access, 400, .requestDenied,
                "this is a forward proxy: expected an absolute URL in the request line, or CONNECT",
                remedy: "Set the address as the client's proxy (`http_proxy`, `curl -x`), or make "
                    + "the listener `kind: reverse`.")
        case .requestForProxy:
            ReasonEntry(
                "request-for-a-proxy", .access, 400, .requestDenied,
                "this is a transparent listener: expected a request as the server itself would get "
                    + "it, and no CONNECT or URL of another scheme or port",
                remedy: "The client is set to use a proxy, and its connections to that are led "
                    + "here. Set a listener of `kind: forward` as its proxy, and exempt its "
                    + "address from the firewall's rule.")
        case .misdirected:
            ReasonEntry(
                "misdirected-request", .access, 421, .requestDenied,
                "the request in a tunnel is for a different host or port than the tunnel",
                remedy: "Look for a client that sends requests for several hosts through one "
                    + "tunnel.")
        case .clientNotAllowed:
            ReasonEntry(
                "client-not-allowed", .access, 403, .requestDenied,
                "the client's address is in none of the networks of access.clients",
                remedy: "Add the client's network to `access.clients` if it should be served.")
        case .clientSubjectNotAllowed:
            ReasonEntry(
                "client-subject-not-allowed", .access, 403, .requestDenied,
                "the listener does not accept the subject of the client's certificate",
                remedy: "Add the subject to the listener's `tls.clientSubjects` if the client "
                    + "should be served. The access log has it as `client_subject`.")
        case .connectOnReverseRoute:
            ReasonEntry(
                "connect-on-reverse-route", .access, 405, .requestDenied,
                "CONNECT is not served by a reverse listener",
                remedy: "Point the client's proxy setting at a listener of `kind: forward`.")
        case .connectPortRefused:
            ReasonEntry(
                "connect-port-refused", .access, 403, .requestDenied,
                "CONNECT to this port is not allowed",
                remedy: "Add the port to `access.connectPorts`. Some clients use CONNECT for "
                    + "`http://` too, and need port 80.")
        case .hostNotListed:
            ReasonEntry(
                "host-not-listed", .access, 403, .requestDenied,
                "only hosts that an entry of hosts names may be requested (access.hosts: listed)",
                remedy:
                    "Add the host to `match` of an entry of `hosts`, or write `access: { hosts: "
                    + "any }`. An entry `**` names no host.")
        case .deniedByRule:
            ReasonEntry(
                "denied-by-rule", .access, 403, .requestDenied,
                "a rule of access.rules denies the request",
                remedy: "The reply and the access log name the rule. `pinfold explain URL --client "
                    + "ADDRESS` shows which rule decides. The rule may set another status.")
        case .deniedByDefault:
            ReasonEntry(
                "denied-by-default", .access, 403, .requestDenied,
                "no rule of access.rules allows the request (access.default: deny)",
                remedy: "Add a rule with `action: allow` that matches the request, or write "
                    + "`access: { default: allow }`.")
        case .ambiguousPath:
            ReasonEntry(
                "ambiguous-path", .access, 400, .requestDenied,
                "the rules of access.rules judge the path as it is sent differently from the path "
                    + "that the server may read",
                remedy: "Have the client send the path in its canonical form: without `//`, `.` "
                    + "and `..` as segments, `;`, `\\`, and needless percent-encoding.")
        case .rateLimited:
            ReasonEntry(
                "rate-limited", .access, 429, .requestDenied,
                "the rate of a rule of access.rules allows no more requests now, or at once",
                remedy: "The reply and the access log name the rule, and Retry-After says when to "
                    + "ask again. Raise `rate.requests`, `rate.burst` or `rate.exchanges` of the "
                    + "rule, or write `over: delay` there.")
        case .quotaExceeded:
            ReasonEntry(
                "quota-exceeded", .access, 429, .requestDenied,
                "the bytes that the rate of a rule of access.rules allows in a day are used up",
                remedy: "The reply and the access log name the rule, and Retry-After says when the "
                    + "day is over. Raise `rate.day` of the rule.")
        case .tunnelRefused:
            ReasonEntry(
                "tunnel-refused", .access, 403, .requestDenied,
                "the entry of hosts for this host refuses tunnels, which is the default with "
                    + "pinsets because a tunnel bypasses them",
                remedy: "Request the host with `http://` and `upgrade: https`, set up "
                    + "`interception`, or write `tunnel: inspect` in its entry of `hosts`; "
                    + "`tunnel: pass` bypasses the pins.")
        case .interceptionImpossible:
            ReasonEntry(
                "interception-impossible", .access, 403, .requestDenied,
                "tunnels to this host are intercepted, but no certificate can be issued for its "
                    + "name",
                remedy: "Use a host name that a certificate can contain, or write `intercept: "
                    + "false` in its entry of `hosts`.")
        case .clearTextRefused:
            ReasonEntry(
                "clear-text-refused", .access, 403, .requestDenied,
                "the entry of hosts for this host refuses clear text, which is the default with "
                    + "pinsets because clear text bypasses them",
                remedy: "Write `upgrade: https` in the entry (`https://` in a reverse listener's "
                    + "upstream), or `clearText: allow`.")
        case .pinnedPortRefused:
            ReasonEntry(
                "pinned-port-refused", .access, 403, .requestDenied,
                "this host has pinsets, but not in the entry of hosts that applies to this port",
                remedy: "Name the pinsets in the entry that applies (the first that matches), or "
                    + "write the pinned host without a port in `match`. To exempt a host or port, "
                    + "name a pinset of `mode: none` there.")
        case .destinationRefused:
            ReasonEntry(
                "destination-refused", .access, 403, .destinationProhibited,
                "connecting to the destination's address is not allowed",
                remedy: "Name its network in `access.destinations.allow` (a host name there opens "
                    + "private networks only), or remove it from `access.destinations.deny`: the "
                    + "reply says which of the two applies.")
        case .ownListenerRefused:
            ReasonEntry(
                "own-listener-refused", .access, 403, .loopDetected,
                "the destination is one of this gateway's own listeners",
                remedy: "Look for the client, or the DNS name, that leads back to the gateway.")
        case .protocolSwitchRefused:
            ReasonEntry(
                "protocol-switch-refused", .access, 403, .requestDenied,
                "the request asks for another protocol (Upgrade), which its entry of hosts "
                    + "refuses; this is the default where rules examine content or responses",
                remedy: "Have the client not use Upgrade, or write `switchProtocols: allow` in the "
                    + "entry of `hosts`: its rules are then not applied to the new protocol "
                    + "(WebSocket).")
        case .loopDetected:
            ReasonEntry(
                "loop-detected", .access, 508, .loopDetected,
                "the request has passed through this gateway too many times",
                remedy: "Look for an upstream or a DNS name that leads back to the gateway.")
        }
    }
}
