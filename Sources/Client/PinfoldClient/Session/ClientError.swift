import HTTPCore
public import HTTPTypes
import PinfoldEngine

/// An error in carrying out a request.
///
/// A response with a status of 400 or more is not an error in this sense. Whether it counts as one
/// is decided by a response serializer.
public struct ClientError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure, for code that decides how to react.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// The request cannot be sent: for example, its URL is not absolute, or a field is not
        /// valid.
        case invalidRequest
        /// The security policy would reject every server, or does not suit the URL.
        case invalidSecurityPolicy
        /// A client certificate or its key cannot be parsed or used.
        case invalidClientCertificate
        /// The session's configuration is contradictory, or refers to something that cannot be
        /// used.
        case invalidConfiguration
        /// The policy does not allow clear text for a pinned host.
        case clearTextRefused
        /// The host name has no address, or could not be resolved.
        case nameNotResolved
        /// No connection could be established.
        case cannotConnect
        /// The proxy's specification is not valid, for example in the environment.
        case invalidProxy
        /// The proxy could not be reached, is not trusted, or did not allow the request. If it has
        /// sent a response, that is ``ClientError/proxyResponse``.
        case proxyFailed
        /// The proxy requires a user name and password, or has rejected them.
        case proxyAuthenticationRequired
        /// The server is not trusted, or the TLS handshake failed
        /// (`NSURLErrorSecureConnectionFailed`).
        case secureConnectionFailed
        /// The server requires a client certificate, and the session has none for it.
        case clientCertificateRequired
        /// The server has rejected the session's client certificate.
        case clientCertificateRejected
        /// Credentials cannot be sent in the form that the server requires, or its challenge cannot
        /// be parsed.
        case authenticationFailed
        /// The connection was closed before the end of the response.
        case connectionLost
        /// The request was idle for too long, took too long in total, or was queued for too long.
        /// In the last case, ``ClientError/underlying`` is a ``QueueTimeoutError``; for downloads,
        /// that is the ``DownloadError/underlying`` error of the ``DownloadError``.
        case timedOut
        /// The server's response is not valid HTTP.
        case badResponse
        /// The status of the response is not one with which its content is accepted.
        case unacceptableStatus
        /// The response is not of the requested kind: ``ClientError/underlying`` is an
        /// ``UnexpectedResponseError``.
        case unexpectedResponse
        /// The server has violated the WebSocket protocol; ``ClientError/underlying`` says how.
        case protocolViolation
        /// The content does not match its Content-Encoding, or is incomplete.
        case contentUndecodable
        /// The content is longer than the caller allows.
        case contentTooLong
        /// There were more redirects than allowed.
        case tooManyRedirects
        /// A redirect cannot be followed.
        case redirectRefused
        /// The request's content would have to be sent again, but can be read only once.
        case contentNotRepeatable
        /// The request's content could not be read.
        case contentFailed
        /// A file could not be written, or must not be written.
        case fileFailed
        /// Only a stored response was allowed, and there is none.
        case notCached
        /// The task was cancelled.
        case cancelled
        /// The session was invalidated, or its runtime was closed.
        case sessionInvalidated
        /// The process has no descriptors or no memory left.
        case outOfResources
        /// A ``SessionTransport`` has thrown ``ClientError/underlying``, or its response is not
        /// valid.
        case transportFailed
        /// A ``RequestAdapter`` has thrown ``ClientError/underlying``. Nothing was sent.
        case requestAdaptationFailed
        /// A ``RequestRetrier`` has failed the request with ``ClientError/underlying``.
        case requestRetryFailed
        /// The parameters could not be encoded into the request, or the serializer does not accept
        /// the response; ``ClientError/underlying`` says why.
        case serialization
    }

    /// The kind of failure.
    public let reason: Reason
    /// What happened, as one sentence for a person.
    public internal(set) var explanation: String
    /// A token for logs and metrics: the one on the gateway's page "Reasons" if there is one.
    public let token: String
    /// The URL of the request, after redirects, or empty if there was none. Credentials in it are
    /// omitted.
    public private(set) var url: String
    /// The host of the request, or `nil` if it was not known yet.
    public private(set) var host: String?
    /// The pins of the server's chain, from its own certificate upwards, if none of them is
    /// expected: in the form `sha256/…`, or fingerprints in certificate mode. Otherwise empty.
    public let presentedPins: [String]
    /// The status and fields with which a proxy refused a tunnel; otherwise `nil`.
    public let proxyResponse: HTTPResponse?
    /// The underlying error, if it has more detail. For a download, it is always a
    /// ``DownloadError``.
    public internal(set) var underlying: (any Error)?
    /// Whether it is certain that nothing of the request was sent to its server, in any of the
    /// task's attempts, so that it has not been processed.
    public internal(set) var wasNotProcessed = false
    /// Whether the exchange had sent the request before it failed, on this connection or, if it was
    /// then repeated automatically, on an earlier one.
    private(set) var wasSent = false
    /// Whether the connection had carried requests before, and the server closed it without sending
    /// a byte of a response: most probably because it had been idle for too long, but nobody can
    /// tell.
    private(set) var wasLeftUnanswered = false

    package init(
        _ reason: Reason, _ explanation: String, url: String = "", host: String? = nil,
        token: String? = nil, presentedPins: [String] = [], proxyResponse: HTTPResponse? = nil,
        underlying: (any Error)? = nil
    ) {
        self.reason = reason
        self.explanation = explanation
        self.url = Self.shown(url)
        self.host = host
        self.token = token ?? reason.rawValue
        self.presentedPins = presentedPins
        self.proxyResponse = proxyResponse
        self.underlying = underlying
    }

    package init(
        _ reason: Reason, _ explanation: String, of request: HTTPRequest,
        underlying: (any Error)? = nil
    ) {
        self.init(
            reason, explanation, url: request.url, host: request.origin?.host,
            underlying: underlying)
    }

    /// Returns the same error for a given request.
    package func about(_ request: HTTPRequest) -> ClientError {
        guard url.isEmpty else { return self }
        var error = self
        (error.url, error.host) = (Self.shown(request.url), request.origin?.host)
        return error
    }

    public var description: String { url.isEmpty ? explanation : "\(url): \(explanation)" }

    package static func cancelled() -> ClientError {
        ClientError(.cancelled, "the task was cancelled")
    }

    package static func sessionInvalidated() -> ClientError {
        ClientError(.sessionInvalidated, "the session was invalidated")
    }

    /// The error of a task that takes longer than ``SessionConfiguration/resourceTimeout``.
    static func tookLonger(than limit: Duration, _ request: HTTPRequest) -> ClientError {
        ClientError(.timedOut, "it took longer than \(limit.wholeMilliseconds) ms", of: request)
    }

    static func runtimeClosed() -> ClientError {
        ClientError(.sessionInvalidated, "the session's runtime was closed")
    }
}

extension ClientError {
    /// What an exchange's fault is for its caller.
    init(_ fault: ExchangeError) {
        var presented: [String] = []
        if case .tlsFailed(.trust(let failure)) = fault,
            case .noPinMatches(_, let chain) = failure.reason
        {
            presented = chain.map(\.pin)
        }
        var answer: HTTPResponse?
        if case .proxy(.refused(let refusal)) = fault { answer = HTTPResponse(refusal) }
        self.init(
            Reason(fault), Self.explanation(of: fault), token: Self.token(of: fault),
            presentedPins: presented, proxyResponse: answer, underlying: fault)
    }
}

extension ClientError {
    /// Why an exchange has failed.
    init(_ fault: ExchangeError, of exchange: Exchange) {
        self.init(fault)
        wasLeftUnanswered = exchange.forwarding.wasLeftUnanswered
        if wasLeftUnanswered {
            explanation +=
                "; the connection had carried earlier requests, and whether this one was processed "
                + "is not known"
        } else if exchange.forwarding.wasSent, isBeforeSending {
            explanation +=
                "; the request had been sent before, and whether it was processed is not known"
        }
        wasSent = exchange.forwarding.wasSent
    }

    /// Whether nothing of the request had been sent when the attempt failed.
    var isBeforeSending: Bool {
        guard !wasSent else { return false }
        switch reason {
        case .invalidRequest, .invalidSecurityPolicy, .invalidConfiguration, .invalidProxy,
            .clearTextRefused, .notCached, .requestAdaptationFailed:
            return true
        case .secureConnectionFailed:
            // Others may come in the middle of a connection.
            guard case .tlsFailed(.trust) = underlying as? ExchangeError else { return false }
            return true
        default: return retryFailure == .notConnected
        }
    }
}

extension ClientError {
    /// A text that may be a URL, for use in messages: without credentials, even if it is malformed
    /// by a missing slash, or by a slash in the password.
    package static func shown(_ url: String) -> String {
        let text = URIReference.withoutCredentials(url)
        guard let sign = text.lastIndex(of: "@"), let colon = text.firstIndex(of: ":"),
            ["http", "https", "ws", "wss"].contains(text[..<colon].lowercasedASCII),
            colon < sign
        else { return text }
        let rest = text[text.index(after: colon)...]
        if rest.hasPrefix("//") {
            let authority = rest.dropFirst(2).prefix { !"/?#".contains($0) }
            let origin = RequestOrigin(scheme: "http", authority: String(authority))
            if authority.contains("@") || origin != nil { return text }
        }
        return text[...colon] + rest.prefix { "/\\".contains($0) } + "***" + text[sign...]
    }

    /// That of the gateway's page, but for what no gateway does.
    private static func token(of fault: ExchangeError) -> String {
        if case .tlsFailed(.refusedByReview) = fault { return "server-trust-refused" }
        return fault.reason.token
    }
}

extension ClientError.Reason {
    init(_ fault: ExchangeError) {
        switch fault {
        case .access(let reason): self.init(reason)
        case .gateway(let reason): self.init(reason)
        case .server(let reason): self.init(reason)
        case .request, .fields, .connectPortRefused, .hostNotListed, .deniedByRule, .rateLimited,
            .authentication, .tunnel, .tunnelHello, .purge:
            self = .invalidRequest
        case .nameNotResolved: self = .nameNotResolved
        case .connectFailed, .unixSocketFailed, .destinationRefused: self = .cannotConnect
        case .tlsFailed(.truncated), .tlsFailed(.transport), .tlsFailed(.unanswered):
            self = .connectionLost
        case .tlsFailed(.certificateRequired): self = .clientCertificateRequired
        case .tlsFailed(.certificateRejected): self = .clientCertificateRejected
        case .tlsFailed: self = .secureConnectionFailed
        case .proxy(let fault): self = Self(fault)
        case .connectTimeout, .tlsTimeout: self = .timedOut
        case .upstreamReset, .upstreamUnanswered, .response(.truncatedBody),
            .response(.truncatedHead), .upstreamStreamReset:
            self = .connectionLost
        case .unconfirmed(let cause): self.init(cause)
        case .response, .transformation, .upstreamMalformed, .upstreamHTTP2: self = .badResponse
        }
    }

    private init(_ reason: AccessReason) {
        switch reason {
        case .clearTextRefused, .pinnedPortRefused: self = .clearTextRefused
        case .destinationRefused, .ownListenerRefused: self = .cannotConnect
        case .notAProxyRequest, .requestForProxy, .misdirected, .loopDetected,
            .connectOnReverseRoute,
            .protocolSwitchRefused, .clientNotAllowed, .clientSubjectNotAllowed,
            .connectPortRefused, .hostNotListed, .deniedByRule, .rateLimited, .deniedByDefault,
            .quotaExceeded, .ambiguousPath, .tunnelRefused, .interceptionImpossible:
            self = .invalidRequest
        }
    }

    private init(_ reason: GatewayReason) {
        switch reason {
        case .requestTimeout, .clientTimeout, .tunnelIdleTimeout: self = .timedOut
        case .poolWaitTimeout, .tooManyPending: self = .cannotConnect
        case .descriptorsExhausted, .headBuffersFull, .connectionsFull, .clientExchangeLimit:
            self = .outOfResources
        case .storedBodyUnreadable: self = .badResponse
        case .onlyIfCached, .offline: self = .notCached
        case .mustRevalidate: self = .cannotConnect
        case .superseded: self = .sessionInvalidated
        case .tunnelPolicyChanged: self = .invalidRequest
        }
    }

    private init(_ reason: ServerReason) {
        switch reason {
        case .noServer, .connectionRefused, .destinationUnreachable, .connectFailed,
            .socketMissing, .socketNotPermitted:
            self = .cannotConnect
        case .connectTimeout, .firstByteTimeout, .upstreamBodyTimeout, .upstreamSendTimeout,
            .eventStreamTimeout:
            self = .timedOut
        case .upstreamClosed, .upstreamReset, .upstreamSpokeUnasked, .upstreamStreamReset,
            .upstreamNotProcessed:
            self = .connectionLost
        case .upstreamSpeaksTLS, .tooManyInterim, .upstreamMalformed, .upstreamHTTP2Error,
            .upstreamHTTP2NotSpoken:
            self = .badResponse
        }
    }
}
