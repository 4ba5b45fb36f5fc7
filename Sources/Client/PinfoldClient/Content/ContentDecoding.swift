import ContentCoding
import HTTPTypes
import Locking

/// Which content codings are asked for, and which are undone.
enum ContentDecoding {
    /// What a request says that does not say it itself (RFC 9110 section 12.5.3). Ranges are of the
    /// content as it is coded (section 14), so a request for one asks for it as it is.
    static func accept(in fields: HTTPFields) -> HTTPField {
        fields.contains(.range) ? identity : every
    }

    // Made once: each value is looked through for what may not stand in it.
    private static let identity = HTTPField(name: .acceptEncoding, value: "identity")
    private static let every = HTTPField(name: .acceptEncoding, value: "gzip, deflate, br")

    /// The codings of a response that are undone; nil: it is handed on as it is. That is so where
    /// there is no content, where it is a part of a whole, which cannot be decoded by itself, and
    /// where a coding is not known.
    static func codings(of head: HTTPResponse, to request: HTTPRequest) -> [ContentCoding]? {
        guard head.headerFields.contains(.contentEncoding), request.method != .head,
            head.status.kind != .informational, ![204, 206, 304].contains(head.status.code)
        else { return nil }
        let values = head.headerFields[values: .contentEncoding].map { Array($0.utf8) }
        guard let codings = ContentCoding.parse(values), !codings.isEmpty else { return nil }
        return codings
    }

    /// The head of the response as it is handed on: what describes the coded content is left out.
    static func decoded(_ head: HTTPResponse) -> HTTPResponse {
        var head = head
        head.headerFields[.contentEncoding] = nil
        head.headerFields[.contentLength] = nil
        return head
    }
}

/// Undoes the codings of one response, for its one reader.
final class ContentDecoder: Sendable {
    private let decoder: Locked<StreamDecoder>

    init(_ codings: [ContentCoding]) throws(ContentCodingError) {
        decoder = Locked(try StreamDecoder(codings))
    }

    func feed(_ part: [UInt8]) { decoder.withLock { $0.feed(part) } }

    /// The next block; nil: more of the content is needed for it.
    func next() throws(ClientError) -> [UInt8]? {
        do throws(ContentCodingError) {
            return try decoder.withLock { (decoder) throws(ContentCodingError) in
                try decoder.next()
            }
        } catch {
            throw ClientError(error)
        }
    }

    /// There is no more content.
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
