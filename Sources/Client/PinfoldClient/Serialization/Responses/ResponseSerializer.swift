public import Documents
public import HTTPTypes

/// Converts a response to a value: validates its status and type, and reads its content.
///
/// A serializer is a value that can be used on any thread.
public protocol ResponseSerializer<Output>: Sendable {
    /// The type of the resulting value.
    associatedtype Output: Sendable

    /// Which responses are accepted.
    var acceptance: ResponseAcceptance { get set }

    /// Validates a response and reads its content.
    ///
    /// - Parameters:
    ///   - response: The response, or `nil` if there is none, for example for content from a file.
    ///     It is not validated then.
    ///   - content: The content, after its content codings (Content-Encoding) have been removed.
    func serialize(_ response: HTTPResponse?, content: [UInt8]) -> SerializedResponse<Output>
}

/// The result of serializing a response: a value, an error, or both. If the status is not accepted,
/// there is an error and possibly a value, which often says what went wrong.
public struct SerializedResponse<Output: Sendable>: Sendable {
    /// The value, or `nil` if there is no content or an error prevented it from being read.
    public var value: Output?
    /// The error, or `nil` if there was none.
    public var error: ResponseSerializationError?

    /// Creates a result.
    public init(value: Output? = nil, error: ResponseSerializationError? = nil) {
        self.value = value
        self.error = error
    }

    /// Returns the value, or throws the error if there is one.
    public func get() throws(ResponseSerializationError) -> Output? {
        if let error { throw error }
        return value
    }
}

/// A response that is not acceptable or could not be read.
public struct ResponseSerializationError: Error, Sendable, CustomStringConvertible {
    /// What is wrong with the response.
    public enum Reason: Error, Sendable, Equatable {
        /// The content type, or `nil` if there is none, is not one of the accepted ones.
        case contentType(String?, accepted: [String])
        /// The status is not one of the accepted ones.
        case status(Int)
        /// The content could not be parsed.
        case content(DocumentError)
        /// The content could be parsed, but does not match the requested type.
        case value(ValueMismatchError)
        /// The content is not an image, or not one that is supported.
        case image(ImageError)
    }

    /// What is wrong with the response.
    public var reason: Reason
    /// The status and fields of the response, or `nil` if there was none.
    public var response: HTTPResponse?
    /// The content of the response.
    public var content: [UInt8]
    /// The errors found before this one, the most recent first.
    private var underlyingErrors: [ResponseSerializationError]

    /// Creates an error without an underlying error.
    public init(_ reason: Reason, response: HTTPResponse?, content: [UInt8]) {
        self.reason = reason
        self.response = response
        self.content = content
        underlyingErrors = []
    }

    /// The error that was found before this one.
    public var underlying: ResponseSerializationError? {
        get { underlyingErrors.first }
        set { underlyingErrors = newValue.map { [$0] } ?? [] }
    }

    /// This error, its underlying error, and so on.
    public var chain: [ResponseSerializationError] {
        [self] + (underlying?.chain ?? [])
    }

    public var description: String {
        let text =
            switch reason {
            case .contentType(let type, let accepted):
                "the content type is \(type ?? "missing"), expected "
                    + accepted.joined(separator: ", ")
            case .status(let status): "the status is \(status)"
            case .content(let error): "\(error)"
            case .value(let mismatch): "\(mismatch)"
            case .image(let error): "\(error)"
            }
        return underlying.map { "\(text); \($0)" } ?? text
    }
}

/// Defines which responses are accepted.
public struct ResponseAcceptance: Sendable, Equatable {
    /// The accepted ranges of status codes, or `nil` for all.
    public var statusCodes: [ClosedRange<Int>]?
    /// The accepted content types in lower case, without parameters, or `nil` for all. An entry
    /// that begins with a plus sign, such as `+json`, stands for all types with that suffix (RFC
    /// 6839), such as `application/problem+json`.
    public var contentTypes: [String]?

    static let typesOfJSON = DocumentFormat.json.mediaTypes + ["+json"]
    static let typesOfXML = DocumentFormat.xml.mediaTypes + ["+xml"]

    /// Creates an acceptance. By default, any type is accepted with a status from 200 to 299.
    public init(
        statusCodes: [ClosedRange<Int>]? = [200...299], contentTypes: [String]? = nil
    ) {
        self.statusCodes = statusCodes
        self.contentTypes = contentTypes
    }

    /// The result of validating a response.
    public enum Verdict: Sendable {
        /// The content is to be read.
        case accepted
        /// The type is wrong, but it does not matter because there is no content.
        case nothing
        /// The status or the type is wrong.
        case refused(ResponseSerializationError)
    }

    /// Validates a response. A response without a type and without content has the right type. If
    /// both status and type are wrong, the status is the error and the type its underlying error.
    public func validate(_ response: HTTPResponse?, content: [UInt8]) -> Verdict {
        guard let response else { return .accepted }
        var verdict = Verdict.accepted
        let type = response.contentType?.essence
        if let contentTypes, !Self.isType(type ?? "", among: contentTypes),
            type != nil || !content.isEmpty
        {
            verdict =
                content.isEmpty
                ? .nothing
                : .refused(
                    ResponseSerializationError(
                        .contentType(
                            type == ContentType.malformed
                                ? response.headerFields[values: .contentType]
                                    .joined(separator: ", ") : type,
                            accepted: contentTypes),
                        response: response,
                        content: content))
        }
        let status = response.status.code
        guard let statusCodes, !statusCodes.contains(where: { $0.contains(status) }) else {
            return verdict
        }
        var error = ResponseSerializationError(
            .status(status), response: response, content: content)
        if case .refused(let underlying) = verdict { error.underlying = underlying }
        return .refused(error)
    }

    private static func isType(_ type: String, among accepted: [String]) -> Bool {
        accepted.contains { entry in
            entry == type || entry.utf8.first == UInt8(ascii: "+") && type.hasSuffix(entry)
        }
    }
}

extension HTTPResponse? {
    /// The encoding of XML content according to the response's Content-Type.
    func charset(ofXML content: [UInt8]) -> String? {
        self?.contentType?.charset(ofXML: content)
    }
}

extension ResponseSerializer {
    /// Validates a response and reads its content. Content of the wrong type is not read; content
    /// of a response with the wrong status is.
    package func serialize(
        _ response: HTTPResponse?, content: [UInt8],
        by read: ([UInt8]) throws(ResponseSerializationError.Reason) -> Output?
    ) -> SerializedResponse<Output> {
        var refused: ResponseSerializationError?
        switch acceptance.validate(response, content: content) {
        case .accepted: break
        case .nothing: return SerializedResponse()
        case .refused(let refusal):
            let isTyped = refusal.chain.allSatisfy { link in
                if case .contentType = link.reason { false } else { true }
            }
            guard isTyped else { return SerializedResponse(error: refusal) }
            refused = refusal
        }
        do throws(ResponseSerializationError.Reason) {
            return SerializedResponse(value: try read(content), error: refused)
        } catch {
            var unreadable = ResponseSerializationError(
                error, response: response, content: content)
            unreadable.underlying = refused
            return SerializedResponse(error: unreadable)
        }
    }

    /// The same for content that is a document.
    func readDocument(
        _ response: HTTPResponse?, content: [UInt8],
        by read: ([UInt8]) throws(DocumentError) -> Output?
    ) -> SerializedResponse<Output> {
        serialize(response, content: content) {
            (content) throws(ResponseSerializationError.Reason) in
            do throws(DocumentError) { return try read(content) } catch { throw .content(error) }
        }
    }
}
