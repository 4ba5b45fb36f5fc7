public import HTTPTypes

// JSON as `Decodable` types.
extension HTTPSessionManager {
    /// Returns a manager of the same session that reads responses with another serializer.
    public func reading<Others: ResponseSerializer>(
        _ responses: Others
    ) -> HTTPSessionManager<Others> {
        HTTPSessionManager<Others>(self, responses: responses)
    }

    /// Sends a GET request for JSON and decodes the response.
    ///
    ///     struct User: Decodable { var name: String }
    ///     let user = try await api.get("users/7", as: User.self)
    ///
    /// - Parameters:
    ///   - url: See
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as for the parameters
    ///     not named here.
    ///   - type: The type to decode, using ``DecodableResponseSerializer`` with ``decoder``. If it
    ///     is an optional type, a response without content (204) is decoded as `nil`.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/serialization`` if the response is not
    ///   accepted, has no content, or its content does not match the type. The manager's
    ///   ``responses`` determine the accepted statuses and, if they read JSON, also the accepted
    ///   content types.
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .get, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a POST request with parameters as content, and decodes the JSON response. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .post, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PUT request with parameters as content, and decodes the JSON response. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .put, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PATCH request with parameters as content, and decodes the JSON response. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .patch, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a DELETE request, and decodes the JSON response. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .delete, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request with any method, and decodes the JSON response. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await decoding(type, options)
            .send(method, url, parameters: parameters, fields: fields, options: options)
            .required()
    }

    /// Sends a value as JSON, and decodes the JSON response.
    ///
    ///     let saved = try await api.send(.put, "users/7", json: user, as: User.self)
    ///
    /// - Parameters:
    ///   - value: The value, encoded by ``EncodableRequestSerializer``.
    ///   - type: See ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    /// - Throws: As
    ///   ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``, with the same
    ///   reason if the value
    ///   cannot be encoded.
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await decoding(type, options)
            .send(method, url, json: value, fields: fields, options: options).required()
    }

    /// Sends a value as JSON. The response is read with the manager's serializer.
    public func send(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(try serialized(method, url, json: value, fields, options), options)
    }

    func serialized(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        _ fields: HTTPFields, _ options: RequestOptions?
    ) throws(ClientError) -> SerializedRequest {
        try serialized(method, url, fields) { (request) throws(RequestSerializationError) in
            let defaults = requests.defaults
            let serializer = (options?.encoder ?? encoder).map {
                EncodableRequestSerializer(defaults: defaults, encoder: $0)
            }
            return try (serializer ?? EncodableRequestSerializer(defaults: defaults))
                .serialize(request, json: value)
        }
    }

    /// Returns a manager of the same session that decodes JSON and accepts the same responses as
    /// this one.
    private func decoding<Value: Decodable & Sendable>(
        _ type: Value.Type, _ options: RequestOptions?
    ) -> HTTPSessionManager<DecodableResponseSerializer<Value>> {
        var serializer =
            (options?.decoder ?? decoder).map { DecodableResponseSerializer(type, decoder: $0) }
            ?? DecodableResponseSerializer(type)
        if let own = responses as? any JSONReading {
            (serializer.acceptance, serializer.limits) = (own.acceptance, own.limits)
        } else {
            serializer.acceptance.statusCodes = responses.acceptance.statusCodes
        }
        return reading(serializer)
    }
}

/// A type with a value that represents absence.
private protocol Absentable {
    static var absent: Self { get }
}

extension Optional: Absentable {
    fileprivate static var absent: Self { nil }
}

extension HTTPSessionManager.Reply {
    /// Returns the value, or throws if there is none.
    fileprivate func required() throws(ClientError) -> Responses.Output {
        guard let value else {
            if let type = Responses.Output.self as? any Absentable.Type,
                let absent = type.absent as? Responses.Output
            {
                return absent
            }
            throw ClientError(
                .serialization, "the response has no content; expected \(Responses.Output.self)",
                of: response.request)
        }
        return value
    }
}
