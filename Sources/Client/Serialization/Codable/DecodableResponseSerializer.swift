public import Documents
public import FoundationEssentials
public import HTTPTypes

/// Makes the decoder of a response; its strategies for keys, dates and data are the caller's.
public typealias JSONDecoderFactory = @Sendable () -> JSONDecoder

/// Reads JSON into a type of the caller's own.
///
///     struct User: Decodable, Sendable { var name: String }
///     let users = DecodableResponseSerializer([User].self)
///
/// The content is checked as ``JSONResponseSerializer`` checks it (grammar, encoding, duplicate
/// names, limits), and then decoded by Foundation's `JSONDecoder`.
public struct DecodableResponseSerializer<Value: Decodable & Sendable>: ResponseSerializer,
    JSONReading
{
    /// See ``JSONDecoderFactory``.
    public typealias DecoderFactory = JSONDecoderFactory

    public var acceptance: ResponseAcceptance
    /// What the content may have at most.
    public var limits = DocumentLimits.standard
    private let decoder: DecoderFactory

    /// - Parameters:
    ///   - type: What is decoded.
    ///   - decoder: One with Foundation's own strategies by default.
    public init(
        _ type: Value.Type = Value.self, decoder: @escaping DecoderFactory = { JSONDecoder() }
    ) {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfJSON)
        self.decoder = decoder
    }

    /// No content, or a single space, is nothing and no error, as for ``JSONResponseSerializer``.
    /// A value that does not fit the type is ``ResponseSerializationError/Reason/value(_:)``.
    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<Value> {
        serialize(response, content: content) {
            (content) throws(ResponseSerializationError.Reason) in
            if content.isEmpty || content == [0x20] { return nil }
            do throws(DocumentError) {
                try JSONValidator.validate(content, limits: limits)
            } catch {
                throw .content(error)
            }
            do {
                return try decoder().decode(Value.self, from: Data(content))
            } catch {
                throw .value(ValueMismatch(error, expected: "\(Value.self)"))
            }
        }
    }
}

/// How a value differs from the type that was asked for.
public struct ValueMismatch: Error, Sendable, Hashable, CustomStringConvertible {
    /// The type that was to be decoded.
    public var expected: String
    /// Where, as in `users[2].name`; empty for the value itself.
    public var path: String
    /// What is wrong there.
    public var problem: String

    init(_ error: any Error, expected: String) {
        self.expected = expected
        let (context, problem): (DecodingError.Context?, String) =
            switch error as? DecodingError {
            case .typeMismatch(let type, let context)?:
                (context, "expected \(type)")
            case .valueNotFound(let type, let context)?:
                (context, "expected \(type), found null")
            case .keyNotFound(let key, let context)?:
                (context, "there is no \"\(key.stringValue)\"")
            case .dataCorrupted(let context)?: (context, context.debugDescription)
            default: (nil, "\(error)")
            }
        path = CodingProblem.path(context?.codingPath ?? [])
        self.problem = problem
    }

    public var description: String {
        "the content is no \(expected): \(problem)" + (path.isEmpty ? "" : " at \(path)")
    }
}

/// What Foundation's errors of encoding and decoding have to say.
enum CodingProblem {
    /// What is wrong with a value that refuses to be encoded, and where.
    static func text(_ error: any Error) -> String {
        guard case .invalidValue(_, let context)? = error as? EncodingError else {
            return "\(error)"
        }
        let path = path(context.codingPath)
        return context.debugDescription + (path.isEmpty ? "" : " (\(path))")
    }

    /// Where a value is, as in `users[2].name`.
    static func path(_ keys: [any CodingKey]) -> String {
        keys.reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += (path.isEmpty ? "" : ".") + key.stringValue
            }
        }
    }
}
