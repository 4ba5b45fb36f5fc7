import HTTPCore
public import HTTPTypes
import PinfoldEngine

/// Why a request came to nothing.
///
/// A response with a status of 400 or more is none of these: it has arrived. Whether it counts as
/// an error is up to a response serializer.
public struct ClientError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is, for code that decides what to do.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// The request cannot be sent as it is: no absolute URL, a field that is none.
        case invalidRequest
        /// The security policy can let nobody pass, or does not suit the URL.
        case invalidSecurityPolicy
        /// A client certificate or its key cannot be read or used.
        case invalidClientCertificate
        /// The session's configuration contradicts itself, or names what cannot be used.
        case invalidConfiguration
        /// The policy refuses to send in clear text what is pinned.
        case clearTextRefused
        /// The host's name has no address, or could not be looked up.
        case nameNotResolved
        /// No connection came about.
        case cannotConnect
        /// What names a proxy cannot be understood, in the environment for instance.
        case invalidProxy
        /// The proxy could not be reached, is not trusted, or did not let the request through;
        /// ``ClientError/proxyResponse`` is what it answered, if it did.
        case proxyFailed
        /// The proxy asks for a user's name and password, or does not accept what it got.
        case proxyAuthenticationRequired
        /// There is no trust in the server, or no TLS with it (`NSURLErrorSecureConnectionFailed`).
        case secureConnectionFailed
        /// The server asks for a client's certificate, and the session has none for it.
        case clientCertificateRequired
        /// The server does not accept the session's client certificate.
        case clientCertificateRejected
        /// Credentials cannot be sent in the way that the server asks for, or its challenge cannot
        /// be read.
        case authenticationFailed
        /// The connection ended before the response did.
        case connectionLost
        /// Nothing moved for too long, or all of it took too long, or the request waited for its
        /// turn for too long: ``ClientError/underlying`` is a ``QueueTimeout`` then, of a download
        /// the ``DownloadFailure/underlying`` of its ``DownloadFailure``.
        case timedOut
        /// What the server sent is no response by the rules of HTTP.
        case badResponse
        /// The response has a status with which its content is not taken for what was asked for.
        case unacceptableStatus
        /// The response is none of the kind that was asked for: ``ClientError/underlying`` is an
        /// ``UnexpectedResponse``.
        case unexpectedResponse
        /// The server breaks the rules of a WebSocket; ``ClientError/underlying`` says which.
        case protocolViolation
        /// The content of the response is not what its Content-Encoding says, or breaks off.
        case contentUndecodable
        /// The content is longer than the caller takes.
        case contentTooLong
        /// There were more redirects than allowed.
        case tooManyRedirects
        /// A redirect leads to where it cannot be followed.
        case redirectRefused
        /// Content that can be read once only would have to be sent again.
        case contentNotRepeatable
        /// The content to be sent could not be read.
        case contentFailed
        /// A file could not be written, or was not to be.
        case fileFailed
        /// Only a stored response was wanted, and there is none.
        case notCached
        /// The task was cancelled.
        case cancelled
        /// The session was invalidated, or its runtime closed.
        case sessionInvalidated
        /// The process has no descriptors or no memory left for it.
        case outOfResources
        /// The parameters could not be made part of the request, or the response is not what the
        /// serializer accepts; ``ClientError/underlying`` says why.
        case serialization
    }

    /// Why the request came to nothing.
    public let reason: Reason
    /// What happened, in one sentence for a person.
    public internal(set) var explanation: String
    /// A word for logs and metrics: that of the gateway's page "Reasons" where it knows one.
    public let token: String
    /// The URL that was asked for, after redirects; empty where there was none. Credentials in it
    /// are left out.
    public private(set) var url: String
    /// The host that was to be asked; nil before it was known.
    public private(set) var host: String?
    /// The pins of the chain that the server showed, from its own certificate upwards, in the form
    /// `sha256/…` (or fingerprints in certificate mode), where none of them was expected. Else
    /// empty.
    public let presentedPins: [String]
    /// What a proxy answered that was asked for a tunnel, and opened none: status and fields. Nil
    /// where that is not what happened.
    public let proxyResponse: HTTPResponse?
    /// What was wrong further down, where that says more; of a download always a
    /// ``DownloadFailure``.
    public internal(set) var underlying: (any Error)?
    /// Nothing of the request had been sent to its server, in none of the task's attempts: it has
    /// not been processed. False where that is not known.
    public internal(set) var wasNotProcessed = false
    /// The exchange had sent the request before it failed, on this connection or, where it was then
    /// sent again by itself, on one before it.
    private(set) var wasSent = false
    /// The connection had carried requests before, and its server closed it without a byte of an
    /// answer: most probably because it had been idle for too long, though nobody can tell.
    private(set) var wasLeftUnanswered = false

    init(
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

    init(
        _ reason: Reason, _ explanation: String, of request: HTTPRequest,
        underlying: (any Error)? = nil
    ) {
        self.init(
            reason, explanation, url: request.url, host: request.origin?.host,
            underlying: underlying)
    }

    /// The same about the request that it is of.
    func about(_ request: HTTPRequest) -> ClientError {
        guard url.isEmpty else { return self }
        var error = self
        (error.url, error.host) = (Self.shown(request.url), request.origin?.host)
        return error
    }

    public var description: String { url.isEmpty ? explanation : "\(url): \(explanation)" }

    static func cancelled() -> ClientError { ClientError(.cancelled, "the task was cancelled") }

    static func sessionInvalidated() -> ClientError {
        ClientError(.sessionInvalidated, "the session was invalidated")
    }

    static func runtimeClosed() -> ClientError {
        ClientError(.sessionInvalidated, "the session's runtime was closed")
    }
}

extension ClientError {
    /// What an exchange's fault is for its caller.
    init(_ fault: ExchangeFault) {
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
    init(_ fault: ExchangeFault, of exchange: Exchange) {
        self.init(fault)
        wasLeftUnanswered = exchange.wasLeftUnanswered
        if wasLeftUnanswered {
            explanation +=
                "; the connection had carried earlier requests, and whether this one was processed "
                + "is not known"
        } else if exchange.wasSent, isBeforeSending {
            explanation +=
                "; the request had been sent before, and whether it was processed is not known"
        }
        wasSent = exchange.wasSent
    }

    /// Nothing of the request had been sent when the attempt failed.
    var isBeforeSending: Bool {
        guard !wasSent else { return false }
        switch reason {
        case .invalidRequest, .invalidSecurityPolicy, .invalidConfiguration, .invalidProxy,
            .clearTextRefused, .notCached:
            return true
        case .secureConnectionFailed:
            // Others may come in the middle of a connection.
            guard case .tlsFailed(.trust) = underlying as? ExchangeFault else { return false }
            return true
        default: return retryFailure == .notConnected
        }
    }
}

extension ClientError {
    /// A text that may be a URL, for messages: without credentials, also where it is malformed, by
    /// a missing slash, or one within the password.
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
    private static func token(of fault: ExchangeFault) -> String {
        if case .tlsFailed(.refusedByReview) = fault { return "server-trust-refused" }
        return fault.reason.token
    }
}

extension ClientError.Reason {
    init(_ fault: ExchangeFault) {
        switch fault {
        case .request, .notAProxyRequest, .misdirected, .loopDetected, .connectOnReverseRoute,
            .protocolSwitchRefused:
            self = .invalidRequest
        case .clearTextRefused, .pinnedPortRefused: self = .clearTextRefused
        case .nameNotResolved: self = .nameNotResolved
        case .connectFailed, .destinationRefused, .ownListenerRefused, .poolWaitTimeout,
            .tooManyPending:
            self = .cannotConnect
        case .tlsFailed(.truncated), .tlsFailed(.transport), .tlsFailed(.unanswered):
            self = .connectionLost
        case .tlsFailed(.certificateRequired): self = .clientCertificateRequired
        case .tlsFailed(.certificateRejected): self = .clientCertificateRejected
        case .tlsFailed: self = .secureConnectionFailed
        case .proxy(let fault): self = Self(fault)
        case .connectTimeout, .tlsTimeout, .firstByteTimeout, .upstreamBodyTimeout,
            .upstreamSendTimeout, .eventStreamTimeout, .requestTimeout, .clientTimeout,
            .tunnelIdleTimeout:
            self = .timedOut
        case .descriptorsExhausted, .headBuffersFull, .connectionsFull, .clientExchangeLimit:
            self = .outOfResources
        case .upstreamClosed, .upstreamReset, .upstreamUnanswered, .upstreamSpokeUnasked,
            .response(.truncatedBody), .response(.truncatedHead):
            self = .connectionLost
        case .response, .upstreamSpeaksTLS, .upgradeOverInterimLimit, .transformation,
            .storedBodyUnreadable:
            self = .badResponse
        case .onlyIfCached: self = .notCached
        case .superseded: self = .sessionInvalidated
        case .clientNotAllowed, .clientSubjectNotAllowed, .connectPortRefused, .tunnelRefused,
            .interceptionImpossible, .tunnel, .tunnelHello, .tunnelPolicyChanged:
            self = .invalidRequest
        }
    }
}
