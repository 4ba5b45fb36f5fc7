public import HTTPTypes

// Parameters of other types than `RequestParameters`: variables with strings and numbers,
// dictionaries, structures. The methods correspond to those of ``HTTPSessionManager`` with
// ``RequestParameters``, which the compiler prefers for literals; for anything else, it uses these.
//
//     try await api.get("users", parameters: ["name": name, "page": page, "tags": tags])
//     try await api.get("users", parameters: search)     // a dictionary, or any Encodable type
//
// There are two of each. An `Encodable` value is encoded as a whole. A dictionary whose values have
// several types is not `Encodable`, but each of its values is. A literal within a literal with
// values of several types needs an explicit type, as Swift's own dictionaries do:
//
//     try await api.post("orders", parameters: [
//         "user": RequestParameters(["name": name, "age": age]), "express": true,
//     ])

extension HTTPSessionManager {
    /// Returns `nil` for parameters that are encoded as null, which means none.
    func encoded(
        _ parameters: some Encodable, for url: String, _ options: RequestOptions?
    ) throws(ClientError) -> RequestParameters? {
        let made = try reporting(url) { () throws(RequestSerializationError) in
            try RequestParameters(
                encoding: parameters, style: options?.parameterStyle ?? parameterStyle)
        }
        return made == .null ? .none : .some(made)
    }

    func encoded(
        _ members: [String: any Encodable & Sendable]?, for url: String,
        _ options: RequestOptions?
    ) throws(ClientError) -> RequestParameters? {
        guard let members else { return nil }
        return try reporting(url) { () throws(RequestSerializationError) in
            try RequestParameters(
                members, style: options?.parameterStyle ?? parameterStyle)
        }
    }

    private func reporting(
        _ url: String, _ encode: () throws(RequestSerializationError) -> RequestParameters
    ) throws(ClientError) -> RequestParameters {
        do throws(RequestSerializationError) { return try encode() } catch {
            throw ClientError(
                .serialization, "\(error)", of: try request(.get, url), underlying: error)
        }
    }
}

// MARK: Members of any types

extension HTTPSessionManager {
    /// Sends a GET request. The parameters are encoded.
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await get(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a HEAD request. The parameters are encoded.
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await head(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a POST request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PUT request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await put(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PATCH request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await patch(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a DELETE request. The parameters are encoded.
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await delete(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a request with any method. The parameters are encoded.
    @_disfavoredOverload
    public func send(
        _ method: HTTPRequest.Method, _ url: String,
        parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await send(method, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a POST request with a multipart form. The parameters, its first fields, are encoded.
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build)
    }
}

// MARK: Any value

extension HTTPSessionManager {
    /// Sends a GET request. The parameters are encoded.
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await get(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a HEAD request. The parameters are encoded.
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await head(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a POST request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PUT request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await put(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a PATCH request with parameters as content. The parameters are encoded.
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await patch(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a DELETE request. The parameters are encoded.
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await delete(url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a request with any method. The parameters are encoded.
    @_disfavoredOverload
    public func send(
        _ method: HTTPRequest.Method, _ url: String, parameters: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await send(method, url, parameters: parameters, fields: fields, options: options)
    }

    /// Sends a POST request with a multipart form. The parameters, its first fields, are encoded.
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: some Encodable, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void
    ) async throws(ClientError) -> Reply {
        let parameters = try encoded(parameters, for: url, options)
        return try await post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build)
    }
}
