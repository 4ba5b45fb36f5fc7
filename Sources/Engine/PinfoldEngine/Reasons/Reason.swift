import CachePolicy
import HTTP2
import HTTPCore
import PinfoldResolver
import PinfoldTLS
import Transformation
import Trust

/// The vocabulary of reasons: why the gateway refused an exchange, gave it up or cut it off.
///
/// Every reason has one token, which appears in the reply's body, the details of Proxy-Status, the
/// access log, the operational log and the metric's label. `pinfold reasons` and the
/// documentation's page Reasons are generated from here. Why a response was not stored, or not
/// served from the cache, has two lists of its own (`NotStoredReason`, `ForwardReason`), which are
/// on the same page.
///
/// To add a reason:
/// - about bytes that cannot be accepted: a case of `WireError`, which serves both sides, or of
///   `MessageError` for what only HTTP/2 has;
/// - about TLS or a pin: a case of `TLSError` or `TrustError`, and of `TLSReason` or
///   `TrustReason`; about what a profile asks of certificates: a case of `CertificateRule`; about
///   revocation: a case of `RevocationReason`;
/// - anything else: a case of `AccessReason` (not allowed), `AuthenticationReason` (the client has
///   not proved who it is), `TunnelReason` (in an inspected tunnel), `PurgeReason` (a PURGE is not
///   carried out), `GatewayReason` (a limit or state of the gateway) or `ServerReason` (the server
///   or the way to it), which `ExchangeError` carries; if it has details, also a case of
///   `ExchangeError`.
///   About a proxy on that way: a case of `ProxyError`, and of `ProxyReason`.
///
/// The compiler then requires its `entry`. The metric's label and the documentation follow from it;
/// regenerate the page with `pinfold reasons --markdown >
/// Sources/Gateway/Gateway/Gateway.docc/Reasons.md`.
package enum Reason: Hashable, Sendable {
    /// The request is not allowed.
    case access(AccessReason)
    /// The client has not proved who it is.
    case authentication(AuthenticationReason)
    /// The client's part of an inspected tunnel is refused.
    case tunnel(TunnelReason)
    /// The client's request to purge is not carried out.
    case purge(PurgeReason)
    /// A limit or a state of the gateway.
    case gateway(GatewayReason)
    /// What the client sent cannot be accepted.
    case request(WireError)
    /// The fields of a client's message over HTTP/2 cannot be accepted. What HTTP/1 refuses as well
    /// is a `request`.
    case fields(MessageError)
    /// What the server sent cannot be accepted.
    case response(WireError)
    /// The server's name has no address.
    case name(ResolveError)
    /// The server is not trusted.
    case trust(TrustReason)
    /// A certificate of the server's chain breaks a rule of `tls.profile`.
    case profile(CertificateRule)
    /// The revocation status of a certificate (`tls.crls`) does not let the server pass.
    case revocation(RevocationReason)
    /// There is no secure connection to the server.
    case tls(TLSReason)
    /// The server failed, or the connection to it.
    case server(ServerReason)
    /// A proxy on the way to the server failed.
    case proxy(ProxyReason)
    /// The rules of the route for what is sent and received.
    case transformation(TransformationReason)

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .access(let reason): reason.entry
        case .authentication(let reason): reason.entry
        case .tunnel(let reason): reason.entry
        case .purge(let reason): reason.entry
        case .gateway(let reason): reason.entry
        case .request(let error): error.requestEntry
        case .fields(let error): error.requestEntry
        case .response(let error): error.responseEntry
        case .name(let failure): failure.entry
        case .trust(let reason): reason.entry
        case .profile(let rule): rule.entry
        case .revocation(let problem): problem.entry
        case .tls(let reason): reason.entry
        case .server(let reason): reason.entry
        case .proxy(let reason): reason.entry
        case .transformation(let problem): problem.entry
        }
    }

    /// The token.
    package var token: String { entry.token }

    /// Whether the gateway can give the reason. `allCases` has every `WireError` for both sides,
    /// although some occur only in requests and some only in responses.
    package var canOccur: Bool {
        switch self {
        case .request(let error): error.canOccur(from: .client)
        case .fields(let error): error.isOfRequests
        case .response(let error): error.canOccur(from: .upstream)
        case .access, .authentication, .tunnel, .purge, .gateway, .name, .trust, .profile,
            .revocation, .tls, .server, .proxy, .transformation:
            true
        }
    }
}

extension Reason: CaseIterable {
    /// All reasons, each once. A reason's index is also the index of its metric label.
    package static let allCases: [Reason] =
        AccessReason.allCases.map { .access($0) }
        + AuthenticationReason.allCases.map { .authentication($0) }
        + TunnelReason.allCases.map { .tunnel($0) }
        + PurgeReason.allCases.map { .purge($0) }
        + GatewayReason.allCases.map { .gateway($0) }
        + WireError.allCases.map { .request($0) }
        + MessageError.allCases.filter { $0.wireError == nil }.map { .fields($0) }
        + ResolveError.allCases.map { .name($0) }
        + ServerReason.allCases.map { .server($0) }
        + ProxyReason.allCases.map { .proxy($0) }
        + TrustReason.allCases.map { .trust($0) }
        + CertificateRule.allCases.map { .profile($0) }
        + RevocationReason.allCases.map { .revocation($0) }
        + TLSReason.allCases.map { .tls($0) }
        + WireError.allCases.map { .response($0) }
        + TransformationReason.allCases.map { .transformation($0) }

    /// All tokens, in the order of `allCases`: the labels of the metric.
    package static let tokens: [String] = allCases.map(\.token)

    /// The index in `allCases` and `tokens`.
    package var index: Int { Self.indexes[self] ?? 0 }

    private static let indexes = Dictionary(
        uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })
}

/// The token, status, meaning and remedy of a reason.
package struct ReasonEntry: Sendable, Hashable {
    /// Lower-case words with hyphens: the same everywhere, and permanent.
    package var token: String
    package var section: ReasonSection
    /// The status of the reply, if a reply is still possible.
    package var status: UInt16
    package var errorType: ProxyErrorType
    /// One sentence without a full stop, for the reply and the page.
    package var meaning: String
    /// What the operator or the author of the client should do: one or two sentences.
    package var remedy: String

    package init(
        _ token: String, _ section: ReasonSection, _ status: UInt16, _ errorType: ProxyErrorType,
        _ meaning: String, remedy: String
    ) {
        self.token = token
        self.section = section
        self.status = status
        self.errorType = errorType
        self.meaning = meaning
        self.remedy = remedy
    }
}

/// The section of the page that a reason is in.
package enum ReasonSection: String, Sendable, CaseIterable {
    case access = "Not allowed"
    case authentication = "Who is asking"
    case tunnel = "Inspected tunnels"
    case purging = "Purging"
    case gateway = "The gateway itself"
    case request = "The request"
    case names = "The server's name"
    case connection = "The connection to the server"
    case proxy = "A proxy on the way"
    case tls = "TLS and pins"
    case response = "The server's response"
    case rules = "The rules of a route"
}

/// The Proxy-Status error types in use (RFC 9209 §2.3).
package enum ProxyErrorType: String, Sendable, CaseIterable {
    case dnsTimeout = "dns_timeout"
    case dnsError = "dns_error"
    case destinationUnavailable = "destination_unavailable"
    case destinationProhibited = "destination_ip_prohibited"
    case destinationUnroutable = "destination_ip_unroutable"
    case connectionRefused = "connection_refused"
    case connectionTerminated = "connection_terminated"
    case connectionTimeout = "connection_timeout"
    case connectionReadTimeout = "connection_read_timeout"
    case connectionWriteTimeout = "connection_write_timeout"
    case connectionLimitReached = "connection_limit_reached"
    case tlsProtocolError = "tls_protocol_error"
    case tlsCertificateError = "tls_certificate_error"
    case tlsAlertReceived = "tls_alert_received"
    case requestError = "http_request_error"
    case requestDenied = "http_request_denied"
    case responseIncomplete = "http_response_incomplete"
    case responseHeadSize = "http_response_header_section_size"
    case responseTimeout = "http_response_timeout"
    case protocolError = "http_protocol_error"
    case internalResponse = "proxy_internal_response"
    case internalError = "proxy_internal_error"
    case configurationError = "proxy_configuration_error"
    case loopDetected = "proxy_loop_detected"
}
