import ContentCoding
import HTTPTypes
import Locking

/// How the content of a request is compressed (``RequestOptions/compression``).
///
/// Most servers take gzip. They cannot say beforehand which codings they accept; one that does not
/// accept a coding answers 415 (RFC 9110 section 15.5.16), and may name others in Accept-Encoding.
public enum RequestCompression: String, Sendable, Hashable, CaseIterable {
    /// RFC 1952.
    case gzip
    /// The zlib format (RFC 1950).
    case deflate
    /// RFC 7932.
    case brotli = "br"
    /// RFC 8878.
    case zstd

    var coding: ContentCoding {
        switch self {
        case .gzip: .gzip
        case .deflate: .deflate
        case .brotli: .brotli
        case .zstd: .zstd
        }
    }
}

extension RequestCompression {
    /// Returns a request and its content, compressed, unless there is none, or the request says
    /// that it has a coding already.
    func applied(
        to request: HTTPRequest, _ content: RequestContent?
    ) throws(ClientError) -> (HTTPRequest, RequestContent?) {
        guard let content, content.length != 0, !request.headerFields.contains(.contentEncoding)
        else { return (request, content) }
        var request = request
        request.headerFields[.contentEncoding] = rawValue
        do throws(ContentCodingError) {
            return (request, try content.compressed(by: self))
        } catch {
            throw ClientError(
                .outOfResources, "the content cannot be compressed: \(error.detail)",
                of: request, underlying: error)
        }
    }
}

/// Compresses content while it is sent.
final class CompressingFeed: ContentFeed {
    private let feed: any ContentFeed
    private let encoder: Locked<StreamEncoder>
    private let hasEnded = Locked(false)

    init(_ feed: any ContentFeed, _ compression: RequestCompression) {
        self.feed = feed
        encoder = Locked(StreamEncoder(compression.coding))
    }

    var pauseMilliseconds: Int64 { feed.pauseMilliseconds }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
        // The end of the content has been read: its last bytes came before.
        if hasEnded.withLock({ $0 }) { return deliver(.end) }
        feed.next { [self] part in
            let encoded = encode(part)
            // Most of it may still be in the encoder. Then it has its pause nevertheless: a
            // throttle is about what is read.
            if case .bytes(let bytes) = encoded, bytes.isEmpty, pauseMilliseconds == 0 {
                return next(deliver)
            }
            deliver(encoded)
        }
    }

    private func encode(_ part: ContentPart) -> ContentPart {
        do throws(ContentCodingError) {
            switch part {
            case .bytes(let bytes):
                return .bytes(
                    try encoder.withLock { (encoder) throws(ContentCodingError) in
                        try encoder.encode(bytes)
                    })
            case .end:
                hasEnded.withLock { $0 = true }
                return .bytes(
                    try encoder.withLock { (encoder) throws(ContentCodingError) in
                        try encoder.finish()
                    })
            case .failed: return part
            }
        } catch {
            return .failed(error)
        }
    }

    func close() { feed.close() }
}
