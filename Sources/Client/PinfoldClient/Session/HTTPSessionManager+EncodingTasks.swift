public import HTTPTypes
public import Serialization

// Parameters of the caller's own for tasks with completion handlers: as for the calls that wait.

// MARK: Members of any types

extension HTTPSessionManager {
    /// A task of any method, which is to be begun. The parameters are encoded.
    @_disfavoredOverload
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String,
        parameters: [String: any Encodable & Sendable]?, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try dataTask(
            method, url, parameters: parameters, fields: fields, options: options,
            progress: progress, completion: completion)
    }

    /// A task that has begun, with GET. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try get(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with HEAD. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try head(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// A task that has begun, with POST. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try post(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with PUT. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try put(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with PATCH. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try patch(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with DELETE. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try delete(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// A task that has begun, which sends a form with files with POST. The parameters, its first
    /// fields, are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: [String: any Encodable & Sendable]?,
        fields: HTTPFields = [:], throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build, progress: progress, completion: completion)
    }
}

// MARK: Any value

extension HTTPSessionManager {
    /// A task of any method, which is to be begun. The parameters are encoded.
    @_disfavoredOverload
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, parameters: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try dataTask(
            method, url, parameters: parameters, fields: fields, options: options,
            progress: progress, completion: completion)
    }

    /// A task that has begun, with GET. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func get(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try get(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with HEAD. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func head(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try head(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// A task that has begun, with POST. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try post(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with PUT. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func put(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try put(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with PATCH. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func patch(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try patch(
            url, parameters: parameters, fields: fields, options: options, progress: progress,
            completion: completion)
    }

    /// A task that has begun, with DELETE. The parameters are encoded.
    @discardableResult
    @_disfavoredOverload
    public func delete(
        _ url: String, parameters: some Encodable, fields: HTTPFields = [:],
        options: RequestOptions? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try delete(
            url, parameters: parameters, fields: fields, options: options, completion: completion)
    }

    /// A task that has begun, which sends a form with files with POST. The parameters, its first
    /// fields, are encoded.
    @discardableResult
    @_disfavoredOverload
    public func post(
        multipart url: String, parameters: some Encodable, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let parameters = try encoded(parameters, for: url)
        return try post(
            multipart: url, parameters: parameters, fields: fields, throttle: throttle,
            options: options, build: build, progress: progress, completion: completion)
    }
}
