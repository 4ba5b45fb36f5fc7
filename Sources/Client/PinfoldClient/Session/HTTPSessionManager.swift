import HTTPCore
public import HTTPTypes

/// Sends requests to a service: with URLs relative to a base, serialized parameters, and responses
/// converted to values. This corresponds to AFNetworking's `AFHTTPSessionManager`.
///
///     let api = try HTTPSessionManager(
///         baseURL: "https://api.example.com/v1", responses: JSONResponseSerializer())
///     let user = try await api.get("users/7", parameters: ["fields": "name"]).value
///
/// It is a value: a copy with other serializers uses the same session.
public struct HTTPSessionManager<Responses: ResponseSerializer>: Sendable {
    /// The result of a request.
    public struct Reply: Sendable {
        /// The value from the response serializer, or `nil` if there was no content.
        public let value: Responses.Output?
        /// The response.
        public let response: DataResponse
    }

    /// The session that sends the requests.
    public let session: SessionManager
    /// The base URL. It ends in `/`, so that relative URLs are below it. If it is `nil`, only
    /// absolute URLs can be requested.
    public let baseURL: String?
    fileprivate let base: URIReference?
    /// Serializes parameters into requests; by default as queries and forms.
    public var requests: any RequestSerializer
    /// Validates and reads responses.
    public var responses: Responses
    /// Creates the encoder for values that are sent as JSON (`json:`), or `nil` for that of
    /// ``EncodableRequestSerializer``.
    public var encoder: JSONEncoderFactory?
    /// Creates the decoder for responses that are decoded (`as:`), or `nil` for one with
    /// Foundation's default strategies.
    public var decoder: JSONDecoderFactory?

    /// How parameters of `Encodable` types are written: dates, names and data. The names of array
    /// elements are those of ``requests`` (``RequestSerializer/arrayStyle``).
    public var parameterStyle = ParameterStyle()

    /// Creates a manager with its own session.
    ///
    /// - Parameters:
    ///   - baseURL: The `http` or `https` URL to which URLs are relative. If its path does not end
    ///     in `/`, a `/` is appended.
    ///   - configuration: The configuration of the session.
    ///   - runtime: The session's runtime, or `nil` for ``ClientRuntime/shared()``.
    ///   - requests: The request serializer; see ``requests``.
    ///   - responses: The response serializer; see ``responses``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if the base URL is not
    ///   valid, or with ``ClientError/Reason/invalidSecurityPolicy`` if the policy has pins but the
    ///   base URL is not https; and the errors of ``SessionManager/init(configuration:runtime:)``.
    public init(
        baseURL: String? = nil, configuration: SessionConfiguration = SessionConfiguration(),
        runtime: ClientRuntime? = nil,
        requests: any RequestSerializer = HTTPRequestSerializer(), responses: Responses
    ) throws(ClientError) {
        var base: URIReference?
        if let baseURL {
            let root = try HTTPRequest(.get, baseURL)
            let policy =
                root.origin.map {
                    configuration.securityPolicy(for: $0.host, port: Int($0.port))
                } ?? configuration.securityPolicy
            if policy.mode != .none, root.scheme != "https" {
                throw ClientError(
                    .invalidSecurityPolicy,
                    "pins prove nothing without TLS; expected an https URL", url: baseURL)
            }
            base = root.reference
            base?.query = nil
            if let path = base?.path, !path.hasSuffix("/") { base?.path = path + "/" }
        }
        self.base = base
        self.baseURL = base?.description
        self.requests = requests
        self.responses = responses
        session = try SessionManager(configuration: configuration, runtime: runtime)
    }

    /// Creates a copy with another response serializer.
    init<Others>(_ other: HTTPSessionManager<Others>, responses: Responses) {
        (session, baseURL, base) = (other.session, other.baseURL, other.base)
        (requests, self.responses) = (other.requests, responses)
        (encoder, decoder) = (other.encoder, other.decoder)
        parameterStyle = other.parameterStyle
    }

    // MARK: Requests

    /// Sends a GET request with the parameters in its query.
    ///
    /// - Parameters:
    ///   - url: An absolute URL, or one relative to the base URL (RFC 3986 section 5): `users` is
    ///     resolved below the base URL, `/users` at the root of its host.
    ///   - parameters: The parameters, encoded by the request serializer.
    ///   - fields: Header fields. They take precedence over those of the serializer.
    ///   - options: The options, or `nil` to use the serializer's properties.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/serialization`` if a serializer rejects
    ///   the request or the response; ``ClientError/underlying`` is then the serializer's error,
    ///   which for a response includes head and content.
    public func get(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.get, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a HEAD request. See ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func head(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.head, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a POST request with the parameters as content. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func post(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.post, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PUT request with the parameters as content. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func put(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.put, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PATCH request with the parameters as content. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func patch(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.patch, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a DELETE request. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func delete(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.delete, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a request with any method. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func send(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(try serialized(method, url, parameters, fields), options)
    }

    /// Sends a POST request with a multipart form (`multipart/form-data`).
    ///
    /// - Parameters:
    ///   - url: See
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as for the parameters
    ///     not named here.
    ///   - parameters: The form's first fields, before the parts that `build` appends.
    ///   - throttle: The rate at which the form is sent.
    ///   - build: Appends parts. An error that it throws becomes the ``ClientError/underlying``
    ///     error, within a ``RequestSerializationError``.
    public func post(
        multipart url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void
    ) async throws(ClientError) -> Reply {
        try await send(
            try serialized(multipart: url, parameters, fields, throttle, build), options)
    }

    // MARK: Shared by calls and tasks

    func serialized(
        _ method: HTTPRequest.Method, _ url: String, _ parameters: RequestParameters?,
        _ fields: HTTPFields
    ) throws(ClientError) -> SerializedRequest {
        try serialized(method, url, fields) { (request) throws(RequestSerializationError) in
            try requests.serialize(request, parameters: parameters)
        }
    }

    func serialized(
        multipart url: String, _ parameters: RequestParameters?, _ fields: HTTPFields,
        _ throttle: Throttle?, _ build: (inout MultipartForm) throws -> Void
    ) throws(ClientError) -> SerializedRequest {
        try serialized(.post, url, fields) { (request) throws(RequestSerializationError) in
            try requests.serialize(
                multipart: request, parameters: parameters, throttle: throttle, build: build)
        }
    }

    func serialized(
        _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields,
        by serialize: (HTTPRequest) throws(RequestSerializationError) -> SerializedRequest
    ) throws(ClientError) -> SerializedRequest {
        let request = try self.request(method, url, fields)
        do throws(RequestSerializationError) { return try serialize(request) } catch {
            throw ClientError(.serialization, "\(error)", of: request, underlying: error)
        }
    }

    func request(
        _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields = [:]
    ) throws(ClientError) -> HTTPRequest {
        guard let reference = URIReference(encoding: url),
            let request = HTTPRequest(
                method, base.map { reference.resolved(against: $0) } ?? reference, fields)
        else {
            throw ClientError(
                .invalidRequest,
                "neither an absolute http or https URL nor one relative to a base", url: url)
        }
        return request
    }

    func send(
        _ serialized: SerializedRequest, _ options: RequestOptions?
    ) async throws(ClientError) -> Reply {
        try reply(
            to: try await session.data(
                for: serialized.head, content: RequestContent(serialized.body),
                options: options ?? RequestOptions(serialized.properties)))
    }

    /// Reads a response with the serializer.
    func reply(to response: DataResponse) throws(ClientError) -> Reply {
        let result = responses.serialize(response.head, content: response.content)
        if let error = result.error {
            throw ClientError(
                .serialization, "\(error)", of: response.request, underlying: error)
        }
        return Reply(value: result.value, response: response)
    }
}
