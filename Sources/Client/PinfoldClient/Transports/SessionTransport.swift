public import Documents
import HTTPCore
public import HTTPTypes

/// Carries the requests of a session instead of the network (``SessionConfiguration/transport``):
/// for tests, and for whatever else answers requests within the process.
///
/// Everything else is in front of it: redirects, challenges, retries, cookies, the cache, the
/// limits, timeouts and the decoding of content. A session with a transport opens no socket; it
/// uses no proxies and opens no WebSockets.
public protocol SessionTransport: Sendable {
    /// Answers a request.
    ///
    /// It is called in a task of its own, which is cancelled if nobody waits for the response any
    /// more.
    ///
    /// - Throws: ``TransportError``, for which the session does what it does for the same fault of
    ///   the network; ``ClientError``, with which the task fails; or any other error, with which it
    ///   fails as ``ClientError/underlying`` of ``ClientError/Reason/transportFailed``.
    func response(to request: TransportRequest) async throws -> TransportResponse

    /// Returns the pins of the chain that a server presents, in the form of ``CertificatePin``, or
    /// `nil` for a server that is trusted whatever the session's ``SecurityPolicy``. If none of
    /// them is pinned, requests to the server fail before they reach the transport. By default, all
    /// servers are trusted.
    ///
    /// It is called on the thread of the session's runtime, and must return at once.
    ///
    /// - Parameters:
    ///   - host: The host of an `https` URL, in lower case.
    ///   - port: Its port.
    func pins(presentedBy host: String, port: Int) -> [String]?

    /// The session that sends the requests, if there is one, or `nil` if they go nowhere. By
    /// default, it is `nil`. A transport that passes requests on to another one returns that one's.
    ///
    /// That session evaluates the servers, so a session in front of it cannot be created with a
    /// security policy, anchors, trust policies or client certificates that it does not have, or
    /// with a higher minimum version of TLS.
    var sendingSession: SessionManager? { get }
}

extension SessionTransport {
    /// All servers are trusted.
    public func pins(presentedBy host: String, port: Int) -> [String]? { nil }

    /// Requests go nowhere.
    public var sendingSession: SessionManager? { nil }
}

/// A request that reaches a ``SessionTransport``.
///
/// A transport that passes requests on may change them before:
///
///     func response(to request: TransportRequest) async throws -> TransportResponse {
///         var request = request
///         request.head.headerFields[.userAgent] = "probe"
///         return try await base.response(to: request)
///     }
public struct TransportRequest: Sendable {
    /// The request as it would be sent, with its cookies and the conditions of the cache.
    public var head: HTTPRequest
    /// Whether there is content, and how its end is known.
    public var framing: Framing
    /// The content.
    public var content: TransportContent

    /// Creates a request, for a transport that is called by another one or by a test.
    ///
    /// - Parameters:
    ///   - head: See ``head``.
    ///   - content: The content, or `nil` for none.
    ///   - framing: See ``framing``. If it is `nil`, it is that of the content: the length of bytes
    ///     is known, that of a sequence is not.
    public init(head: HTTPRequest, content: TransportContent? = nil, framing: Framing? = nil) {
        self.head = head
        self.content = content ?? TransportContent([])
        self.framing =
            framing ?? content.map { $0.length.map { .length(Int64($0)) } ?? .unknown } ?? .none
    }

    /// Whether a request has content, and how its end is known.
    public enum Framing: Sendable, Hashable {
        /// There is no content.
        case none
        /// The content has exactly that many bytes.
        case length(Int64)
        /// There is content, whose length is not known in advance.
        case unknown

        init(_ framing: BodyFraming) {
            switch framing {
            case .none: self = .none
            case .length(let count): self = .length(Int64(clamping: count))
            case .chunked, .untilClose: self = .unknown
            }
        }
    }
}

/// The answer of a ``SessionTransport``.
public struct TransportResponse: Sendable {
    /// Status and fields. If there is no Content-Length, it is added, unless the length is unknown
    /// or there are ``trailers`` or an ``error``. Content that is shorter than the Content-Length
    /// is interrupted. The status must not be that of an interim response (100 to 199).
    public var head: HTTPResponse
    /// The content. Where it is replaced, a Content-Length in the head has to be that of the new
    /// one, or removed.
    public var content: TransportContent
    /// The trailers. They are left out if the head has a Content-Length.
    public var trailers: HTTPFields = [:]
    /// Returns further trailers, once all of the content has been read, or `nil` if there are none.
    public var laterTrailers: (@Sendable () -> HTTPFields)?
    /// How long the head is delayed.
    public var delay = Duration.zero
    /// What happens after the content instead of its end. With a Content-Length in the head, it
    /// must be longer than the content.
    public var error: TransportError?

    /// Creates a response with content in memory.
    public init(
        status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], content: [UInt8] = []
    ) {
        head = HTTPResponse(status: status, headerFields: fields)
        self.content = TransportContent(content)
    }

    /// Creates a response with text, in UTF-8. Without a Content-Type, it is `text/plain`.
    public init(status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], text: String) {
        self.init(status: status, fields: fields, content: Array(text.utf8))
        setType("text/plain; charset=utf-8")
    }

    /// Creates a response with JSON. Without a Content-Type, it is `application/json`.
    public init(status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], json: DocumentValue) {
        self.init(status: status, fields: fields, content: Array(json.description.utf8))
        setType("application/json")
    }

    /// Creates a response with content that arrives part by part. The next part is requested when
    /// the previous one has been accepted. An error that the sequence throws is one of the
    /// transport; see ``SessionTransport/response(to:)``.
    public init<Parts: AsyncSequence & Sendable>(
        status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], stream: Parts
    ) where Parts.Element == [UInt8] {
        head = HTTPResponse(status: status, headerFields: fields)
        content = TransportContent(stream)
    }

    private mutating func setType(_ type: String) {
        if !head.headerFields.contains(.contentType) { head.headerFields[.contentType] = type }
    }

    /// The length of the content, if it is known. Content that trailers or an error follow has
    /// none: a response is complete with the last byte of its length.
    var length: Int? {
        error == nil && trailers.isEmpty && laterTrailers == nil ? content.length : nil
    }
}

/// A fault of the network, as a ``SessionTransport`` can have it.
public enum TransportError: Error, Sendable, Hashable, CaseIterable {
    /// The host name has no address.
    case nameNotResolved
    /// The server refuses the connection.
    case connectionRefused
    /// The connection is not established in time.
    case connectTimedOut
    /// The server's certificate chain is not valid.
    case notTrusted
    /// The connection is closed before the end of the response.
    case connectionLost
    /// The server does not respond in time.
    case timedOut
}
