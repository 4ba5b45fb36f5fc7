public import Documents
public import HTTPTypes

/// Encodes parameters into a request: into its query or, in some format, into its body.
///
/// A serializer is a value. A copy is independent of the original and can be used on any thread.
public protocol RequestSerializer: Sendable {
    /// The fields and properties for every request.
    var defaults: RequestDefaults { get set }
    /// How the names of array elements are written in multipart fields.
    var arrayStyle: FormArrayStyle { get }

    /// Returns the request with the parameters, and with the defaults that it does not have itself.
    ///
    /// - Parameters:
    ///   - request: The request. Its own fields take precedence over the serializer's.
    ///   - parameters: The parameters, or `nil` for a request without any.
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
    /// The body, or `nil` for a request without one.
    public var body: RequestBody?
    /// The properties set by the serializer.
    public var properties: RequestProperties

    /// Creates a request from its parts; see the properties.
    public init(
        head: HTTPRequest, body: RequestBody? = nil,
        properties: RequestProperties = RequestProperties()
    ) {
        self.head = head
        self.body = body
        self.properties = properties
    }
}

/// The body of a request.
public enum RequestBody: Sendable {
    /// Content in memory.
    case bytes([UInt8])
    /// Multipart content, which is generated while it is sent, from the beginning each time.
    case multipart(MultipartBody)
    /// The content of a file with this length in bytes.
    case file(path: String, length: Int64)

    /// The length in bytes.
    public var length: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .multipart(let body): body.length
        case .file(_, let length): length
        }
    }
}

/// An error in encoding parameters into a request.
public enum RequestSerializationError: Error, Sendable, CustomStringConvertible {
    /// The format cannot represent the parameters.
    case parameters(DocumentError)
    /// An `Encodable` value could not be encoded.
    case value(any Error)
    /// The custom query encoding failed.
    case query(any Error)
    /// The method does not allow multipart content (GET, HEAD).
    case methodWithoutContent(HTTPRequest.Method)
    /// The request has no path, so a query could not be distinguished from it.
    case noPath
    /// A part of the multipart content could not be opened, or its length is unknown.
    case part(MultipartError)
    /// The closure that builds the multipart content has thrown an error.
    case build(any Error)

    public var description: String {
        switch self {
        case .parameters(let error): "the parameters cannot be sent: \(error)"
        case .value(let error): "the value cannot be sent: \(CodingErrorText.text(error))"
        case .query(let error): "the query could not be made: \(error)"
        case .methodWithoutContent(let method):
            "\(method) requests have no content; use POST, PUT or PATCH for multipart content"
        case .noPath: "the request has no path"
        case .part(let error): "\(error)"
        case .build(let error): "the parts could not be created: \(error)"
        }
    }
}
