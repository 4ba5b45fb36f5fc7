public import HTTPTypes
import Locking
public import Serialization

/// A place where one image at a time is shown: the rules of AFNetworking's image views, without the
/// view.
///
/// - A load cancels the one before it; one of the URL that is being loaded is ignored.
/// - An image in the downloader's cache is shown at once; else the placeholder until the image is
///   there, and again where there is none.
/// - What an earlier load brings late is not shown.
public final class ImageSlot: Sendable {
    /// What is to be shown.
    public enum Content: Sendable, Equatable {
        /// Nothing was asked for.
        case empty
        /// The place's own picture: the image is being loaded, or there is none.
        case placeholder
        /// The image that was asked for.
        case image(DecodedImage)
    }

    private struct State {
        var content = Content.empty
        var error: ClientError?
        /// Of the last load: an earlier one counts no more.
        var generation: UInt64 = 0
        /// What is being loaded.
        var url: String?
        var receipt: ImageDownloadReceipt?
    }

    private let downloader: ImageDownloader
    private let state = Locked(State())
    private let feed: ChangeFeed<Content>

    /// - Parameters:
    ///   - downloader: Where the images come from.
    ///   - callbacks: Where ``onChange`` is called.
    public init(downloader: ImageDownloader, callbacks: CallbackExecution = .serial) {
        self.downloader = downloader
        feed = ChangeFeed(.empty, callbacks)
    }

    deinit {
        if let receipt = state.withLock({ $0.receipt }) { downloader.cancel(receipt) }
        feed.finish()
    }

    /// What is to be shown now.
    public var content: Content { state.withLock { $0.content } }

    /// Why the last load brought no image; nil: it did, or has not ended, or was cancelled.
    public var error: ClientError? { state.withLock { $0.error } }

    /// Whether an image is being loaded.
    public var isLoading: Bool { state.withLock { $0.url != nil } }

    /// Called with what is to be shown, each time it changes.
    public var onChange: (@Sendable (Content) -> Void)? {
        get { feed.handler }
        set { feed.handler = newValue }
    }

    /// What is to be shown: what was told last, then each change. The slot is kept while somebody
    /// follows.
    public func updates() -> AsyncStream<Content> { feed.updates(of: self) }

    /// Loads an image in place of what there is.
    ///
    /// - Parameters:
    ///   - request: The image's; nil: none, and the placeholder is shown.
    ///   - options: As for ``ImageDownloader/download(_:options:completion:)``.
    /// - Returns: false where that URL is being loaded already.
    @discardableResult
    public func load(
        _ request: HTTPRequest?, options: RequestOptions = RequestOptions()
    ) -> Bool {
        let cached = request.flatMap { downloader.cachedImage(for: $0, options: options) }
        let url = request?.url
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
            // It may have ended by now.
            if state.url != nil { state.receipt = receipt }
            return true
        }
        // Another load, or a cancellation, has found no receipt.
        if !isCurrent { downloader.cancel(receipt) }
        return true
    }

    /// Ends loading; what is shown stays.
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
        // Under the lock, so that changes are told in their order.
        feed.tell(content)
    }
}
