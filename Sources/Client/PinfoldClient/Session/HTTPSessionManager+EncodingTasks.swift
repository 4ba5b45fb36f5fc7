public import HTTPTypes

// Other types of parameters for tasks with completion handlers; see HTTPSessionManager+Encoding.

// MARK: Members of any types

extension HTTPSessionManager {
    /// Creates a task with any method, which has to be started. The parameters are encoded.
    @_disfavoredOverload
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String,
        parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try dataTask(
            method, url, parameters: parameters, fields: fields, options: options,
            progress: progress, completion: completion)
    }

    /// Creates and starts a task with GET. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try get(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with HEAD. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try head(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// Creates and starts a task with POST. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try post(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with PUT. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try put(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with PATCH. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try patch(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with DELETE. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try delete(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// Creates and starts a task that sends a multipart form with POST. The parameters, its first
    /// fields, are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build, progress: progress, completion: completion)
    }
}

// MARK: Any value

extension HTTPSessionManager {
    /// Creates a task with any method, which has to be started. The parameters are encoded.
    @_disfavoredOverload
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, parameters: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try dataTask(
            method, url, parameters: parameters, fields: fields, options: options,
            progress: progress, completion: completion)
    }

    /// Creates and starts a task with GET. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try get(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with HEAD. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try head(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// Creates and starts a task with POST. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try post(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with PUT. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try put(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with PATCH. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try patch(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// Creates and starts a task with DELETE. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try delete(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// Creates and starts a task that sends a multipart form with POST. The parameters, its first
    /// fields, are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: some Encodable, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url, options)
        return try post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build, progress: progress, completion: completion)
    }
}
