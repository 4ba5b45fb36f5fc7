/// Images in memory, up to so many bytes: once they are more, those that were not accessed for
/// longest go until fewer are left than the preferred usage.
///
/// A value without a lock; whoever shares it puts one around it.
public struct AutoPurgingImageCache<Image: Sendable>: Sendable {
    /// Where an image is from, and what was made of it.
    public struct Key: Hashable, Sendable {
        /// As the request has it.
        public var url: String
        /// A filter that the image went through, such as `circle` or `120x80`; nil: none.
        public var identifier: String?

        /// The image of a URL, as it came or after a filter.
        public init(url: String, identifier: String? = nil) {
            (self.url, self.identifier) = (url, identifier)
        }
    }

    /// An image, and its neighbours by the time of access.
    private struct Slot: Sendable {
        var key: Key
        var image: Image
        var bytes: Int
        var older: Int?
        var newer: Int?
    }

    /// In bytes.
    public let memoryCapacity: Int
    /// In bytes; at most ``memoryCapacity``.
    public let preferredMemoryUsageAfterPurge: Int
    /// Bytes of all images.
    public private(set) var memoryUsage = 0

    private let size: @Sendable (Image) -> Int
    private var places: [Key: Int] = [:]
    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var oldest: Int?
    private var newest: Int?

    /// - Parameters:
    ///   - memoryCapacity: in bytes.
    ///   - preferredMemoryUsageAfterPurge: in bytes.
    ///   - size: the bytes that an image takes up once it is decoded; the same each time.
    public init(
        memoryCapacity: Int = 100 << 20, preferredMemoryUsageAfterPurge: Int = 60 << 20,
        size: @escaping @Sendable (Image) -> Int
    ) {
        precondition(
            0 <= preferredMemoryUsageAfterPurge
                && preferredMemoryUsageAfterPurge <= memoryCapacity,
            "a purge leaves no more than there is room for")
        self.memoryCapacity = memoryCapacity
        self.preferredMemoryUsageAfterPurge = preferredMemoryUsageAfterPurge
        self.size = size
    }

    /// How many images there are.
    public var count: Int { places.count }

    /// The image of a key; counts as an access.
    public mutating func image(for key: Key) -> Image? {
        guard let place = places[key] else { return nil }
        unlink(place)
        link(place)
        return slots[place]?.image
    }

    /// Whether there is an image of a key; counts as none.
    public func contains(_ key: Key) -> Bool { places[key] != nil }

    /// Adds an image, in place of the one that has its key. One that is larger than the capacity
    /// alone is not kept.
    ///
    /// - Returns: the keys of those that went for it, the longest unused first.
    @discardableResult
    public mutating func add(_ image: Image, for key: Key) -> [Key] {
        remove(key)
        let bytes = max(size(image), 0)
        guard bytes <= memoryCapacity else { return [] }
        let place = free.popLast() ?? slots.count
        if place == slots.count { slots.append(nil) }
        slots[place] = Slot(key: key, image: image, bytes: bytes)
        places[key] = place
        memoryUsage += bytes
        link(place)
        return memoryUsage > memoryCapacity ? purge() : []
    }

    /// Removes an image. False: there was none.
    @discardableResult
    public mutating func remove(_ key: Key) -> Bool {
        guard let place = places.removeValue(forKey: key) else { return false }
        unlink(place)
        memoryUsage -= slots[place]?.bytes ?? 0
        slots[place] = nil
        free.append(place)
        return true
    }

    /// Removes all images, as where memory runs short.
    public mutating func removeAll() {
        (places, slots, free) = ([:], [], [])
        (oldest, newest, memoryUsage) = (nil, nil, 0)
    }

    private mutating func purge() -> [Key] {
        var gone: [Key] = []
        while memoryUsage > preferredMemoryUsageAfterPurge, let place = oldest,
            let key = slots[place]?.key
        {
            remove(key)
            gone.append(key)
        }
        return gone
    }

    private mutating func link(_ place: Int) {
        slots[place]?.older = newest
        slots[place]?.newer = nil
        if let newest { slots[newest]?.newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        guard let slot = slots[place] else { return }
        if let older = slot.older { slots[older]?.newer = slot.newer } else { oldest = slot.newer }
        if let newer = slot.newer { slots[newer]?.older = slot.older } else { newest = slot.older }
    }
}
