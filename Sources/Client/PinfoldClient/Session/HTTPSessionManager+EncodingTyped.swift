public import HTTPTypes

// Other types of parameters, and a response that is decoded; see HTTPSessionManager+Encoding.

// MARK: Members of any types

extension HTTPSessionManager {
    /// Sends a GET request for JSON and decodes the response. The parameters are encoded.
    @_disfavoredOverload
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await get(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a POST request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PUT request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await put(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PATCH request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await patch(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a DELETE request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await delete(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request with any method and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String,
        parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await send(
            method, url, parameters: parameters, fields: fields, options: options, as: type)
    }
}

// MARK: Any value

extension HTTPSessionManager {
    /// Sends a GET request for JSON and decodes the response. The parameters are encoded.
    @_disfavoredOverload
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await get(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a POST request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PUT request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await put(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a PATCH request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await patch(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a DELETE request and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await delete(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request with any method and decodes the JSON response. The parameters are encoded.
    @_disfavoredOverload
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, parameters: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url, options)
        return try await send(
            method, url, parameters: parameters, fields: fields, options: options, as: type)
    }
}
