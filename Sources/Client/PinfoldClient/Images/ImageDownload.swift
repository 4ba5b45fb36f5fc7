public import HTTPTypes
import Locking
public import Serialization

/// A downloaded image.
public struct ImageDownload: Sendable {
    /// The image, decoded if the downloader's serializer decodes it.
    public let image: DecodedImage
    /// The request.
    public let request: HTTPRequest
    /// The head of the response, or `nil` if the image came from the cache and no request was sent.
    public let response: HTTPResponse?
}

/// Identifies a caller's part in a download, in order to cancel it.
public struct ImageDownloadReceipt: Sendable, Hashable {
    /// The URL of the request.
    public let url: String
    let number: UInt64
}

/// Work on another thread that a task waits for: its result, or `nil` if it is never done.
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
