import Locking
public import PinfoldClient

/// An in-memory cache of decoded images, shared by tasks. This corresponds to AFNetworking's
/// `AFAutoPurgingImageCache`.
///
/// When the capacity is exceeded, the least recently used images are purged until memory usage is
/// at or below the preferred usage. Under memory pressure, all images are purged;
/// ``memoryPressure`` says whether the kernel reports it.
public final class ImageMemoryCache: Sendable {
    /// Identifies an image by its URL and the filter that was applied to it.
    public typealias Key = AutoPurgingImageCache<DecodedImage>.Key

    private struct Watch {
        var state: MemoryPressureState
        var runtime: ClientRuntime?
        var number: UInt64 = 0
    }

    private let images: Locked<AutoPurgingImageCache<DecodedImage>>
    private let watch = Locked(Watch(state: .unavailable([])))

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - memoryCapacity: The capacity in bytes of pixels and of content.
    ///   - preferredMemoryUsageAfterPurge: The memory usage in bytes after a purge; at most the
    ///     capacity.
    ///   - pressure: The sources of memory pressure events. The first one that this process may use
    ///     is used. If it is empty, images are purged only if the capacity is exceeded.
    ///   - runtime: The runtime whose thread watches the source, or `nil` for
    ///     ``ClientRuntime/shared()``.
    public convenience init(
        memoryCapacity: Int = 100 << 20, preferredMemoryUsageAfterPurge: Int = 60 << 20,
        pressure: [MemoryPressureSource.Origin] = MemoryPressureSource.Origin.ofThisProcess,
        runtime: ClientRuntime? = nil
    ) {
        self.init(memoryCapacity, preferredMemoryUsageAfterPurge)
        var refusals: [MemoryPressureState.UnavailableSource] = []
        for origin in pressure {
            do throws(MemoryPressureError) {
                observe(try PressureSource(origin), on: runtime)
                return
            } catch {
                refusals.append(.init(origin: origin, code: error.code))
            }
        }
        watch.withLock { [refusals] in $0.state = .unavailable(refusals) }
    }

    init(_ memoryCapacity: Int, _ preferredMemoryUsageAfterPurge: Int) {
        images = Locked(
            AutoPurgingImageCache(
                memoryCapacity: memoryCapacity,
                preferredMemoryUsageAfterPurge: preferredMemoryUsageAfterPurge,
                size: Self.bytes(of:)))
    }

    deinit {
        let watch = watch.withLock { $0 }
        watch.runtime?.perform { [number = watch.number] in $0.removeWatch(number) }
    }

    /// The memory that an image takes up: its pixels, and the content that it was read from.
    @Sendable private static func bytes(of image: DecodedImage) -> Int {
        (image.pixels?.rgba.count ?? 0) + (image.pixels?.profile.count ?? 0) + image.content.count
    }

    // MARK: Images

    /// The capacity in bytes.
    public var memoryCapacity: Int { images.withLock { $0.memoryCapacity } }

    /// The memory usage in bytes down to which a purge goes.
    public var preferredMemoryUsageAfterPurge: Int {
        images.withLock { $0.preferredMemoryUsageAfterPurge }
    }

    /// The size of all images in bytes.
    public var memoryUsage: Int { images.withLock { $0.memoryUsage } }

    /// The number of images.
    public var count: Int { images.withLock { $0.count } }

    /// Returns the image for a key and marks it as used.
    public func image(for key: Key) -> DecodedImage? { images.withLock { $0.image(for: key) } }

    /// Adds an image, replacing any image with the same key. An image that is larger than the
    /// capacity is not stored.
    public func add(_ image: DecodedImage, for key: Key) {
        images.withLock { _ = $0.add(image, for: key) }
    }

    /// Removes an image. Returns `false` if there was none.
    @discardableResult
    public func remove(_ key: Key) -> Bool { images.withLock { $0.remove(key) } }

    /// Removes all images.
    public func removeAll() { images.withLock { $0.removeAll() } }

    // MARK: Memory pressure

    /// Whether memory pressure is monitored.
    public var memoryPressure: MemoryPressureState { watch.withLock { $0.state } }

    /// Removes all images whenever the source reports memory pressure.
    func observe(_ source: PressureSource, on given: ClientRuntime?) {
        guard let runtime = try? given ?? ClientRuntime.shared() else {
            return watch.withLock { $0.state = .ended }
        }
        let number = runtime.nextNumber()
        watch.withLock {
            $0 = Watch(state: .watched(source.origin), runtime: runtime, number: number)
        }
        let releaseAction = ReleaseAction { [weak self] in
            self?.watch.withLock { $0.state = .ended }
        }
        let isShort: @Sendable () -> Void = { [weak self, releaseAction] in
            withExtendedLifetime(releaseAction) { self?.removeAll() }
        }
        runtime.perform { loop in
            let watch = PressureWatch(source, number: number, on: loop, isShort: isShort)
            try? watch.begin()
        }
    }
}
