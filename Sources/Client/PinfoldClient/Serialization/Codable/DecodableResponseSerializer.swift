public import Documents
public import FoundationEssentials
public import HTTPTypes

/// Creates the decoder for a response, configured with the caller's strategies for keys, dates and
/// data.
public typealias JSONDecoderFactory = @Sendable () -> JSONDecoder

/// Decodes JSON into a `Decodable` type.
///
///     struct User: Decodable, Sendable { var name: String }
///     let users = DecodableResponseSerializer([User].self)
///
/// The content is validated as by ``JSONResponseSerializer`` (grammar, encoding, duplicate names,
/// limits), and then decoded by Foundation's `JSONDecoder`.
public struct DecodableResponseSerializer<Value: Decodable & Sendable>: ResponseSerializer,
    JSONReading
{
    /// See ``JSONDecoderFactory``.
    public typealias DecoderFactory = JSONDecoderFactory

    public var acceptance: ResponseAcceptance
    /// The limits for the content.
    public var limits = DocumentLimits.standard
    private let decoder: DecoderFactory

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: Creates the decoder. By default, it has Foundation's default strategies.
    public init(
        _ type: Value.Type = Value.self, decoder: @escaping DecoderFactory = { JSONDecoder() }
    ) {
        acceptance = ResponseAcceptance(contentTypes: ResponseAcceptance.typesOfJSON)
        self.decoder = decoder
    }

    /// Decodes the content. As with ``JSONResponseSerializer``, empty content or a single space
    /// results in no value and no error. A value that does not fit the type is reported as
    /// ``ResponseSerializationError/Reason/value(_:)``.
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
                throw .value(ValueMismatchError(error, expected: "\(Value.self)"))
            }
        }
    }
}

/// A value that does not match the requested type.
public struct ValueMismatchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The type to be decoded.
    public var expected: String
    /// The path of the value, as in `users[2].name`; empty for the value itself.
    public var path: String
    /// What is wrong with the value.
    public var reason: String

    init(_ error: any Error, expected: String) {
        self.expected = expected
        let (context, reason): (DecodingError.Context?, String) =
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
        path = CodingErrorText.path(context?.codingPath ?? [])
        self.reason = reason
    }

    public var description: String {
        "the content is not of type \(expected): \(reason)" + (path.isEmpty ? "" : " at \(path)")
    }
}

/// Descriptions of Foundation's encoding and decoding errors.
enum CodingErrorText {
    /// What is wrong with a value that cannot be encoded, and where.
    static func text(_ error: any Error) -> String {
        guard case .invalidValue(_, let context)? = error as? EncodingError else {
            return "\(error)"
        }
        let path = path(context.codingPath)
        return context.debugDescription + (path.isEmpty ? "" : " (\(path))")
    }

    /// The path of a value, as in `users[2].name`.
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
