import Documents
public import HTTPTypes

extension RequestSerializer {
    /// A request with multipart content: the parameters as fields, with their names as
    /// ``arrayStyle`` says, and what `build` appends.
    ///
    /// - Parameters:
    ///   - request: Of any method that has content.
    ///   - throttle: How fast the content is to be sent.
    ///   - build: Appends parts after those of the parameters.
    /// - Throws: ``RequestSerializationError/methodWithoutContent(_:)`` for GET and HEAD, and what
    ///   `build` throws: ``RequestSerializationError/part(_:)`` for a ``MultipartError``, else
    ///   ``RequestSerializationError/build(_:)``.
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
    /// The request with its multipart content written to a file, from which it is then sent: what
    /// is sent is fixed, whatever becomes of the files and streams that it was made of.
    ///
    /// - Parameter path: Of a file that is not there yet.
    public func spooled(to path: String) throws(MultipartError) -> SerializedRequest {
        guard case .multipart(let body) = body else { return self }
        try body.spool(to: path)
        var request = self
        request.body = .file(path: path, length: body.length)
        return request
    }
}
