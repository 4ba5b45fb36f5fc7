public import Documents
public import HTTPTypes

/// Puts parameters in the query of a GET, HEAD or DELETE, and in the body of others as
/// `application/x-www-form-urlencoded`.
public struct HTTPRequestSerializer: RequestSerializer {
    /// Makes a query of parameters in the caller's own way.
    public typealias QueryEncoding =
        @Sendable (_ request: HTTPRequest, _ parameters: RequestParameters) throws -> String

    public var defaults: RequestDefaults
    /// Whose parameters are put in the query.
    public var methodsWithQuery: Set<HTTPRequest.Method> = [.get, .head, .delete]
    /// How the names of arrays' elements are written, in queries, bodies and multipart fields.
    public var arrayStyle = FormArrayStyle.brackets
    /// In place of ``RequestParameters/query(arrays:)``.
    public var queryEncoding: QueryEncoding?

    /// A serializer with the methods and the encoding of AFNetworking.
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
    /// A request whose parameters are its body, or, for the methods that have none, its query.
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
    /// Sets the body, and its type unless the request says one.
    mutating func setBody(_ bytes: [UInt8], type: String) {
        body = .bytes(bytes)
        if !head.headerFields.contains(.contentType) { head.headerFields[.contentType] = type }
    }
}

/// Puts parameters in the body as JSON (`application/json`).
public struct JSONRequestSerializer: RequestSerializer {
    /// Serializes the requests whose parameters are in the query.
    public var query: HTTPRequestSerializer
    /// What the parameters may have at most.
    public var limits = DocumentLimits.standard

    public var defaults: RequestDefaults {
        get { query.defaults }
        set { query.defaults = newValue }
    }
    /// Of queries and multipart fields.
    public var arrayStyle: FormArrayStyle {
        get { query.arrayStyle }
        set { query.arrayStyle = newValue }
    }

    /// A serializer that gives every request these defaults.
    public init(defaults: RequestDefaults = RequestDefaults()) {
        query = HTTPRequestSerializer(defaults: defaults)
    }

    /// - Throws: ``RequestSerializationError/parameters(_:)``, with the path of the value, for what
    ///   JSON cannot say (data, dates, sets, numbers that are not finite), and where the parameters
    ///   are more than the limits allow.
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

/// Puts parameters in the body as a property list (`application/x-plist`).
public struct PropertyListRequestSerializer: RequestSerializer {
    /// Serializes the requests whose parameters are in the query.
    public var query: HTTPRequestSerializer
    /// XML or binary.
    public var form: PropertyListForm
    /// What the parameters may have at most.
    public var limits = DocumentLimits.standard

    public var defaults: RequestDefaults {
        get { query.defaults }
        set { query.defaults = newValue }
    }
    /// Of queries and multipart fields.
    public var arrayStyle: FormArrayStyle {
        get { query.arrayStyle }
        set { query.arrayStyle = newValue }
    }

    /// A serializer of this form that gives every request these defaults.
    public init(form: PropertyListForm = .xml, defaults: RequestDefaults = RequestDefaults()) {
        query = HTTPRequestSerializer(defaults: defaults)
        self.form = form
    }

    /// - Throws: ``RequestSerializationError/parameters(_:)``, with the path of the value, for what
    ///   no property list can say (null, sets, numbers that are not finite), and where the
    ///   parameters are more than the limits allow.
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
