public import Documents
import FoundationEssentials

extension DataResponse {
    /// Decodes the content as JSON, whatever its Content-Type and the status.
    ///
    ///     let user = try response.decoded(as: User.self)
    ///
    /// - Parameter decoder: Creates the decoder, or `nil` for one with Foundation's default
    ///   strategies.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/serialization`` if the content does not
    ///   match the type.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoderFactory? = nil
    ) throws(ClientError) -> Value {
        do {
            return try (decoder?() ?? JSONDecoder()).decode(type, from: Data(content))
        } catch {
            throw ClientError(
                .serialization, "the content does not match: \(CodingErrorText.text(error))",
                of: request, underlying: error)
        }
    }
}

extension StreamedResponse {
    /// Collects the content and decodes it; see ``DataResponse/decoded(as:decoder:)``.
    ///
    /// - Parameter maximum: The maximum size in bytes. More is an error.
    public func decoded<Value: Decodable & Sendable>(
        as type: Value.Type = Value.self, decoder: JSONDecoderFactory? = nil,
        atMost maximum: Int = 256 << 20
    ) async throws(ClientError) -> Value {
        try await collected(atMost: maximum).decoded(as: type, decoder: decoder)
    }
}

extension DocumentValue {
    /// Decodes the value as another type.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/serialization`` if it does not match.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoderFactory? = nil
    ) throws(ClientError) -> Value {
        do {
            let bytes = Array(description.utf8)
            return try (decoder?() ?? JSONDecoder()).decode(type, from: Data(bytes))
        } catch {
            throw ClientError(
                .serialization, "the value does not match: \(CodingErrorText.text(error))",
                underlying: error)
        }
    }
}
