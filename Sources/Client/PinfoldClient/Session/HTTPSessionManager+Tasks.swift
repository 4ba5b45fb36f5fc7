public import HTTPTypes
public import Serialization

// Requests as tasks with completion handlers, as AFNetworking has them.
extension HTTPSessionManager {
    /// Is given what came of a task, once, where ``SessionConfiguration/callbacks`` say.
    public typealias Completion = @Sendable (Result<Reply, ClientError>) -> Void
    /// Is told how far a task is, where completion handlers are called. See
    /// ``SessionManager/dataTask(for:content:options:progress:completion:)``.
    public typealias ProgressHandler = @Sendable (TransferProgress.Value) -> Void

    /// A task of any method (`dataTaskWithHTTPMethod:`). It is to be begun:
    /// ``SessionTask/resume()``.
    ///
    ///     try api.dataTask(.get, "users/7") { result in print(result) }.resume()
    ///
    /// Responses are read into a type of the caller's own by ``reading(_:)`` with a
    /// ``DecodableResponseSerializer``.
    ///
    /// - Parameters:
    ///   - url: As for
    ///     ``get(_:parameters:fields:options:)-(_,RequestParameters?,_,_)``, as are the next
    ///     three.
    ///   - progress: Is told how far it is; the last time before `completion` is called.
    ///   - completion: Gets the reply, or the error, that of a response that its serializer refuses
    ///     included.
    /// - Throws: ``ClientError`` where the request cannot be made of these, with
    ///   ``ClientError/Reason/serialization`` where its serializer refuses them. There is no task
    ///   then, and `completion` is not called.
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, parameters: RequestParameters? = nil,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        task(try serialized(method, url, parameters, fields), options, progress, completion)
    }

    /// A task that sends a value as JSON. See
    /// `dataTask(_:_:parameters:fields:options:progress:completion:)`.
    public func dataTask(
        _ method: HTTPRequest.Method, _ url: String, json value: some Encodable,
        fields: HTTPFields = [:], options: RequestOptions? = nil,
        progress: ProgressHandler? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        task(try serialized(method, url, json: value, fields), options, progress, completion)
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

    // MARK: Begun at once

    /// A task that asks with GET, and has begun.
    ///
    ///     try api.get("users/7", parameters: ["fields": "name"]) { result in print(result) }
    ///
    /// - Parameters: as for `dataTask(_:_:parameters:fields:options:progress:completion:)`, as is
    ///   what is thrown.
    @discardableResult
    public func get(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.get, url, parameters, fields), options, progress, completion)
    }

    /// A task that asks with HEAD, and has begun. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func head(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.head, url, parameters, fields), options, nil, completion)
    }

    /// A task that sends parameters with POST, and has begun. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func post(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.post, url, parameters, fields), options, progress, completion)
    }

    /// A task that sends parameters with PUT, and has begun. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func put(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.put, url, parameters, fields), options, progress, completion)
    }

    /// A task that sends parameters with PATCH, and has begun. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func patch(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, progress: ProgressHandler? = nil,
        completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.patch, url, parameters, fields), options, progress, completion)
    }

    /// A task that asks to delete something, and has begun. See
    /// ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``.
    @discardableResult
    public func delete(
        _ url: String, parameters: RequestParameters? = nil, fields: HTTPFields = [:],
        options: RequestOptions? = nil, completion: @escaping Completion
    ) throws(ClientError) -> SessionTask<Reply> {
        begun(try serialized(.delete, url, parameters, fields), options, nil, completion)
    }

    /// A task that sends a form with files with POST, and has begun.
    ///
    /// - Parameters: as for ``post(multipart:parameters:fields:throttle:options:build:)`` and
    ///   ``get(_:parameters:fields:options:progress:completion:)-(_,RequestParameters?,_,_,_,_)``;
    ///   `build` has returned when this
    ///   does.
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
