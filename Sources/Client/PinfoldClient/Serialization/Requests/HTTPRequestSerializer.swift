public import Documents
public import HTTPTypes

/// Encodes parameters into the query of GET, HEAD and DELETE requests, and into the body of other
/// requests as `application/x-www-form-urlencoded`.
public struct HTTPRequestSerializer: RequestSerializer {
    /// A custom encoding of parameters as a query.
    public typealias QueryEncoding =
        @Sendable (_ request: HTTPRequest, _ parameters: RequestParameters) throws -> String

    public var defaults: RequestDefaults
    /// The methods for which parameters are encoded into the query.
    public var methodsWithQuery: Set<HTTPRequest.Method> = [.get, .head, .delete]
    /// How the names of array elements are written in queries, bodies and multipart fields.
    public var arrayStyle = FormArrayStyle.brackets
    /// The query encoding to use instead of ``RequestParameters/query(arrays:)``.
    public var queryEncoding: QueryEncoding?

    /// Creates a serializer with the same methods and encoding as AFNetworking.
    public init(defaults: RequestDefaults = RequestDefaults()) { self.defaults = defaults }

    public func serialize(
        _ request: HTTPRequest, parameters: RequestParameters?
    ) throws(RequestSerializationError) -> SerializedRequest {
        var result = SerializedRequest(head: request, properties: defaults.properties)
        defaults.apply(to: &result.head)
        var query = ""
        if let parameters {
            query = try self.query(of: parameters, in: result.head)
        }
        guard !methodsWithQuery.contains(request.method) else {
            try Self.append(query, to: &result.head)
            return result
        }
        result.setBody(Array(query.utf8), type: "application/x-www-form-urlencoded")
        return result
    }

    private func query(
        of parameters: RequestParameters, in head: HTTPRequest
    ) throws(RequestSerializationError) -> String {
        if let queryEncoding {
            do {
                return try queryEncoding(head, parameters)
            } catch {
                throw .query(error)
            }
        }
        do throws(DocumentError) {
            return try parameters.query(arrays: arrayStyle)
        } catch {
            throw .parameters(error)
        }
    }

    private static func append(
        _ query: String, to head: inout HTTPRequest
    ) throws(RequestSerializationError) {
        guard !query.isEmpty else { return }
        guard let path = head.path else { throw .noPath }
        let separator = !path.contains("?") ? "?" : path.hasSuffix("?") ? "" : "&"
        head.path = path + separator + query
    }
}

extension RequestSerializer {
    /// Returns a request with the parameters in its body, or in its query for the methods without a
    /// body.
    func serialize(
        _ request: HTTPRequest, parameters: RequestParameters?, with query: HTTPRequestSerializer,
        as format: DocumentFormat, by write: (DocumentValue) throws(DocumentError) -> [UInt8]
    ) throws(RequestSerializationError) -> SerializedRequest {
        guard !query.methodsWithQuery.contains(request.method) else {
            return try query.serialize(request, parameters: parameters)
        }
        var result = SerializedRequest(head: request, properties: defaults.properties)
        defaults.apply(to: &result.head)
        guard let parameters else { return result }
        do throws(DocumentError) {
            result.setBody(
                try write(try parameters.document(in: format)), type: format.mediaTypes[0])
        } catch {
            throw .parameters(error)
        }
        return result
    }
}

extension SerializedRequest {
    /// Sets the body, and its type unless the request already has one.
    mutating func setBody(_ bytes: [UInt8], type: String) {
        body = .bytes(bytes)
        if !head.headerFields.contains(.contentType) { head.headerFields[.contentType] = type }
    }
}

/// Encodes parameters into the body as JSON (`application/json`).
public struct JSONRequestSerializer: RequestSerializer {
    /// The serializer for requests whose parameters are in the query.
    public var query: HTTPRequestSerializer
    /// The limits for the parameters.
    public var limits = DocumentLimits.standard

    public var defaults: RequestDefaults {
        get { query.defaults }
        set { query.defaults = newValue }
    }
    /// How the names of array elements are written in queries and multipart fields.
    public var arrayStyle: FormArrayStyle {
        get { query.arrayStyle }
        set { query.arrayStyle = newValue }
    }

    /// Creates a serializer with the given defaults for every request.
    public init(defaults: RequestDefaults = RequestDefaults()) {
        query = HTTPRequestSerializer(defaults: defaults)
    }

    /// Serializes a request.
    ///
    /// - Throws: ``RequestSerializationError/parameters(_:)``, with the path of the value, if JSON
    ///   cannot represent a value (data, dates, sets, numbers that are not finite), or if a limit
    ///   is exceeded.
    public func serialize(
        _ request: HTTPRequest, parameters: RequestParameters?
    ) throws(RequestSerializationError) -> SerializedRequest {
        try serialize(
            request, parameters: parameters, with: query, as: .json
        ) { (document) throws(DocumentError) in
            var writer = JSONWriter(limits: limits)
            try document.replay(into: &writer)
            return try writer.finish()
        }
    }
}

/// Encodes parameters into the body as a property list (`application/x-plist`).
public struct PropertyListRequestSerializer: RequestSerializer {
    /// The serializer for requests whose parameters are in the query.
    public var query: HTTPRequestSerializer
    /// The form of the property list: XML or binary.
    public var form: PropertyListForm
    /// The limits for the parameters.
    public var limits = DocumentLimits.standard

    public var defaults: RequestDefaults {
        get { query.defaults }
        set { query.defaults = newValue }
    }
    /// How the names of array elements are written in queries and multipart fields.
    public var arrayStyle: FormArrayStyle {
        get { query.arrayStyle }
        set { query.arrayStyle = newValue }
    }

    /// Creates a serializer with the given form, and the given defaults for every request.
    public init(form: PropertyListForm = .xml, defaults: RequestDefaults = RequestDefaults()) {
        query = HTTPRequestSerializer(defaults: defaults)
        self.form = form
    }

    /// Serializes a request.
    ///
    /// - Throws: ``RequestSerializationError/parameters(_:)``, with the path of the value, if a
    ///   property list cannot represent a value (null, sets, numbers that are not finite), or if a
    ///   limit is exceeded.
    public func serialize(
        _ request: HTTPRequest, parameters: RequestParameters?
    ) throws(RequestSerializationError) -> SerializedRequest {
        try serialize(
            request, parameters: parameters, with: query, as: .plist
        ) { (document) throws(DocumentError) in
            switch form {
            case .xml:
                var writer = XMLPropertyListWriter(limits: limits)
                try document.replay(into: &writer)
                return try writer.finish()
            case .binary:
                var writer = BinaryPropertyListWriter(limits: limits)
                try document.replay(into: &writer)
                return try writer.finish()
            }
        }
    }
}
