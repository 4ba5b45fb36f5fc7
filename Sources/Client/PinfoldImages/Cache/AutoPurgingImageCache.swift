import HTTPCore

/// An in-memory image cache with a capacity in bytes. When the capacity is exceeded, the least
/// recently used images are purged until memory usage is at or below the preferred usage.
///
/// It is a value without a lock; code that shares it has to synchronize access.
public struct AutoPurgingImageCache<Image: Sendable>: Sendable {
    /// Identifies an image: its URL, and what was made of it.
    public struct Key: Hashable, Sendable {
        /// The URL as it appears in the request.
        public var url: String
        /// The filter that was applied to the image, such as `circle` or `120x80`, or `nil` if
        /// there was none.
        public var identifier: String?

        /// Creates the key of an image, unfiltered or filtered.
        public init(url: String, identifier: String? = nil) {
            (self.url, self.identifier) = (url, identifier)
        }
    }

    /// An image, and its neighbours in order of access.
    private struct Slot: AgeLinked, Sendable {
        var key: Key
        var image: Image
        var bytes: Int
        var newer: Int32 = -1
        var older: Int32 = -1
    }

    /// The capacity in bytes.
    public let memoryCapacity: Int
    /// The memory usage in bytes down to which a purge goes; at most ``memoryCapacity``.
    public let preferredMemoryUsageAfterPurge: Int
    /// The size of all images in bytes.
    public private(set) var memoryUsage = 0

    private let size: @Sendable (Image) -> Int
    private var indices: [Key: Int] = [:]
    private var slots: ContiguousArray<Slot?> = []
    private var free: [Int] = []
    private var ages = AgeList()

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - memoryCapacity: The capacity in bytes.
    ///   - preferredMemoryUsageAfterPurge: The memory usage in bytes down to which a purge goes.
    ///   - size: Returns the bytes that an image takes up once decoded, always the same for an
    ///     image.
    public init(
        memoryCapacity: Int = 100 << 20, preferredMemoryUsageAfterPurge: Int = 60 << 20,
        size: @escaping @Sendable (Image) -> Int
    ) {
        precondition(
            0 <= preferredMemoryUsageAfterPurge
                && preferredMemoryUsageAfterPurge <= memoryCapacity,
            "the preferred usage must not exceed the capacity")
        self.memoryCapacity = memoryCapacity
        self.preferredMemoryUsageAfterPurge = preferredMemoryUsageAfterPurge
        self.size = size
    }

    /// The number of images.
    public var count: Int { indices.count }

    /// Returns the image for a key and marks it as used.
    public mutating func image(for key: Key) -> Image? {
        guard let index = indices[key] else { return nil }
        ages.renew(Int32(index), in: &slots)
        return slots[index]?.image
    }

    /// Whether there is an image for a key. Does not mark it as used.
    public func contains(_ key: Key) -> Bool { indices[key] != nil }

    /// Adds an image, replacing any image with the same key. An image that is larger than the
    /// capacity is not stored.
    ///
    /// - Returns: The keys of the images that were purged, the least recently used first.
    @discardableResult
    public mutating func add(_ image: Image, for key: Key) -> [Key] {
        remove(key)
        let bytes = max(size(image), 0)
        guard bytes <= memoryCapacity else { return [] }
        let index = free.popLast() ?? slots.count
        if index == slots.count { slots.append(nil) }
        slots[index] = Slot(key: key, image: image, bytes: bytes)
        indices[key] = index
        memoryUsage += bytes
        ages.link(Int32(index), in: &slots)
        return memoryUsage > memoryCapacity ? purge() : []
    }

    /// Removes an image. Returns `false` if there was none.
    @discardableResult
    public mutating func remove(_ key: Key) -> Bool {
        guard let index = indices.removeValue(forKey: key) else { return false }
        ages.unlink(Int32(index), in: &slots)
        memoryUsage -= slots[index]?.bytes ?? 0
        slots[index] = nil
        free.append(index)
        return true
    }

    /// Removes all images, for example under memory pressure.
    public mutating func removeAll() {
        (indices, slots, free) = ([:], [], [])
        (ages, memoryUsage) = (AgeList(), 0)
    }

    private mutating func purge() -> [Key] {
        var gone: [Key] = []
        while memoryUsage > preferredMemoryUsageAfterPurge, ages.oldest >= 0,
            let key = slots[Int(ages.oldest)]?.key
        {
            remove(key)
            gone.append(key)
        }
        return gone
    }
}
