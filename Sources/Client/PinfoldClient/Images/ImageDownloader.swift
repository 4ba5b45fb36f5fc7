public import HTTPTypes
import ImageCache
import Locking
public import Serialization

/// Fetches and decodes images, each only once however many ask for it: what AFNetworking's
/// `AFImageDownloader` is.
///
/// - Requests that are the same (URL, fields, cache policy) are merged while one is under way.
///   Each caller has a receipt, and cancels only its own part; with the last one the transfer ends.
/// - So many are under way at a time; more wait, first or last in first out, those of a higher
///   priority before all others. A caller of a higher priority lifts the download it joins.
/// - An image in the cache is handed out with no response and no receipt, unless the request's
///   policy ignores caches.
/// - Images are decoded on a thread that may block, not on the loop.
public final class ImageDownloader: Sendable {
    /// What carries out the requests.
    public let session: SessionManager
    /// Decoded images; nil: none are kept.
    public let cache: ImageMemoryCache?
    /// Checks and decodes.
    public let serializer: ImageResponseSerializer
    private let state: Locked<ImageDownloads>

    /// - Parameters:
    ///   - session: What carries out the requests; its completion handlers run where its
    ///     configuration says. ``SessionConfiguration/images(cacheDirectory:)`` has AFNetworking's
    ///     capacities.
    ///   - cache: Decoded images; nil: none are kept.
    ///   - serializer: Checks and decodes. Its limits hold for content and pixels.
    ///   - maximumActiveDownloads: Under way at a time, at least 1.
    ///   - order: Which of those that wait is next, among those of one priority.
    public init(
        session: SessionManager, cache: ImageMemoryCache? = ImageMemoryCache(),
        serializer: ImageResponseSerializer = ImageResponseSerializer(),
        maximumActiveDownloads: Int = 4, order: QueueOrder = .firstInFirstOut
    ) {
        self.session = session
        self.cache = cache
        self.serializer = serializer
        state = Locked(ImageDownloads(maximumActive: maximumActiveDownloads, order: order))
    }

    /// Downloads under way, and those that wait.
    public var downloads: (active: Int, waiting: Int) {
        state.withLock { ($0.activeCount, $0.waitingCount) }
    }

    // MARK: Asking

    /// The image of a request, or why there is none.
    ///
    /// - Parameters:
    ///   - request: An image's URL.
    ///   - options: Where it joins a download that has begun, only the cache policy and the
    ///     priority are looked at.
    ///   - completion: Called exactly once, where the session's
    ///     ``SessionConfiguration/callbacks`` say. A response that the serializer refuses is
    ///     ``ClientError/Reason/serialization``; one whose receipt is cancelled ends with
    ///     ``ClientError/Reason/cancelled``.
    /// - Returns: What ``cancel(_:)`` takes; nil where nothing is under way: the image was in the
    ///   cache, or the request has no http or https URL.
    @discardableResult
    public func download(
        _ request: HTTPRequest, options: RequestOptions = RequestOptions(),
        completion: @escaping @Sendable (Result<ImageDownload, ClientError>) -> Void
    ) -> ImageDownloadReceipt? {
        ask(for: request, options) { [callbacks = session.callbacks] result in
            callbacks.run { completion(result) }
        }
    }

    /// The image of a request. Cancelling the task cancels its part in the download.
    ///
    /// - Parameters: as for ``download(_:options:completion:)``.
    /// - Throws: ``ClientError``, as there.
    public func image(
        for request: HTTPRequest, options: RequestOptions = RequestOptions()
    ) async throws(ClientError) -> ImageDownload {
        let receipt = Locked<ImageDownloadReceipt?>(nil)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let taken = ask(for: request, options) { continuation.resume(returning: $0) }
                receipt.withLock { $0 = taken }
                // One that came before the receipt was there has found nothing to cancel.
                if Task.isCancelled, let taken { cancel(taken) }
            }
        } onCancel: {
            if let receipt = receipt.withLock({ $0 }) { cancel(receipt) }
        }
        return try result.get()
    }

    /// The image that a request would be answered with from the cache; nil: there is none, or the
    /// policy ignores caches.
    public func cachedImage(
        for request: HTTPRequest, options: RequestOptions = RequestOptions()
    ) -> DecodedImage? {
        guard options.cachePolicy != .reloadIgnoringCache else { return nil }
        return cache?.image(for: .init(url: request.url))
    }

    /// Ends a caller's part in a download; its completion gets
    /// ``ClientError/Reason/cancelled``. Nothing happens for one that is over.
    public func cancel(_ receipt: ImageDownloadReceipt) {
        guard let departed = state.withLock({ $0.leave(receipt.number) }) else { return }
        departed.task?.cancel()
        departed.deliver(.failure(ClientError.cancelled().about(departed.request)))
    }

    private func ask(
        for request: HTTPRequest, _ options: RequestOptions,
        deliver: @escaping @Sendable (Result<ImageDownload, ClientError>) -> Void
    ) -> ImageDownloadReceipt? {
        if let image = cachedImage(for: request, options: options) {
            deliver(.success(ImageDownload(image: image, request: request, response: nil)))
            return nil
        }
        guard let origin = request.origin, origin.scheme == "http" || origin.scheme == "https"
        else {
            deliver(
                .failure(
                    ClientError(
                        .invalidRequest, "expected an http or https URL with a valid authority",
                        of: request)))
            return nil
        }
        let number = state.withLock { state in
            let (number, begins) = state.join(request, options, origin, deliver)
            if let begins { begin(begins, &state) }
            return number
        }
        return ImageDownloadReceipt(url: request.url, number: number)
    }

    // MARK: Carrying out

    private func begin(_ ticket: UInt64, _ state: inout ImageDownloads) {
        guard let (request, options) = state.order(ticket) else { return }
        let task = Task { ended(ticket, await fetch(request, options)) }
        state.began(ticket, task)
    }

    private func fetch(
        _ request: HTTPRequest, _ options: RequestOptions
    ) async -> Result<ImageDownload, ClientError> {
        await Result { () async throws(ClientError) in
            var options = options
            options.maximumContentBytes = min(
                options.maximumContentBytes ?? .max, serializer.limits.bytes)
            let response = try await session.data(for: request, options: options)
            let image = try await decode(response)
            cache?.add(image, for: .init(url: request.url))
            return ImageDownload(image: image, request: request, response: response.head)
        }
    }

    private func decode(_ response: DataResponse) async throws(ClientError) -> DecodedImage {
        let decoded = await withCheckedContinuation { continuation in
            let work = AwaitedWork<SerializedResponse<DecodedImage>>(continuation)
            // Where it is refused, the work is let go of.
            _ = session.runtime.readers.run { [serializer] in
                work.end(serializer.serialize(response.head, content: response.content))
            }
        }
        guard let decoded else { throw ClientError.sessionInvalidated().about(response.request) }
        if let error = decoded.error {
            throw ClientError(
                .serialization, "\(error)", of: response.request, underlying: error)
        }
        guard let image = decoded.value else {
            throw ClientError(
                .serialization, "the response has no content, expected an image",
                of: response.request)
        }
        return image
    }

    private func ended(_ ticket: UInt64, _ result: Result<ImageDownload, ClientError>) {
        let callers = state.withLock { state in
            let (callers, next) = state.end(ticket)
            for ticket in next { begin(ticket, &state) }
            return callers
        }
        for deliver in callers { deliver(result) }
    }
}

extension SessionConfiguration {
    /// For an ``ImageDownloader``: a cache of 20 MB in memory, and 150 MB on disk where a directory
    /// is named.
    public static func images(cacheDirectory: String? = nil) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.cacheMemoryBytes = 20 << 20
        configuration.cacheDirectory = cacheDirectory
        configuration.cacheDiskBytes = cacheDirectory == nil ? 0 : 150 << 20
        return configuration
    }
}
