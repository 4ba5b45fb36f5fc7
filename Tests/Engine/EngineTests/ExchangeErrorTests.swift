import AccessPolicy
import EventLoop
import HTTP2
import HTTPCore
import PinfoldConfiguration
import PinfoldResolver
import PinfoldTLS
import ProxyProtocols
import Testing
import Transformation
import Trust

@testable import PinfoldEngine

/// Every error, with all details that its reason depends on.
///
/// `next` is a switch without default: a new case does not compile until it is here.
enum EveryExchangeError {
    /// Cases in the order of the declaration, one of each.
    static let oneOfEach: [ExchangeError] = {
        var all: [ExchangeError] = []
        var fault: ExchangeError? = .access(.misdirected)
        while let current = fault {
            all.append(current)
            fault = next(current)
        }
        return all
    }()

    private static func next(_ fault: ExchangeError) -> ExchangeError? {
        switch fault {
        case .access: .tunnel(.notTLS)
        case .tunnel: .gateway(.superseded)
        case .gateway: .server(.upstreamClosed)
        case .server: .authentication(.credentialsWrong, .proxy)
        case .authentication: .purge(.tokenWrong)
        case .purge: .request(.hostMissing)
        case .request: .fields(.hostMismatch)
        case .fields: .connectPortRefused(25)
        case .connectPortRefused: .hostNotListed(BoundAuthority(host: "::1", port: 8443))
        case .hostNotListed: .deniedByRule(RuleDenial(rule: "no-ads", AccessDenial()))
        case .deniedByRule:
            .rateLimited(RateExcess(rule: "guests", RateReason(.requests, retryAfter: 1)))
        case .rateLimited: .tunnelHello(.notTLS)
        case .tunnelHello: .destinationRefused(.scope(.loopback))
        case .destinationRefused: .nameNotResolved(.nxdomain)
        case .nameNotResolved: .connectFailed(.connectionRefused)
        case .connectFailed: .unixSocketFailed(.noSuchFile)
        case .unixSocketFailed: .connectTimeout
        case .connectTimeout: .tlsFailed(.notTLS)
        case .tlsFailed: .tlsTimeout
        case .tlsTimeout: .proxy(.timeout)
        case .proxy: .response(.malformedStatusLine)
        case .response: .upstreamReset(.connectionReset)
        case .upstreamReset: .upstreamUnanswered(nil)
        case .upstreamUnanswered: .upstreamMalformed("the response has no :status")
        case .upstreamMalformed: .upstreamStreamReset(.internalError)
        case .upstreamStreamReset: .upstreamHTTP2(.badFrameLength)
        case .upstreamHTTP2: .unconfirmed(.connectTimeout)
        case .unconfirmed:
            .transformation(
                TransformationError(
                    .responseBodyInvalid, "not JSON", at: "line 1, column 2", excerpt: [0x7B]))
        case .transformation: nil
        }
    }

    static let connectErrors: [Errno] = [
        .connectionRefused, .timedOut, .hostUnreachable, .networkUnreachable, Errno(code: 13),
        .connectionReset,
    ]

    static let chainFailures: [ChainError] =
        [
            .hostMismatch(host: "a.test", names: [.dns("b.test")]),
            .expired(subject: "CN=a", notAfter: 0),
            .notYetValid(subject: "CN=a", notBefore: 4_000_000_000), .selfSigned(subject: "CN=a"),
            .untrustedRoot(subject: "CN=r"), .incompleteChain(subject: "CN=a", issuer: "CN=i"),
            .badSignature(subject: "CN=a"), .wrongPurpose(subject: "CN=a"),
            .weakCryptography(subject: "CN=a"), .constraintViolated(subject: "CN=a"),
            .malformed(position: 2), .noCertificate, .other(code: 1, text: "text"),
        ] + CertificateRule.allCases.map { .rule($0, subject: "CN=a") }
        + RevocationReason.allCases.map { .revocation(RevocationError($0, "text")) }

    static let tlsErrors: [TLSError] =
        chainFailures.map { .trust(TrustError(.chain($0))) } + [
            .trust(
                TrustError(
                    .noPinMatches(
                        expected: ["sha256/AAAA="],
                        chain: [ChainPin(pin: "sha256/BBBB=", subject: "CN=\"é\"")]),
                    pinsetIndex: 0, pinset: "payments")),
            .trust(TrustError(.pinsetWithoutPins)), .trust(TrustError(.invalidPolicy)),
            .trust(TrustError(.pinsetExpired(at: 0), pinsetIndex: 0, pinset: "payments")),
            .trust(
                TrustError(
                    .transparency(TransparencyError(minimum: 2, valid: 1, rejected: [])))),
            .alertReceived(code: 40, name: "handshake_failure"),
            .certificateRequired(.certificateRequired), .certificateRejected(.handshakeFailure),
            .versionRefused, .notTLS, .clearText("HTTP/1.1 400 Bad Request"),
            .unanswered(errorNumber: nil), .unanswered(errorNumber: 104), .truncated,
            .transport(errorNumber: 104), .protocolViolation("bad record"),
            .tooManyMessages, .unauthenticated, .resources("no memory"),
        ]

    /// One for each reason that a proxy gives, and for each detail.
    static let proxyFaults: [ProxyError] = [
        .unreachable(.connectFailed(.connectionRefused)), .unreachable(.nameNotResolved(.nxdomain)),
        .tlsFailed(.notTLS), .timeout, .refused(ProxyAnswer(status: 403)),
        .refused(ProxyAnswer(status: 407)), .closed, .badAnswer(.headTooLarge), .tooManyInterim,
        .spokeUnasked, .loop, .ownAddress, .nameUnchecked(.nameNotResolved(.nxdomain)),
        .socks(.refused(SOCKS5RefusalReason(code: 5))), .socks(.authenticationRequired),
        .socks(.authenticationFailed), .socks(.malformed), .socks(.notSOCKS5(72)),
        .socks(.methodNotOffered(1)),
    ]

    /// One for each reason.
    static let purgeErrors: [PurgeRequestError] = [
        .clientNotAllowed, .tokenMissing, .tokenWrong, .tooManyFailures(seconds: 2),
        .malformed(field: "Cache-Tag", expected: "a tag"), .busy, .draining, .failed("no room"),
        .notCounted("the disk is off"),
    ]

    /// All of them.
    static let all: [ExchangeError] =
        oneOfEach
        + AccessReason.allCases.map { .access($0) }
        + AuthenticationReason.allCases.flatMap {
            [.authentication($0, .proxy), .authentication($0, .origin)]
        }
        + TunnelReason.allCases.map { .tunnel($0) }
        + purgeErrors.map { .purge($0) }
        + GatewayReason.allCases.map { .gateway($0) }
        + ServerReason.allCases.map { .server($0) }
        + WireError.allCases.flatMap { [.request($0), .response($0)] }
        + MessageError.allCases.map { .fields($0) }
        + DestinationRefusalReason.allCases.map { .destinationRefused($0) }
        + ResolveError.allCases.map { .nameNotResolved($0) }
        + connectErrors.map { .connectFailed($0) }
        + [.connectionRefused, .noSuchFile, .accessDenied, .brokenPipe].map {
            .unixSocketFailed($0)
        }
        + tlsErrors.map { .tlsFailed($0) }
        + proxyFaults.map { .proxy($0) }
        + TransformationReason.allCases.map { .transformation(.init($0, "what was wrong")) }
}

@Suite("Faults of an exchange")
struct ExchangeFaultTests {
    @Test func `the reply for a refused destination names the list that decides`() {
        for refusal in DestinationRefusalReason.allCases {
            let text = ExchangeError.destinationRefused(refusal).explanation
            let isDenied = refusal == .deniedHost || refusal == .deniedNetwork
            // Nothing that is allowed changes what is denied.
            #expect(text.contains("access.destinations.allow") != isDenied, "\(refusal)")
            #expect(text.contains("access.destinations.deny names its") == isDenied, "\(refusal)")
        }
    }

    @Test func `every status is an error that HTTP knows`() {
        let known: Set<UInt16> = [
            400, 401, 403, 405, 407, 408, 413, 414, 415, 417, 421, 429, 431, 500, 501, 502, 503,
            504, 505, 508,
        ]
        for fault in EveryExchangeError.all {
            #expect(known.contains(fault.status), "\(fault): \(fault.status)")
        }
    }

    @Test func `a server asks by 401 and a proxy by 407`() {
        for reason in AuthenticationReason.allCases {
            let asked = [
                ExchangeError.authentication(reason, .origin).status,
                ExchangeError.authentication(reason, .proxy).status,
            ]
            switch reason {
            case .required, .credentialsUnusable, .credentialsWrong, .credentialsExpired:
                #expect(reason.isChallenge && asked == [401, 407])
            case .credentialsRepeated: #expect(!reason.isChallenge && asked == [400, 400])
            case .busy: #expect(!reason.isChallenge && asked == [503, 503])
            case .ended, .certificateUnknown: #expect(!reason.isChallenge && asked == [403, 403])
            }
        }
    }

    @Test(
        arguments: [
            (.request(.hostMissing), 400, "host-missing", "http_request_error"),
            (.request(.headTooLarge), 431, "head-too-large", "http_request_error"),
            (.request(.targetTooLong), 414, "target-too-long", "http_request_error"),
            (.request(.unknownExpectation), 417, "unknown-expectation", "http_request_error"),
            (.request(.unsupportedVersion), 505, "unsupported-version", "http_request_error"),
            (.access(.notAProxyRequest), 400, "not-a-proxy-request", "http_request_denied"),
            (.access(.requestForProxy), 400, "request-for-a-proxy", "http_request_denied"),
            (.access(.clientNotAllowed), 403, "client-not-allowed", "http_request_denied"),
            (
                .access(.clientSubjectNotAllowed), 403, "client-subject-not-allowed",
                "http_request_denied"
            ),
            (
                .access(.connectOnReverseRoute), 405, "connect-on-reverse-route",
                "http_request_denied"
            ),
            (.connectPortRefused(25), 403, "connect-port-refused", "http_request_denied"),
            (.access(.tunnelRefused), 403, "tunnel-refused", "http_request_denied"),
            (
                .destinationRefused(.scope(.metadata)), 403, "destination-refused",
                "destination_ip_prohibited"
            ),
            (.access(.loopDetected), 508, "loop-detected", "proxy_loop_detected"),
            (.gateway(.requestTimeout), 408, "request-timeout", "http_request_error"),
            (.gateway(.onlyIfCached), 504, "only-if-cached", "proxy_internal_response"),
            (.gateway(.offline), 504, "offline", "proxy_internal_response"),
            (
                .unconfirmed(.connectFailed(.connectionRefused)), 504, "must-revalidate",
                "destination_unavailable"
            ),
            (
                .gateway(.storedBodyUnreadable), 502, "stored-body-unreadable",
                "proxy_internal_error"
            ),
            (.gateway(.tooManyPending), 503, "too-many-pending", "connection_limit_reached"),
            (.gateway(.poolWaitTimeout), 504, "pool-wait-timeout", "connection_limit_reached"),
            (.nameNotResolved(.nxdomain), 502, "dns-nxdomain", "dns_error"),
            (.nameNotResolved(.noData), 502, "dns-nodata", "dns_error"),
            (.nameNotResolved(.timeout), 504, "dns-timeout", "dns_timeout"),
            (.nameNotResolved(.badName), 502, "dns-bad-name", "dns_error"),
            (.nameNotResolved(.overloaded), 503, "dns-overloaded", "proxy_internal_error"),
            (.nameNotResolved(.cancelled), 503, "dns-cancelled", "proxy_internal_error"),
            (.connectFailed(.connectionRefused), 502, "connection-refused", "connection_refused"),
            (
                .unixSocketFailed(.connectionRefused), 502, "connection-refused",
                "connection_refused"
            ),
            (.unixSocketFailed(.noSuchFile), 502, "socket-missing", "destination_unavailable"),
            (
                .unixSocketFailed(.accessDenied), 502, "socket-not-permitted",
                "destination_unavailable"
            ),
            (.unixSocketFailed(.brokenPipe), 502, "connect-failed", "destination_unavailable"),
            (.connectFailed(.timedOut), 504, "connect-timeout", "connection_timeout"),
            (
                .connectFailed(.hostUnreachable), 502, "destination-unreachable",
                "destination_ip_unroutable"
            ),
            (
                .connectFailed(.networkUnreachable), 502, "destination-unreachable",
                "destination_ip_unroutable"
            ),
            (
                .connectFailed(Errno(code: 13)), 502, "connect-failed",
                "destination_unavailable"
            ),
            (.connectTimeout, 504, "connect-timeout", "connection_timeout"),
            (.tlsFailed(.notTLS), 502, "tls-not-tls", "tls_protocol_error"),
            (.tlsFailed(.versionRefused), 502, "tls-version-refused", "tls_protocol_error"),
            (
                .tlsFailed(.trust(TrustError(.chain(.selfSigned(subject: "a"))))), 502,
                "tls-self-signed", "tls_certificate_error"
            ),
            (
                .tlsFailed(.alertReceived(code: 40, name: "handshake_failure")), 502,
                "tls-alert-received", "tls_alert_received"
            ),
            (
                .tlsFailed(.certificateRequired(.certificateRequired)), 502,
                "tls-client-certificate-required", "tls_alert_received"
            ),
            (
                .tlsFailed(.certificateRejected(.handshakeFailure)), 502,
                "tls-client-certificate-rejected", "tls_alert_received"
            ),
            (.tlsTimeout, 504, "tls-timeout", "connection_timeout"),
            (
                .gateway(.descriptorsExhausted), 503, "descriptors-exhausted",
                "connection_limit_reached"
            ),
            (
                .response(.malformedStatusLine), 502, "upstream-malformed-status-line",
                "http_protocol_error"
            ),
            (
                .response(.truncatedHead), 502, "upstream-truncated-head",
                "http_response_incomplete"
            ),
            (
                .response(.truncatedBody), 502, "upstream-truncated-body",
                "http_response_incomplete"
            ),
            (
                .response(.headTooLarge), 502, "upstream-head-too-large",
                "http_response_header_section_size"
            ),
            (.server(.upstreamClosed), 502, "upstream-closed", "connection_terminated"),
            (.upstreamReset(.connectionReset), 502, "upstream-reset", "connection_terminated"),
            (
                .server(.upstreamSendTimeout), 504, "upstream-send-timeout",
                "connection_write_timeout"
            ),
            (.server(.firstByteTimeout), 504, "first-byte-timeout", "http_response_timeout"),
            (
                .server(.upstreamBodyTimeout), 504, "upstream-body-timeout",
                "connection_read_timeout"
            ),
            (.server(.tooManyInterim), 502, "too-many-interim", "http_protocol_error"),
            (
                .upstreamMalformed("the response has no :status"), 502, "upstream-malformed",
                "http_protocol_error"
            ),
            (
                .upstreamStreamReset(.cancel), 502, "upstream-stream-reset",
                "connection_terminated"
            ),
            (
                .server(.upstreamNotProcessed), 502, "upstream-not-processed",
                "connection_terminated"
            ),
            (.upstreamHTTP2(.badFrameLength), 502, "upstream-http2-error", "http_protocol_error"),
            (
                .server(.upstreamHTTP2NotSpoken), 502, "upstream-http2-not-spoken",
                "http_protocol_error"
            ),
            (.gateway(.superseded), 502, "superseded", "proxy_internal_response"),
            (.server(.upstreamSpokeUnasked), 502, "upstream-spoke-unasked", "http_protocol_error"),
            (.server(.eventStreamTimeout), 504, "event-stream-timeout", "connection_read_timeout"),
            (.gateway(.tunnelIdleTimeout), 504, "tunnel-idle-timeout", "connection_read_timeout"),
            (
                .gateway(.tunnelPolicyChanged), 502, "tunnel-policy-changed",
                "proxy_internal_response"
            ),
            (.gateway(.clientTimeout), 504, "client-timeout", "connection_write_timeout"),
            (.gateway(.connectionsFull), 408, "connections-full", "http_request_error"),
        ] as [(ExchangeError, UInt16, String, String)])
    func `a fault has its status, reason and error type`(
        fault: ExchangeError, status: UInt16, reason: String, errorType: String
    ) {
        #expect(fault.status == status)
        #expect(fault.reason.token == reason)
        #expect(fault.reason.entry.errorType.rawValue == errorType)
    }

    @Test func `every response at fault is a bad gateway`() {
        for error in WireError.allCases { #expect(ExchangeError.response(error).status == 502) }
    }

    @Test func `every explanation is one sentence on one line`() {
        for fault in EveryExchangeError.all {
            let text = fault.explanation
            #expect(!text.isEmpty)
            let isOneLine = text.utf8.allSatisfy { $0 >= 0x20 }
            #expect(isOneLine, "\(text)")
            #expect(text.last != ".", "\(text)")
        }
    }

    @Test func `errors with details contain them`() {
        #expect(ExchangeError.connectPortRefused(25).explanation.contains("25"))
        #expect(
            ExchangeError.destinationRefused(.scope(.metadata)).explanation.contains("metadata"))
        #expect(ExchangeError.nameNotResolved(.nxdomain).explanation.contains("not exist"))
        #expect(
            ExchangeError.connectFailed(.connectionRefused).explanation
                .contains("Connection refused"))
        #expect(
            ExchangeError.request(.hostMissing).explanation
                .contains("\(WireError.hostMissing.explanation)"))
        for error in EveryExchangeError.tlsErrors {
            #expect(ExchangeError.tlsFailed(error).explanation.contains("\(error)"))
        }
        #expect(
            ExchangeError.unconfirmed(.connectFailed(.connectionRefused)).explanation
                .contains(": the connection to the server failed: Connection refused"))
    }

    // MARK: Consequences

    @Test func `only exhausted descriptors end the client's connection`() {
        let ending = EveryExchangeError.all.filter(\.leavesNoRoom).map(\.reason.token)
        #expect(ending == ["descriptors-exhausted"])
    }

    @Test func `only faults on the way to a host show that it cannot be reached`() {
        let levels = EveryExchangeError.oneOfEach.filter(\.showsAnUnreachableHost).map(
            \.reason.token)
        #expect(
            levels == [
                "dns-nxdomain", "connection-refused", "socket-missing", "connect-timeout",
                "tls-not-tls", "tls-timeout", "must-revalidate",
            ])
        for error in EveryExchangeError.connectErrors {
            #expect(ExchangeError.connectFailed(error).showsAnUnreachableHost)
        }
        // What is short on this side has nothing to do with the host.
        let ours = ResolveError.allCases.filter {
            !ExchangeError.nameNotResolved($0).showsAnUnreachableHost
        }
        #expect(ours == [.overloaded, .clientLimit, .zoneLimit, .cancelled])
    }

    @Test func `a server that is not trusted has answered`() {
        for error in EveryExchangeError.tlsErrors {
            let hasAnswered = ExchangeError.tlsFailed(error).reachabilityEvidence
            let isTrust = if case .trust = error { true } else { false }
            #expect((hasAnswered == .responseReceived) == isTrust, "\(error)")
        }
    }

    @Test(
        arguments: [
            (80, "[443, 80]; some clients use CONNECT for http:// URLs, too"),
            (8443, "add it to access.connectPorts, as in [443, 8443]"),
        ] as [(UInt16, String)])
    func `a refused port of CONNECT names the key to set`(port: UInt16, text: String) {
        #expect(ExchangeError.connectPortRefused(port).explanation.contains(text))
    }

    @Test func `the reply for a refused destination names the key that allows it`() {
        let byName = ExchangeError.destinationRefused(.scope(.private)).explanation
        #expect(byName.contains("add its host name, address or network"))
        for scope in [AddressScope.loopback, .linkLocal, .metadata] {
            let text = ExchangeError.destinationRefused(.scope(scope)).explanation
            #expect(text.contains("add its address or network"))
            #expect(text.contains("a host name opens private networks only"))
        }
    }
}

extension ExchangeError {
    fileprivate var showsAnUnreachableHost: Bool {
        if case .connectionFailed = reachabilityEvidence { true } else { false }
    }
}
