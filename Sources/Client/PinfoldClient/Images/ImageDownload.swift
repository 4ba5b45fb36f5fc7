public import HTTPTypes
import Locking
public import Serialization

/// An image that was asked for.
public struct ImageDownload: Sendable {
    /// The image, decoded where the downloader's serializer decodes it.
    public let image: DecodedImage
    /// What was asked for.
    public let request: HTTPRequest
    /// The response's head; nil: the image was in the cache, and nothing was sent.
    public let response: HTTPResponse?
}

/// What a caller of a download has in hand to cancel its part in it.
public struct ImageDownloadReceipt: Sendable, Hashable {
    /// The URL of the request.
    public let url: String
    let number: UInt64
}

/// Work on another thread that somebody waits for: its result, or nil where it is never done.
final class AwaitedWork<Value: Sendable>: Sendable {
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) {
        self.continuation = Locked(continuation)
    }

    deinit { end(nil) }

    func end(_ value: Value?) {
        continuation.withLock { $0.take() }?.resume(returning: value)
    }
}
