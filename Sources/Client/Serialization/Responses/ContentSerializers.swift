public import Documents
public import HTTPTypes

/// Gives the content as it is.
public struct HTTPResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance

    /// By default any type with a status from 200 to 299.
    public init(acceptance: ResponseAcceptance = ResponseAcceptance()) {
        self.acceptance = acceptance
    }

    /// The content is given also beside an error.
    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<[UInt8]> {
        guard case .refused(let error) = acceptance.judge(response, content: content) else {
            return SerializedResponse(value: content)
        }
        return SerializedResponse(value: content, error: error)
    }
}

/// Reads JSON, by limits of its own: what it accepts holds for JSON that is read into types, too.
package protocol JSONReading {
    var acceptance: ResponseAcceptance { get }
    var limits: DocumentLimits { get }
}

/// Reads JSON. No content, or a single space, is nothing and no error: some servers answer a HEAD
/// or an empty success so.
public struct JSONResponseSerializer: ResponseSerializer, JSONReading {
    public var acceptance: ResponseAcceptance
    /// What the content may have at most.
    public var limits = DocumentLimits.standard
    /// Null is taken out of dictionaries and arrays, at any depth.
    public var removesNulls: Bool

    /// A serializer that accepts JSON's types with a status from 200 to 299.
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
    /// What the content may have at most.
    public var limits = DocumentLimits.standard

    /// A serializer that accepts the type of property lists with a status from 200 to 299.
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
    /// What the content may have at most.
    public var limits = DocumentLimits.standard

    /// A serializer that accepts XML's types with a status from 200 to 299.
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

/// XML that has been checked by status and type, and waits to be parsed event by event.
public struct PendingXML: Sendable {
    /// The document.
    public let content: [UInt8]
    /// What it may have at most.
    public let limits: DocumentLimits
    /// What the response's type says of the encoding.
    let encoding: String?

    /// Parses the content into a sink, and gives the sink back.
    public func parse<Sink: XMLSink>(into sink: Sink) throws(DocumentError) -> Sink {
        let parser = XMLPushParser(sink, limits: limits, encoding: encoding)
        try content.withBytes { (bytes) throws(DocumentError) in try parser.push(bytes) }
        try parser.finish()
        return parser.sink
    }
}

/// Gives XML to be parsed event by event.
public struct XMLParserResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance
    /// What the content may have at most.
    public var limits = DocumentLimits.standard

    /// A serializer that accepts XML's types with a status from 200 to 299.
    public init() {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfXML)
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<PendingXML> {
        readDocument(response, content: content) { (content) throws(DocumentError) in
            PendingXML(
                content: content, limits: limits,
                encoding: response.charset(ofXML: content))
        }
    }
}

/// Asks serializers in their order: what the first makes of a response that accepts and reads it.
public struct CompoundResponseSerializer: ResponseSerializer {
    /// In the order in which they are asked.
    public var serializers: [any ResponseSerializer]
    /// What holds where none of them makes anything of a response: the content is then given as it
    /// is.
    public var acceptance: ResponseAcceptance

    /// - Parameters:
    ///   - serializers: In the order in which they are asked.
    ///   - acceptance: Of the content as it is, where none of them reads it.
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
