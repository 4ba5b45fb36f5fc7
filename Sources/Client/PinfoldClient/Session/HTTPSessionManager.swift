public import HTTPTypes
public import Serialization

/// Asks one service: URLs relative to a base, parameters put into requests, responses read into
/// values. What AFNetworking's `AFHTTPSessionManager` is.
///
///     let api = try HTTPSessionManager(
///         baseURL: "https://api.example.com/v1", responses: JSONResponseSerializer())
///     let user = try await api.get("users/7", parameters: ["fields": "name"]).value
///
/// A value: a copy with other serializers uses the same session.
public struct HTTPSessionManager<Responses: ResponseSerializer>: Sendable {
    /// What came of a request.
    public struct Reply: Sendable {
        /// What the serializer made of the content; nil where it found none.
        public let value: Responses.Output?
        /// The response that it was made of.
        public let response: DataResponse
    }

    /// What carries the requests out.
    public let session: SessionManager
    /// Ends in `/`, so that relative URLs are below it; nil: only absolute URLs can be asked for.
    public let baseURL: String?
    fileprivate let base: URIReference?
    /// Puts parameters into requests; forms and queries by default.
    public var requests: any RequestSerializer
    /// Checks and reads responses.
    public var responses: Responses
    /// Makes the encoder of values that are sent as JSON (`json:`); nil: as
    /// ``EncodableRequestSerializer`` does.
    public var encoder: JSONEncoderFactory?
    /// Makes the decoder of responses that are read into types (`as:`); nil: one with Foundation's
    /// own strategies.
    public var decoder: JSONDecoderFactory?

    /// - Parameters:
    ///   - baseURL: What URLs are relative to: `http` or `https`. One whose path does not end in
    ///     `/` is taken for one that does.
    ///   - configuration: Of the session that is made.
    ///   - runtime: The thread that carries it out; nil: ``ClientRuntime/shared()``.
    ///   - requests: See ``requests``.
    ///   - responses: See ``responses``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` for a base that is no
    ///   such URL, with ``ClientError/Reason/invalidSecurityPolicy`` for a policy with pins where
    ///   the base is not https, and what ``SessionManager/init(configuration:runtime:)`` throws.
    public init(
        baseURL: String? = nil, configuration: SessionConfiguration = SessionConfiguration(),
        runtime: ClientRuntime? = nil,
        requests: any RequestSerializer = HTTPRequestSerializer(), responses: Responses
    ) throws(ClientError) {
        var base: URIReference?
        if let baseURL {
            let root = try HTTPRequest(.get, baseURL)
            if configuration.securityPolicy.mode != .none, root.scheme != "https" {
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

    /// A copy that reads responses in another way.
    init<Others>(_ other: HTTPSessionManager<Others>, responses: Responses) {
        (session, baseURL, base) = (other.session, other.baseURL, other.base)
        (requests, self.responses) = (other.requests, responses)
        (encoder, decoder) = (other.encoder, other.decoder)
    }

    // MARK: Requests

    /// Asks for something with GET; the parameters are its query.
    ///
    /// - Parameters:
    ///   - url: Absolute, or relative to the base (RFC 3986 section 5): `users` is below it,
    ///     `/users` is below its host.
    ///   - parameters: What the request serializer makes part of the request.
    ///   - fields: They win over the serializer's.
    ///   - options: What is special about it; by default what the serializer's properties say.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/serialization`` where the request or
    ///   the response is refused by its serializer; ``ClientError/underlying`` is its error, that
    ///   of a response with head and content.
    public func get(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.get, url, parameters: parameters, fields: fields, options: options)
    }

    /// Asks for the head of a response with HEAD. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func head(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.head, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends parameters as content with POST. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func post(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.post, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends parameters as content with PUT. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func put(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.put, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends parameters as content with PATCH. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func patch(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.patch, url, parameters: parameters, fields: fields, options: options)
    }

    /// Asks to delete something. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func delete(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(.delete, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a request of any method. See
    /// ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``.
    public func send(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(try serialized(method, url, parameters, fields), options)
    }

    /// Sends a form with files (`multipart/form-data`) with POST.
    ///
    /// - Parameters:
    ///   - url: As for
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as are those not
    ///     named here.
    ///   - parameters: Fields that come before the parts that `build` appends.
    ///   - throttle: How fast the form is sent.
    ///   - build: Appends parts. What it throws is ``ClientError/underlying`` of the error, within
    ///     a ``RequestSerializationError``.
    public func post(
        multipart url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void
    ) async throws(ClientError) -> Reply {
        try await send(
            try serialized(multipart: url, parameters, fields, throttle, build), options)
    }

    // MARK: What calls and tasks share

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
        guard let reference = URIReference(url),
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

    /// What the serializer makes of a response.
    func reply(to response: DataResponse) throws(ClientError) -> Reply {
        let result = responses.serialize(response.head, content: response.content)
        if let error = result.error {
            throw ClientError(
                .serialization, "\(error)", of: response.request, underlying: error)
        }
        return Reply(value: result.value, response: response)
    }
}
