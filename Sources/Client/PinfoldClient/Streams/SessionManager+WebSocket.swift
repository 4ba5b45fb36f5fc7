import HTTPCore
public import HTTPTypes

extension SessionManager {
    /// Opens a WebSocket.
    ///
    /// - Parameters:
    ///   - url: An absolute `ws` or `wss` URL (or the equivalent `http` or `https`).
    ///   - fields: Fields of the request, in addition to those of the handshake.
    ///   - protocols: See ``webSocket(for:protocols:options:)``, as for `options` and errors.
    public func webSocket(
        _ url: String, fields: HTTPFields = [:], protocols: [String] = [],
        options: WebSocketOptions = WebSocketOptions()
    ) async throws(ClientError) -> WebSocket {
        let request = try HTTPRequest(webSocket: url, fields: fields)
        return try await webSocket(for: request, protocols: protocols, options: options)
    }

    /// Opens a WebSocket (RFC 6455 section 4.1), with the session's security policy, fields and
    /// timeouts, on its own connection. It belongs to the session as a request does.
    ///
    /// Handshakes with a server are made one after another, as the protocol requires. An open
    /// WebSocket does not count as an active request; the number of open ones is limited
    /// (``SessionConfiguration/maximumWebSockets``).
    ///
    /// - Parameters:
    ///   - request: A GET request, whose scheme, authority and path determine where it is sent.
    ///   - protocols: The subprotocols to offer, in order of preference: unique tokens.
    ///   - options: Options for the handshake and for limits.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/unexpectedResponse`` and an
    ///   ``UnexpectedResponseError`` if the server responds with anything else, or violates the
    ///   rules of the handshake.
    public func webSocket(
        for request: HTTPRequest, protocols: [String] = [],
        options: WebSocketOptions = WebSocketOptions()
    ) async throws(ClientError) -> WebSocket {
        try Self.check(protocols, of: request)
        var generator = SystemRandom()
        let handshake = WebSocketHandshake(
            protocols: protocols, offersCompression: options.offersCompression, using: &generator)
        let output = WebSocketOutput(limit: options.sendBufferBytes)
        var requestOptions = options.request
        requestOptions.redirects = requestOptions.redirects ?? RedirectRule.none
        requestOptions.decodesContent = false
        requestOptions.stream = .upgrade(output: output)
        let response = try await response(
            for: try request.opening(handshake), options: requestOptions)
        // If the upgrade is not used, it is cancelled with the response.
        guard response.head.status.code == 101 else {
            throw ClientError(response.head, .status, of: response.request)
        }
        let agreement: WebSocketHandshake.Agreement
        do throws(WebSocketHandshakeError) {
            agreement = try handshake.check(status: 101) { name in
                let name = HTTPField.Name(name)
                return name.map { response.head.headerFields[fields: $0].map(\.value) } ?? []
            }
        } catch {
            throw ClientError(response.head, .handshake(error), of: response.request)
        }
        return WebSocket(response, agreement, output, options)
    }

    private static func check(
        _ protocols: [String], of request: HTTPRequest
    ) throws(ClientError) {
        var seen: Set<String> = []
        for name in protocols {
            // Field names are tokens, too (RFC 9110 section 5.6.2).
            guard HTTPField.Name(name) != nil, seen.insert(name).inserted else {
                throw ClientError(
                    .invalidRequest,
                    "expected subprotocols that are tokens, each once: \"\(name)\" is not",
                    of: request)
            }
        }
    }
}

extension HTTPRequest {
    private static let schemes = ["ws": "http", "wss": "https"]

    /// Creates a request for a WebSocket's URL.
    init(webSocket url: String, fields: HTTPFields) throws(ClientError) {
        guard var reference = URIReference(encoding: url) else {
            throw ClientError(.invalidRequest, "the URL is not an absolute ws or wss URL", url: url)
        }
        reference.scheme = reference.scheme.map { Self.schemes[$0] ?? $0 }
        guard let request = HTTPRequest(.get, reference, fields) else {
            throw ClientError(.invalidRequest, "the URL is not an absolute ws or wss URL", url: url)
        }
        self = request
    }

    /// Returns the request with the fields of a handshake.
    fileprivate func opening(_ handshake: WebSocketHandshake) throws(ClientError) -> HTTPRequest {
        guard method == .get else {
            throw ClientError(
                .invalidRequest, "a WebSocket requires GET, not \(method)", of: self)
        }
        var request = self
        request.scheme = scheme.map { Self.schemes[$0.lowercasedASCII] ?? $0 }
        for field in handshake.fields {
            // Connection is written with the head.
            guard let name = HTTPField.Name(field.name), name != .connection else { continue }
            request.headerFields[name] = field.value
        }
        return request
    }
}

extension ClientError {
    init(_ head: HTTPResponse, _ reason: UnexpectedResponseError.Reason, of request: HTTPRequest) {
        let response = UnexpectedResponseError(head: head, reason: reason)
        self.init(.unexpectedResponse, "\(response)", of: request, underlying: response)
    }
}

extension RequestOrigin {
    /// Whether this stands for the WebSocket handshakes with a server, which are made one at a time
    /// (RFC 6455 section 4.1).
    var isHandshakeOrigin: Bool { scheme == "ws" || scheme == "wss" }

    /// The origin that stands for the handshakes with this one.
    var handshakeOrigin: RequestOrigin {
        var origin = self
        origin.scheme = scheme == "https" ? "wss" : "ws"
        return origin
    }
}
