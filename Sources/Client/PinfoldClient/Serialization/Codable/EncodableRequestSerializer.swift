public import FoundationEssentials
public import HTTPTypes

/// Creates the encoder for a request, configured with the caller's strategies for keys, dates and
/// data.
public typealias JSONEncoderFactory = @Sendable () -> JSONEncoder

/// Encodes `Encodable` values as JSON content of requests.
///
/// Names are sorted by default, so that equal values have equal content.
public struct EncodableRequestSerializer: Sendable {
    /// See ``JSONEncoderFactory``.
    public typealias EncoderFactory = JSONEncoderFactory

    /// The fields and properties for every request.
    public var defaults: RequestDefaults
    private let encoder: EncoderFactory

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - defaults: The fields and properties for every request.
    ///   - encoder: Creates the encoder. By default, it sorts names and does not escape `/`.
    public init(
        defaults: RequestDefaults = RequestDefaults(),
        encoder: @escaping EncoderFactory = {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return encoder
        }
    ) {
        self.defaults = defaults
        self.encoder = encoder
    }

    /// Returns the request with a value as its JSON content. Its type is `application/json` unless
    /// the request already has a Content-Type.
    ///
    /// - Throws: ``RequestSerializationError/value(_:)`` if the value cannot be encoded, for
    ///   example because it contains a number that is not finite.
    public func serialize(
        _ request: HTTPRequest, json value: some Encodable
    ) throws(RequestSerializationError) -> SerializedRequest {
        var result = SerializedRequest(head: request, properties: defaults.properties)
        defaults.apply(to: &result.head)
        do {
            result.setBody(Array(try encoder().encode(value)), type: "application/json")
        } catch {
            throw .value(error)
        }
        return result
    }
}
