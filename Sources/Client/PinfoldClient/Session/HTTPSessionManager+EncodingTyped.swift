public import HTTPTypes

// Parameters of the caller's own, and a response that is read into a type of the caller's own.

// MARK: Members of any types

extension HTTPSessionManager {
    /// Asks for JSON with GET, and reads it into a type. The parameters are encoded.
    @_disfavoredOverload
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await get(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with POST, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await post(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with PUT, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await put(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with PATCH, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await patch(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Asks to delete something, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await delete(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request of any method, and reads the JSON of the response into a type. The
    /// parameters are encoded.
    @_disfavoredOverload
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String,
        parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await send(
            method, url, parameters: parameters, fields: fields, options: options, as: type)
    }
}

// MARK: Any value

extension HTTPSessionManager {
    /// Asks for JSON with GET, and reads it into a type. The parameters are encoded.
    @_disfavoredOverload
    public func get<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await get(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with POST, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func post<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await post(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with PUT, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func put<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await put(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends parameters with PATCH, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func patch<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await patch(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Asks to delete something, and reads the JSON of the response into a type. The parameters
    /// are encoded.
    @_disfavoredOverload
    public func delete<Value: Decodable & Sendable>(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await delete(
            url, parameters: parameters, fields: fields, options: options, as: type)
    }

    /// Sends a request of any method, and reads the JSON of the response into a type. The
    /// parameters are encoded.
    @_disfavoredOverload
    public func send<Value: Decodable & Sendable>(
        _ method: HTTPRequest.Method, _ url: String, parameters: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil, as type: Value.Type
    ) async throws(ClientError) -> Value {
        let parameters = try encoded(parameters, for: url)
        return try await send(
            method, url, parameters: parameters, fields: fields, options: options, as: type)
    }
}
