public import HTTPTypes
public import Serialization

// JSON as types of the caller's own.
extension HTTPSessionManager {
    /// Another manager of the same session, which reads responses in another way.
    public func reading<Others: ResponseSerializer>(
        _ responses: Others
    ) -> HTTPSessionManager<Others> {
        HTTPSessionManager<Others>(self, responses: responses)
    }

    /// Asks for JSON with GET, and reads it into a type.
    ///
    ///     struct User: Decodable { var name: String }
    ///     let user = try await api.get("users/7", as: User.self)
    ///
    /// - Parameters:
    ///   - url: As for
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as are those not
    ///     named here.
    ///   - type: What the content is decoded into, by ``DecodableResponseSerializer`` with
    ///     ``decoder``. Where it is an optional type, no content (204) is nil.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/serialization`` where the response is
    ///   not accepted, or the content is none of that type, or there is none. Which statuses are
    ///   accepted the manager's ``responses`` say, and which types of content, too, where these are
    ///   read as JSON.
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .get, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters as content with POST, and reads the JSON of the response into a type. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .post, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters as content with PUT, and reads the JSON of the response into a type. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .put, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters as content with PATCH, and reads the JSON of the response into a type. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .patch, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Asks to delete something, and reads the JSON of the response into a type. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await send(
            .delete, url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request of any method, and reads the JSON of the response into a type. See
    /// ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await decoding(type)
            .send(method, url, parameters: parameters, fields: fields, options: options)
            .required()
    }

    /// Sends a value as JSON, and reads the JSON of the response into a type.
    ///
    ///     let saved = try await api.send(.put, "users/7", json: user, as: User.self)
    ///
    /// - Parameters:
    ///   - value: Encoded by ``EncodableRequestSerializer``.
    ///   - type: As for ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``.
    /// - Throws: as for
    ///   ``get(_:parameters:fields:options:as:)-(_,RequestParameters?,_,_,_)``; the same reason
    ///   where the value
    ///   cannot be encoded.
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await decoding(type)
            .send(method, url, json: value, fields: fields, options: options).required()
    }

    /// Sends a value as JSON; the response is read as the manager's responses are.
    public func send(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        try await send(try serialized(method, url, json: value, fields), options)
    }

    func serialized(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        _ fields: HTTPFields
    ) throws(ClientError) -> SerializedRequest {
        try serialized(method, url, fields) { (request) throws(RequestSerializationError) in
            let defaults = requests.defaults
            let serializer = encoder.map {
                EncodableRequestSerializer(defaults: defaults, encoder: $0)
            }
            return try (serializer ?? EncodableRequestSerializer(defaults: defaults))
                .serialize(request, json: value)
        }
    }

    /// A manager of the same session that reads JSON into a type, and accepts what this one does.
    private func decoding<Value: Decodable & Sendable>(
        _ type: Value.Type
    ) -> HTTPSessionManager<DecodableResponseSerializer<Value>> {
        var serializer =
            decoder.map { DecodableResponseSerializer(type, decoder: $0) }
            ?? DecodableResponseSerializer(type)
        if let own = responses as? any JSONReading {
            (serializer.acceptance, serializer.limits) = (own.acceptance, own.limits)
        } else {
            serializer.acceptance.statusCodes = responses.acceptance.statusCodes
        }
        return reading(serializer)
    }
}

/// A type with a value that says that there is none.
private protocol Absentable {
    static var absent: Self { get }
}

extension Optional: Absentable {
    fileprivate static var absent: Self { nil }
}

extension HTTPSessionManager.Reply {
    /// The value, where there must be one.
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
