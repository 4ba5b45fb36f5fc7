/// What comes out of a decoder, up to a maximum.
struct BoundedOutput {
    private(set) var bytes: [UInt8] = []
    /// Bytes at most.
    let maximum: Int
    private let interlude: (() -> Void)?

    /// Room for `expected` bytes is made at once, as far as they are allowed.
    ///
    /// - Parameter interlude: what is done behind each block.
    init(maximum: Int, expected: Int, interlude: (() -> Void)? = nil) {
        self.maximum = maximum
        self.interlude = interlude
        bytes.reserveCapacity(min(max(expected, 0), maximum))
    }

    /// Adds a block.
    mutating func append(_ block: UnsafeRawBufferPointer) throws(ContentCodingError) {
        guard block.count <= maximum - bytes.count else { throw .tooLarge(maximum: maximum) }
        let needed = bytes.count + block.count
        if needed > bytes.capacity {
            // Never beyond the maximum, which doubling by itself would be.
            bytes.reserveCapacity(min(maximum, max(needed, 2 * bytes.capacity)))
        }
        bytes.append(contentsOf: block)
        interlude?()
    }
}

/// Memory that a decoder writes into before it is known whether that is still allowed.
struct DecodingBlock: ~Copyable {
    /// Bytes.
    static let size = 1 << 16

    let base = UnsafeMutablePointer<UInt8>.allocate(capacity: DecodingBlock.size)

    deinit { base.deallocate() }

    /// The first bytes.
    func prefix(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base, count: count)
    }
}
