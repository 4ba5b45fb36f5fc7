public import HTTPTypes
import Locking
public import PinfoldClient

/// Downloads and decodes images, each only once even if it is requested several times. This
/// corresponds to AFNetworking's `AFImageDownloader`.
///
/// - Identical requests (same URL, fields and cache policy) are merged while one is in progress.
///   Each caller has its own receipt and cancels only its own part; the transfer ends when the last
///   one is cancelled.
/// - The number of active downloads is limited. Others wait in first-in-first-out or
///   last-in-first-out order, with higher priorities first. A caller with a higher priority raises
///   the priority of the download that it joins.
/// - A cached image is returned without a response and without a receipt, unless the request's
///   policy ignores caches.
/// - Images are decoded on a thread that may block, not on the loop.
public final class ImageDownloader: Sendable {
    /// The session that sends the requests.
    public let session: SessionManager
    /// The cache of decoded images, or `nil` for none.
    public let cache: ImageMemoryCache?
    /// Validates responses and decodes images.
    public let serializer: ImageResponseSerializer
    private let state: Locked<ImageDownloads>

    /// Creates a downloader.
    ///
    /// - Parameters:
    ///   - session: The session that sends the requests. Completion handlers run where its
    ///     configuration says. ``SessionConfiguration/images(cacheDirectory:)`` has AFNetworking's
    ///     cache capacities.
    ///   - cache: The cache of decoded images, or `nil` for none.
    ///   - serializer: Validates responses and decodes images. Its limits apply to content and
    ///     pixels.
    ///   - maximumActiveDownloads: The maximum number of simultaneous downloads, at least 1.
    ///   - order: The order in which waiting downloads of the same priority are started.
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

    /// The number of active and of waiting downloads.
    public var downloads: (active: Int, waiting: Int) {
        state.withLock { ($0.activeCount, $0.waitingCount) }
    }

    // MARK: Requests

    /// Requests an image.
    ///
    /// - Parameters:
    ///   - request: The request for the image.
    ///   - options: The options. If the request joins a download in progress, only the cache policy
    ///     and the priority have an effect.
    ///   - completion: The completion handler, called exactly once and where the session's
    ///     ``SessionConfiguration/callbacks`` says. A response rejected by the serializer is
    ///     reported as ``ClientError/Reason/serialization``, and a cancelled receipt as
    ///     ``ClientError/Reason/cancelled``.
    /// - Returns: The receipt for ``cancel(_:)``, or `nil` if no download is in progress: the image
    ///   was in the cache, or the request has no http or https URL.
    @discardableResult
    public func download(
        _ request: HTTPRequest, options: RequestOptions = RequestOptions(),
        completion: @escaping @Sendable (Result<ImageDownload, ClientError>) -> Void
    ) -> ImageDownloadReceipt? {
        ask(for: request, options) { [callbacks = session.callbacks] result in
            callbacks.run { completion(result) }
        }
    }

    /// Returns the image of a request. Cancelling the task cancels its part in the download.
    ///
    /// - Parameters: See ``download(_:options:completion:)``.
    /// - Throws: ``ClientError``, with the same reasons.
    public func image(
        for request: HTTPRequest, options: RequestOptions = RequestOptions()
    ) async throws(ClientError) -> ImageDownload {
        let receipt = Locked<ImageDownloadReceipt?>(nil)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let taken = ask(for: request, options) { continuation.resume(returning: $0) }
                receipt.withLock { $0 = taken }
                // A cancellation before the receipt was set had nothing to cancel.
                if Task.isCancelled, let taken { cancel(taken) }
            }
        } onCancel: {
            if let receipt = receipt.withLock({ $0 }) { cancel(receipt) }
        }
        return try result.get()
    }

    /// Returns the cached image for a request, or `nil` if there is none or the policy ignores
    /// caches.
    public func cachedImage(
        for request: HTTPRequest, options: RequestOptions = RequestOptions()
    ) -> DecodedImage? {
        guard options.cachePolicy != .reloadIgnoringCache else { return nil }
        return cache?.image(for: .init(url: request.url))
    }

    /// Cancels a caller's part in a download. Its completion handler gets
    /// ``ClientError/Reason/cancelled``. Has no effect if the download has ended.
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

    // MARK: Downloads

    private func begin(_ ticket: UInt64, _ state: inout ImageDownloads) {
        guard let (request, options) = state.request(of: ticket) else { return }
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
            // If the pool refuses the work, it is released.
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
    /// A configuration for an ``ImageDownloader``: a cache of 20 MB in memory, and of 150 MB on
    /// disk if a directory is given.
    public static func images(cacheDirectory: String? = nil) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.cacheMemoryBytes = 20 << 20
        configuration.cacheDirectory = cacheDirectory
        configuration.cacheDiskBytes = cacheDirectory == nil ? 0 : 150 << 20
        return configuration
    }
}
