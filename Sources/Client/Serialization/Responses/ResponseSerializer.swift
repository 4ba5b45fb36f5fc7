public import Documents
public import HTTPTypes

/// Makes a value of a response: checks its status and type, and reads its content.
///
/// A serializer is a value, used on any thread.
public protocol ResponseSerializer<Output>: Sendable {
    /// What is made of the content.
    associatedtype Output: Sendable

    /// What a response must be for its content to be what was asked for.
    var acceptance: ResponseAcceptance { get set }

    /// - Parameters:
    ///   - response: Nil where there is none, as for content from a file; it is not checked then.
    ///   - content: The content without its codings (Content-Encoding).
    func serialize(_ response: HTTPResponse?, content: [UInt8]) -> SerializedResponse<Output>
}

/// What became of a response: a value, an error, or both. A status that is not accepted is an error
/// beside the value, which often says what went wrong.
public struct SerializedResponse<Output: Sendable>: Sendable {
    /// Nil where there is no content, or an error keeps it from being read.
    public var value: Output?
    /// Nil where the response is what was asked for.
    public var error: ResponseSerializationError?

    /// What became of a response: a value, an error, both or nothing.
    public init(value: Output? = nil, error: ResponseSerializationError? = nil) {
        self.value = value
        self.error = error
    }

    /// The value, where there is no error.
    public func get() throws(ResponseSerializationError) -> Output? {
        if let error { throw error }
        return value
    }
}

/// Why a response is not what was asked for.
public struct ResponseSerializationError: Error, Sendable, CustomStringConvertible {
    /// In what the response differs.
    public enum Reason: Error, Sendable, Equatable {
        /// The type of the content, nil for none, is not one of those that are accepted.
        case contentType(String?, accepted: [String])
        /// The status is not one of those that are accepted.
        case status(Int)
        /// The content does not parse.
        case content(DocumentError)
        /// The content parses, but is no value of the type that was asked for.
        case value(ValueMismatch)
        /// The content is no image, or one that is not read.
        case image(ImageError)
    }

    /// In what the response differs.
    public var reason: Reason
    /// Status and fields; nil where there was no response.
    public var response: HTTPResponse?
    /// The content of the response.
    public var content: [UInt8]
    /// What was wrong before this was found to be: the errors further down say more.
    private var underlyingErrors: [ResponseSerializationError]

    /// An error with none under it.
    public init(_ reason: Reason, response: HTTPResponse?, content: [UInt8]) {
        self.reason = reason
        self.response = response
        self.content = content
        underlyingErrors = []
    }

    /// What was wrong before this was found to be.
    public var underlying: ResponseSerializationError? {
        get { underlyingErrors.first }
        set { underlyingErrors = newValue.map { [$0] } ?? [] }
    }

    /// This error, those under it, and so on.
    public var chain: [ResponseSerializationError] {
        [self] + (underlying?.chain ?? [])
    }

    public var description: String {
        let text =
            switch reason {
            case .contentType(let type, let accepted):
                "the content is \(type ?? "of no type"), expected "
                    + accepted.joined(separator: ", ")
            case .status(let status): "the status is \(status)"
            case .content(let error): "\(error)"
            case .value(let mismatch): "\(mismatch)"
            case .image(let error): "\(error)"
            }
        return underlying.map { "\(text); \($0)" } ?? text
    }
}

/// Which responses are accepted.
public struct ResponseAcceptance: Sendable, Equatable {
    /// Ranges of status codes; nil for all.
    public var statusCodes: [ClosedRange<Int>]?
    /// Types of content in lower case, without parameters; nil for all. One that begins with a plus
    /// sign, as `+json` does, stands for all types with that suffix (RFC 6839), such as
    /// `application/problem+json`.
    public var contentTypes: [String]?

    static let typesOfJSON = DocumentFormat.json.mediaTypes + ["+json"]
    static let typesOfXML = DocumentFormat.xml.mediaTypes + ["+xml"]

    /// By default any type with a status from 200 to 299.
    public init(
        statusCodes: [ClosedRange<Int>]? = [200...299], contentTypes: [String]? = nil
    ) {
        self.statusCodes = statusCodes
        self.contentTypes = contentTypes
    }

    /// What is to be done with a response.
    public enum Verdict: Sendable {
        /// Its content is read.
        case accepted
        /// The type is wrong, and there is no content for it to matter.
        case nothing
        /// The status or the type is wrong.
        case refused(ResponseSerializationError)
    }

    /// A response without a type and without content has the right type. A status that is not
    /// accepted comes last: the wrong type is then the error under it.
    public func judge(_ response: HTTPResponse?, content: [UInt8]) -> Verdict {
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
    /// The encoding that the response's type says XML is in.
    func charset(ofXML content: [UInt8]) -> String? {
        self?.contentType?.charset(ofXML: content)
    }
}

extension ResponseSerializer {
    /// Checks a response, and reads its content if it may be read: content of the wrong type is
    /// not, that of the wrong status is.
    func serialize(
        _ response: HTTPResponse?, content: [UInt8],
        by read: ([UInt8]) throws(ResponseSerializationError.Reason) -> Output?
    ) -> SerializedResponse<Output> {
        var refused: ResponseSerializationError?
        switch acceptance.judge(response, content: content) {
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
