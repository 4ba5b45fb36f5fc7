import Documents
public import HTTPTypes

extension RequestSerializer {
    /// Creates a request with multipart content: the parameters as fields, with the names of array
    /// elements according to ``arrayStyle``, followed by the parts that `build` appends.
    ///
    /// - Parameters:
    ///   - request: A request whose method allows content.
    ///   - throttle: The rate at which the content is sent.
    ///   - build: Appends parts after those for the parameters.
    /// - Throws: ``RequestSerializationError/methodWithoutContent(_:)`` for GET and HEAD. An error
    ///   thrown by `build` becomes ``RequestSerializationError/part(_:)`` if it is a
    ///   ``MultipartError``, otherwise ``RequestSerializationError/build(_:)``.
    public func serialize(
        multipart request: HTTPRequest, parameters: RequestParameters? = nil,
        throttle: Throttle? = nil,
        build: (inout MultipartForm) throws -> Void
    ) throws(RequestSerializationError) -> SerializedRequest {
        guard request.method != .get, request.method != .head else {
            throw .methodWithoutContent(request.method)
        }
        var form = MultipartForm()
        do throws(DocumentError) {
            for pair in try parameters?.pairs(arrays: arrayStyle) ?? [] {
                if case .data(let bytes) = pair.value {
                    form.append(bytes, name: pair.name)
                } else {
                    form.append(pair.text ?? "", name: pair.name)
                }
            }
        } catch {
            throw .parameters(error)
        }
        do { try build(&form) } catch let error as MultipartError {
            throw .part(error)
        } catch {
            throw .build(error)
        }
        var result = SerializedRequest(head: request, properties: defaults.properties)
        defaults.apply(to: &result.head)
        let body = form.body(throttle: throttle)
        result.head.headerFields[.contentType] = body.contentType
        result.head.headerFields[.contentLength] = String(body.length)
        result.body = .multipart(body)
        return result
    }
}

extension SerializedRequest {
    /// Writes the multipart content to a file, and returns a request that sends that file. So the
    /// content is fixed, whatever happens to the files and streams it was made from.
    ///
    /// - Parameter path: The path of the file, which must not exist yet.
    public func spooled(to path: String) throws(MultipartError) -> SerializedRequest {
        guard case .multipart(let body) = body else { return self }
        try body.spool(to: path)
        var request = self
        request.body = .file(path: path, length: body.length)
        return request
    }
}
