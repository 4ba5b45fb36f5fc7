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
    ///   - url: As for ``get(_:parameters:fields:options:)``, as are those not named here.
    ///   - type: What the content is decoded into, by ``DecodableResponseSerializer``.
    /// - Throws: ``ClientError``, with ``ClientError/Reason/serialization`` where the status is not
    ///   accepted, or the content is none of that type, or there is none.
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await reading(DecodableResponseSerializer(type))
            .get(url, parameters: parameters, fields: fields, options: options).required()
    }

    /// Sends a value as JSON, and reads the JSON of the response into a type.
    ///
    ///     let saved = try await api.send(.put, "users/7", json: user, as: User.self)
    ///
    /// - Parameters:
    ///   - value: Encoded by ``EncodableRequestSerializer``.
    ///   - type: As for ``get(_:parameters:fields:options:as:)``.
    /// - Throws: as for ``get(_:parameters:fields:options:as:)``; the same reason where the value
    ///   cannot be encoded.
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        try await reading(DecodableResponseSerializer(type))
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
            try EncodableRequestSerializer(defaults: requests.defaults)
                .serialize(request, json: value)
        }
    }
}

extension HTTPSessionManager.Reply {
    /// The value, where there must be one.
    fileprivate func required() throws(ClientError) -> Responses.Output {
        guard let value else {
            throw ClientError(
                .serialization, "the response has no content; expected \(Responses.Output.self)",
                of: response.request)
        }
        return value
    }
}
