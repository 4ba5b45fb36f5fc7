public import HTTPTypes
import Locking
public import PinfoldClient

/// A slot that displays one image at a time: the behaviour of AFNetworking's image views without a
/// view.
///
/// - Loading an image cancels the previous load. Loading the URL that is already being loaded has
///   no effect.
/// - An image in the downloader's cache is displayed at once. Otherwise the placeholder is
///   displayed until the image has been loaded, or permanently if loading fails.
/// - A late result of an earlier load is ignored.
public final class ImageSlot: Sendable {
    /// The content to display.
    public enum Content: Sendable, Equatable {
        /// Nothing has been loaded.
        case empty
        /// The placeholder, because the image is being loaded or could not be loaded.
        case placeholder
        /// The loaded image.
        case image(DecodedImage)
    }

    private struct State {
        var content = Content.empty
        var error: ClientError?
        /// The number of the last load. Results of earlier ones are ignored.
        var generation: UInt64 = 0
        /// The URL that is being loaded.
        var url: String?
        var receipt: ImageDownloadReceipt?
    }

    private let downloader: ImageDownloader
    private let state = Locked(State())
    private let feed: ChangeFeed<Content>

    /// Creates an empty slot.
    ///
    /// - Parameters:
    ///   - downloader: The downloader that loads the images.
    ///   - callbacks: Where ``onChange`` is called.
    public init(downloader: ImageDownloader, callbacks: CallbackExecution = .serial) {
        self.downloader = downloader
        feed = ChangeFeed(.empty, callbacks)
    }

    deinit {
        if let receipt = state.withLock({ $0.receipt }) { downloader.cancel(receipt) }
        feed.finish()
    }

    /// The content to display now.
    public var content: Content { state.withLock { $0.content } }

    /// Why the last load failed, or `nil` if it succeeded, is in progress, or was cancelled.
    public var error: ClientError? { state.withLock { $0.error } }

    /// Whether an image is being loaded.
    public var isLoading: Bool { state.withLock { $0.url != nil } }

    /// Called with the content to display each time it changes.
    public var onChange: (@Sendable (Content) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// Returns the content to display: the current one, then each change. The sequence keeps the
    /// slot alive.
    public func updates() -> AsyncStream<Content> { feed.updates(of: self) }

    /// Loads an image, replacing the current content.
    ///
    /// - Parameters:
    ///   - request: The request for the image, or `nil` to display the placeholder.
    ///   - options: The options; see ``ImageDownloader/download(_:options:completion:)``.
    /// - Returns: `false` if that URL is already being loaded.
    @discardableResult
    public func load(
        _ request: HTTPRequest?, options: RequestOptions = RequestOptions()
    ) -> Bool {
        let cached = request.flatMap { downloader.cachedImage(for: $0, options: options) }
        let url: String? = request?.url
        let started = state.withLock { state -> (UInt64, ImageDownloadReceipt?)? in
            if let url, state.url == url { return nil }
            let previous = state.receipt.take()
            state.generation += 1
            state.url = cached == nil ? url : nil
            state.error = nil
            show(cached.map { .image($0) } ?? .placeholder, &state)
            return (state.generation, previous)
        }
        guard let (generation, previous) = started else { return false }
        if let previous { downloader.cancel(previous) }
        guard cached == nil, let request else { return true }
        let receipt = downloader.download(request, options: options) { [weak self] result in
            self?.loaded(result, generation)
        }
        guard let receipt else { return true }
        let isCurrent = state.withLock { state in
            guard state.generation == generation else { return false }
            // The load may already have ended.
            if state.url != nil { state.receipt = receipt }
            return true
        }
        // Another load, or a cancellation, came before the receipt was set.
        if !isCurrent { downloader.cancel(receipt) }
        return true
    }

    /// Cancels loading. The displayed content does not change.
    public func cancel() {
        let receipt = state.withLock { state in
            state.generation += 1
            state.url = nil
            return state.receipt.take()
        }
        if let receipt { downloader.cancel(receipt) }
    }

    private func loaded(_ result: Result<ImageDownload, ClientError>, _ generation: UInt64) {
        state.withLock { state in
            guard state.generation == generation else { return }
            (state.url, state.receipt) = (nil, nil)
            switch result {
            case .success(let download): show(.image(download.image), &state)
            case .failure(let error):
                state.error = error
                show(.placeholder, &state)
            }
        }
    }

    private func show(_ content: Content, _ state: inout State) {
        guard state.content != content else { return }
        state.content = content
        // Within the lock, so that changes are published in order.
        feed.publish(content)
    }
}
