public import Documents
public import HTTPTypes

/// Returns the content unchanged.
public struct HTTPResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance

    /// Creates a serializer. By default, it accepts any type with a status from 200 to 299.
    public init(acceptance: ResponseAcceptance = ResponseAcceptance()) {
        self.acceptance = acceptance
    }

    /// Returns the content, even if there is an error as well.
    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<[UInt8]> {
        guard case .refused(let error) = acceptance.validate(response, content: content) else {
            return SerializedResponse(value: content)
        }
        return SerializedResponse(value: content, error: error)
    }
}

/// A serializer that reads JSON. Its limits also apply to JSON that is decoded into types.
package protocol JSONReading {
    var acceptance: ResponseAcceptance { get }
    var limits: DocumentLimits { get }
}

/// Reads JSON. Empty content or a single space results in no value and no error, because some
/// servers send it in responses to HEAD or for success without content.
public struct JSONResponseSerializer: ResponseSerializer, JSONReading {
    public var acceptance: ResponseAcceptance
    /// The limits for the content.
    public var limits = DocumentLimits.standard
    /// Whether null values are removed from dictionaries and arrays at any depth.
    public var removesNulls: Bool

    /// Creates a serializer that accepts JSON types with a status from 200 to 299.
    public init(removesNulls: Bool = false) {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfJSON)
        self.removesNulls = removesNulls
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<DocumentValue> {
        readDocument(response, content: content) { (content) throws(DocumentError) in
            if content.isEmpty || content == [0x20] { return nil }
            let value = try JSONDocument.value(of: content, limits: limits)
            return removesNulls ? value.removingNulls : value
        }
    }
}

/// Reads property lists, XML or binary.
public struct PropertyListResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance
    /// The limits for the content.
    public var limits = DocumentLimits.standard

    /// Creates a serializer that accepts property list types with a status from 200 to 299.
    public init() {
        acceptance = ResponseAcceptance(contentTypes: DocumentFormat.plist.mediaTypes)
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<DocumentValue> {
        readDocument(response, content: content) { (content) throws(DocumentError) in
            content.isEmpty ? nil : try PropertyListReader.value(of: content, limits: limits)
        }
    }
}

/// Reads XML into a tree.
public struct XMLDocumentResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance
    /// The limits for the content.
    public var limits = DocumentLimits.standard

    /// Creates a serializer that accepts XML types with a status from 200 to 299.
    public init() {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfXML)
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<XMLTree> {
        readDocument(response, content: content) { (content) throws(DocumentError) in
            try XMLTree(
                content, limits: limits, encoding: response.charset(ofXML: content))
        }
    }
}

/// XML whose response's status and type have been checked, ready to be parsed event by event.
public struct UnparsedXML: Sendable {
    /// The document.
    public let content: [UInt8]
    /// The limits for the document.
    public let limits: DocumentLimits
    /// The encoding according to the response's type.
    let encoding: String?

    /// Parses the content into a sink, and returns the sink.
    public func parse<Sink: XMLSink>(into sink: Sink) throws(DocumentError) -> Sink {
        let parser = XMLPushParser(sink, limits: limits, encoding: encoding)
        try content.withBytes { (bytes) throws(DocumentError) in try parser.push(bytes) }
        try parser.finish()
        return parser.sink
    }
}

/// Returns XML that is ready to be parsed event by event.
public struct XMLParserResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance
    /// The limits for the content.
    public var limits = DocumentLimits.standard

    /// Creates a serializer that accepts XML types with a status from 200 to 299.
    public init() {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfXML)
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<UnparsedXML> {
        readDocument(response, content: content) { (content) throws(DocumentError) in
            UnparsedXML(
                content: content, limits: limits,
                encoding: response.charset(ofXML: content))
        }
    }
}

/// Tries serializers in order, and returns the result of the first one that accepts and can read
/// the response.
public struct CompoundResponseSerializer: ResponseSerializer {
    /// The serializers in the order in which they are tried.
    public var serializers: [any ResponseSerializer]
    /// What is accepted if none of the serializers can read a response. The content is then
    /// returned unchanged.
    public var acceptance: ResponseAcceptance

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - serializers: The serializers in the order in which they are tried.
    ///   - acceptance: What is accepted, unchanged, if none of them can read a response.
    public init(
        _ serializers: [any ResponseSerializer],
        acceptance: ResponseAcceptance = ResponseAcceptance()
    ) {
        self.serializers = serializers
        self.acceptance = acceptance
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<any Sendable> {
        func attempt<Output>(
            _ serializer: some ResponseSerializer<Output>
        ) -> SerializedResponse<any Sendable>? {
            let result = serializer.serialize(response, content: content)
            guard let value = result.value else { return nil }
            return SerializedResponse(value: value, error: result.error)
        }
        for serializer in serializers {
            if let result = attempt(serializer) { return result }
        }
        let plain = HTTPResponseSerializer(acceptance: acceptance)
            .serialize(response, content: content)
        return SerializedResponse(value: plain.value, error: plain.error)
    }
}
