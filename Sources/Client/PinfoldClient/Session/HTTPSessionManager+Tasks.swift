public import HTTPTypes

// Requests as tasks with completion handlers, as in AFNetworking.
extension HTTPSessionManager {
    /// Receives the result of a task, once, and where ``SessionConfiguration/callbacks`` says.
    public typealias Completion = @Sendable (Result<Reply, ClientError>) -> Void
    /// Receives the progress of a task, where completion handlers are called. See
    /// ``SessionManager/dataTask(for:content:options:progress:completion:)``.
    public typealias ProgressHandler = @Sendable (TransferProgress.Value) -> Void

    /// Creates a task with any method (`dataTaskWithHTTPMethod:`). Start it with
    /// ``SessionTask/resume()``.
    ///
    ///     try api.dataTask(.get, "users/7") { result in print(result) }.resume()
    ///
    /// To decode responses, use ``reading(_:)`` with a ``DecodableResponseSerializer``.
    ///
    /// - Parameters:
    ///   - url: See
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as for the next three
    ///     parameters.
    ///   - progress: Receives the progress, for the last time before `completion` is called.
    ///   - completion: Receives the reply, or an error; also if the serializer rejects the
    ///     response.
    /// - Throws: ``ClientError`` if no request can be created from the parameters, with
    ///   ``ClientError/Reason/serialization`` if the serializer rejects them. There is then no
    ///   task, and `completion` is not called.
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        task(try serialized(method, url, parameters, fields), options, progress, completion)
    }

    /// Creates a task that sends a value as JSON. See
    /// `dataTask(_:_:parameters:fields:options:progress:completion:)`.
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        task(
            try serialized(method, url, json: value, fields, options), options, progress, completion
        )
    }

    private func task(
        _ serialized: SerializedRequest, _ options: RequestOptions?,
        _ progress: ProgressHandler?, _ completion: @escaping Completion
    ) -> SessionTask<Reply> {
        session.dataTask(
            serialized.head, RequestContent(serialized.body),
            options ?? RequestOptions(serialized.properties), progress, completion
        ) { [self] (response) throws(ClientError) in try reply(to: response) }
    }

    // MARK: Started tasks

    /// Creates and starts a task with GET.
    ///
    ///     try api.get("users/7", parameters: ["fields": "name"]) { result in print(result) }
    ///
    /// Parameters and errors are those of
    /// `dataTask(_:_:parameters:fields:options:progress:completion:)`.
    @discardableResult
    public func get(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.get, url, parameters, fields), options, progress, completion)
    }

    /// Creates and starts a task with HEAD. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func head(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.head, url, parameters, fields), options, nil, completion)
    }

    /// Creates and starts a task that sends parameters with POST. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func post(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.post, url, parameters, fields), options, progress, completion)
    }

    /// Creates and starts a task that sends parameters with PUT. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func put(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.put, url, parameters, fields), options, progress, completion)
    }

    /// Creates and starts a task that sends parameters with PATCH. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func patch(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.patch, url, parameters, fields), options, progress, completion)
    }

    /// Creates and starts a task with DELETE. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func delete(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.delete, url, parameters, fields), options, nil, completion)
    }

    /// Creates and starts a task that sends a multipart form with POST.
    ///
    /// The parameters are those of `post(multipart:parameters:fields:throttle:options:build:)`
    /// and
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    /// `build` is called before this
    /// method returns.
    @discardableResult
    public func post(
        multipart url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        throttle: Throttle? = nil, options: RequestOptions? = nil,
        build: (inout MultipartForm) throws -> Void,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        let serialized = try serialized(multipart: url, parameters, fields, throttle, build)
        return begun(serialized, options, progress, completion)
    }

    private func begun(
        _ serialized: SerializedRequest, _ options: RequestOptions?,
        _ progress: ProgressHandler?, _ completion: @escaping Completion
    ) -> SessionTask<Reply> {
        let task = task(serialized, options, progress, completion)
        task.resume()
        return task
    }
}
