public import Documents
public import HTTPTypes

/// Makes a request carry parameters: in its query, or in a body of some format.
///
/// A serializer is a value: whoever has a copy is not affected by what others change in theirs, and
/// copies are used on any thread.
public protocol RequestSerializer: Sendable {
    /// The fields and the properties that every request is given.
    var defaults: RequestDefaults { get set }
    /// How the names of arrays' elements are written in multipart fields.
    var arrayStyle: FormArrayStyle { get }

    /// The request with the defaults that it does not bring itself, and with the parameters.
    ///
    /// - Parameters:
    ///   - request: Its fields win over the serializer's.
    ///   - parameters: Nil for a request without any.
    func serialize(
        _ request: HTTPRequest, parameters: RequestParameters?
    ) throws(RequestSerializationError) -> SerializedRequest
}

extension RequestSerializer {
    /// As AFNetworking writes them.
    public var arrayStyle: FormArrayStyle { .brackets }
}

/// A request that is ready to be sent.
public struct SerializedRequest: Sendable {
    /// Method, URL and fields.
    public var head: HTTPRequest
    /// Nil for a request without a body.
    public var body: RequestBody?
    /// What was set of the serializer's properties.
    public var properties: RequestProperties

    /// A request of these parts; see the properties.
    public init(
        head: HTTPRequest, body: RequestBody? = nil,
        properties: RequestProperties = RequestProperties()
    ) {
        self.head = head
        self.body = body
        self.properties = properties
    }
}

/// The content of a request.
public enum RequestBody: Sendable {
    /// Content in memory.
    case bytes([UInt8])
    /// Content that is made while it is sent, from its beginning each time.
    case multipart(MultipartBody)
    /// The content of a file, of so many bytes.
    case file(path: String, length: Int64)

    /// In bytes.
    public var length: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .multipart(let body): body.length
        case .file(_, let length): length
        }
    }
}

/// Why parameters were not made part of a request.
public enum RequestSerializationError: Error, Sendable, CustomStringConvertible {
    /// The format has no way to say the parameters.
    case parameters(DocumentError)
    /// A value of the caller's own could not be encoded.
    case value(any Error)
    /// The caller's own encoding of queries failed.
    case query(any Error)
    /// Multipart content with a method that has none (GET, HEAD).
    case methodWithoutContent(HTTPRequest.Method)
    /// A request without a path, whose query could not be told from it.
    case noPath
    /// A part of multipart content could not be opened or is of unknown length.
    case part(MultipartError)
    /// What the caller builds multipart content with failed, by an error of its own.
    case build(any Error)

    public var description: String {
        switch self {
        case .parameters(let error): "the parameters cannot be sent: \(error)"
        case .value(let error): "the value cannot be sent: \(CodingProblem.text(error))"
        case .query(let error): "the query could not be made: \(error)"
        case .methodWithoutContent(let method):
            "\(method) has no content: expected POST, PUT or PATCH for multipart content"
        case .noPath: "the request has no path"
        case .part(let error): "\(error)"
        case .build(let error): "the parts could not be made: \(error)"
        }
    }
}
