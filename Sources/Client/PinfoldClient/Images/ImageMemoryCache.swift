public import ImageCache
import Locking
public import Serialization

/// Decoded images in memory, shared by tasks: what AFNetworking's `AFAutoPurgingImageCache` is.
///
/// Once they are more than the capacity, those that were not accessed for longest go until what
/// remains is no more than the preferred usage. When the kernel says that memory runs short, all
/// of them go; whether it says so is in ``memoryPressure``.
public final class ImageMemoryCache: Sendable {
    /// An image's URL, and the filter that it went through.
    public typealias Key = AutoPurgingImageCache<DecodedImage>.Key

    private struct Watch {
        var state: MemoryPressureState
        var runtime: ClientRuntime?
        var number: UInt64 = 0
    }

    private let images: Locked<AutoPurgingImageCache<DecodedImage>>
    private let watch = Locked(Watch(state: .unavailable([])))

    /// - Parameters:
    ///   - memoryCapacity: In bytes, of pixels and of content.
    ///   - preferredMemoryUsageAfterPurge: In bytes; no more than the capacity.
    ///   - pressure: Where memory pressure is heard of: the first that this process may use. None
    ///     of them: images go for want of room only.
    ///   - runtime: The thread that hears of it; nil: ``ClientRuntime/shared()``.
    public convenience init(
        memoryCapacity: Int = 100 << 20, preferredMemoryUsageAfterPurge: Int = 60 << 20,
        pressure: [MemoryPressureSource.Origin] = MemoryPressureSource.Origin.ofThisProcess,
        runtime: ClientRuntime? = nil
    ) {
        self.init(memoryCapacity, preferredMemoryUsageAfterPurge)
        var refusals: [MemoryPressureState.Refusal] = []
        for origin in pressure {
            do throws(MemoryPressureError) {
                hear(of: try PressureSource(origin), on: runtime)
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
        watch.runtime?.post(.work { [number = watch.number] in $0.removeWatch(number) })
    }

    /// What an image takes up: its pixels, and the content that it was read from.
    @Sendable private static func bytes(of image: DecodedImage) -> Int {
        (image.pixels?.rgba.count ?? 0) + (image.pixels?.profile.count ?? 0) + image.content.count
    }

    // MARK: Images

    /// In bytes.
    public var memoryCapacity: Int { images.withLock { $0.memoryCapacity } }

    /// In bytes.
    public var preferredMemoryUsageAfterPurge: Int {
        images.withLock { $0.preferredMemoryUsageAfterPurge }
    }

    /// Bytes of all images.
    public var memoryUsage: Int { images.withLock { $0.memoryUsage } }

    /// How many images there are.
    public var count: Int { images.withLock { $0.count } }

    /// The image of a key; counts as an access.
    public func image(for key: Key) -> DecodedImage? { images.withLock { $0.image(for: key) } }

    /// Adds an image, in place of the one that has its key. One that is larger than the capacity
    /// alone is not kept.
    public func add(_ image: DecodedImage, for key: Key) {
        images.withLock { _ = $0.add(image, for: key) }
    }

    /// Removes an image. False: there was none.
    @discardableResult
    public func remove(_ key: Key) -> Bool { images.withLock { $0.remove(key) } }

    /// Removes all images.
    public func removeAll() { images.withLock { $0.removeAll() } }

    // MARK: Memory pressure

    /// Whether the kernel says when memory runs short.
    public var memoryPressure: MemoryPressureState { watch.withLock { $0.state } }

    /// Removes all images whenever the source tells of pressure.
    func hear(of source: PressureSource, on given: ClientRuntime?) {
        guard let runtime = try? given ?? ClientRuntime.shared() else {
            return watch.withLock { $0.state = .ended }
        }
        let number = runtime.nextNumber()
        watch.withLock {
            $0 = Watch(state: .watched(source.origin), runtime: runtime, number: number)
        }
        let tie = Tie { [weak self] in self?.watch.withLock { $0.state = .ended } }
        let isShort: @Sendable () -> Void = { [weak self, tie] in
            withExtendedLifetime(tie) { self?.removeAll() }
        }
        runtime.post(
            .work { loop in
                let watch = PressureWatch(source, number: number, on: loop, isShort: isShort)
                try? watch.begin()
            })
    }
}
