public import FoundationEssentials
public import HTTPTypes

/// Makes the encoder of a request; its strategies for keys, dates and data are the caller's.
public typealias JSONEncoderFactory = @Sendable () -> JSONEncoder

/// Makes JSON of values of the caller's own types the content of requests.
///
/// Its names are sorted, so that equal values have equal content.
public struct EncodableRequestSerializer: Sendable {
    /// See ``JSONEncoderFactory``.
    public typealias EncoderFactory = JSONEncoderFactory

    /// The fields and the properties that every request is given.
    public var defaults: RequestDefaults
    private let encoder: EncoderFactory

    /// - Parameters:
    ///   - defaults: What every request is given.
    ///   - encoder: By default one that sorts names and leaves `/` unescaped.
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

    /// The request with a value as its content (`application/json`, unless it says a type).
    ///
    /// - Throws: ``RequestSerializationError/value(_:)`` where the value refuses to be encoded, as
    ///   a number that is not finite does.
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
