import ContentCoding
import HTTPTypes
import Locking

/// Which content codings are requested, and which are decoded.
enum ContentDecoding {
    /// The Accept-Encoding field for a request that has none (RFC 9110 section 12.5.3). Ranges
    /// refer to the encoded content (section 14), so a range request asks for no coding.
    static func accept(in fields: HTTPFields) -> HTTPField {
        fields.contains(.range) ? identity : every
    }

    // Created once, because each value is checked for invalid characters.
    private static let identity = HTTPField(name: .acceptEncoding, value: "identity")
    private static let every = HTTPField(name: .acceptEncoding, value: "gzip, deflate, br, zstd")

    /// Returns the codings of a response to be decoded, or `nil` if it is passed on unchanged:
    /// because it has no content, because it is partial and so cannot be decoded by itself, or
    /// because a coding is unknown.
    static func codings(of head: HTTPResponse, to request: HTTPRequest) -> [ContentCoding]? {
        guard head.headerFields.contains(.contentEncoding), request.method != .head,
            head.status.kind != .informational, ![204, 206, 304].contains(head.status.code)
        else { return nil }
        let values = head.headerFields[values: .contentEncoding].map { Array($0.utf8) }
        guard let codings = ContentCoding.parse(values), !codings.isEmpty else { return nil }
        return codings
    }

    /// Returns the response's head as it is passed on, without the fields that describe the encoded
    /// content.
    static func decoded(_ head: HTTPResponse) -> HTTPResponse {
        var head = head
        head.headerFields[.contentEncoding] = nil
        head.headerFields[.contentLength] = nil
        return head
    }
}

/// Decodes the content of one response for a single reader.
final class ContentDecoder: Sendable {
    private let decoder: Locked<StreamDecoder>

    init(_ codings: [ContentCoding]) throws(ContentCodingError) {
        decoder = Locked(try StreamDecoder(codings))
    }

    func feed(_ part: [UInt8]) { decoder.withLock { $0.feed(part) } }

    /// Returns the next block, or `nil` if more encoded content is needed.
    func next() throws(ClientError) -> [UInt8]? {
        do throws(ContentCodingError) {
            return try decoder.withLock { (decoder) throws(ContentCodingError) in
                try decoder.next()
            }
        } catch {
            throw ClientError(error)
        }
    }

    /// Marks the end of the encoded content.
    func finish() throws(ClientError) {
        do throws(ContentCodingError) {
            try decoder.withLock { (decoder) throws(ContentCodingError) in try decoder.finish() }
        } catch {
            throw ClientError(error)
        }
    }
}

extension ClientError {
    init(_ error: ContentCodingError) {
        let reason: Reason =
            switch error {
            case .outOfMemory: .outOfResources
            default: .contentUndecodable
            }
        self.init(reason, "the response cannot be decoded: \(error.detail)", underlying: error)
    }
}
