public import Documents
import HTTPTypes

// What a response says, whatever its status.
extension DataResponse {
    /// The content as text: in the encoding that its Content-Type names (UTF-8, ISO 8859-1 or
    /// US-ASCII), otherwise in UTF-8. Bytes that are not valid become U+FFFD; a byte order mark is
    /// left out.
    public var text: String { ContentText.text(of: content, head.headerFields) }

    /// The content as JSON, whatever its Content-Type.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/serialization`` if it is not JSON.
    public var json: DocumentValue {
        get throws(ClientError) {
            do throws(DocumentError) {
                return try JSONDocument.value(
                    of: content, limits: DocumentLimits(bytes: max(1, content.count)))
            } catch {
                throw ClientError(
                    .serialization, "the content is not JSON: \(error)", of: request,
                    underlying: error)
            }
        }
    }
}

extension StreamedResponse {
    /// Collects the content as ``DataResponse/text``.
    ///
    /// - Parameter maximum: The maximum size in bytes. More is an error.
    public func text(atMost maximum: Int = 256 << 20) async throws(ClientError) -> String {
        ContentText.text(of: try await content.collect(atMost: maximum), head.headerFields)
    }

    /// Collects the content as ``DataResponse/json``.
    ///
    /// - Parameter maximum: The maximum size in bytes. More is an error.
    public func json(atMost maximum: Int = 256 << 20) async throws(ClientError) -> DocumentValue {
        try await collected(atMost: maximum).json
    }

    /// Collects the content.
    ///
    /// - Parameter maximum: The maximum size in bytes. More is an error.
    public func collected(
        atMost maximum: Int = 256 << 20
    ) async throws(ClientError) -> DataResponse {
        let bytes = try await content.collect(atMost: maximum)
        return DataResponse(
            head: head, content: bytes, request: request, metrics: metrics, trailers: trailers)
    }
}

/// Content as text.
enum ContentText {
    static func text(of bytes: [UInt8], _ fields: HTTPFields) -> String {
        // Two different types name no encoding.
        let type = try? fields.single(.contentType)
        let charset = ContentType(ofResponse: type ?? nil)?.charset
        if let charset, ["iso-8859-1", "latin1", "us-ascii"].contains(charset) {
            return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
        let isMarked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
        return String(decoding: bytes.dropFirst(isMarked ? 3 : 0), as: UTF8.self)
    }
}
