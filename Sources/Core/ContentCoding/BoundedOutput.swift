/// A decoder's output, up to a maximum size.
struct BoundedOutput {
    private(set) var bytes: [UInt8] = []
    /// The maximum number of bytes.
    let maximum: Int
    private let yieldPoint: (() -> Void)?

    /// Reserves `expected` bytes at once, up to the maximum.
    ///
    /// - Parameter yieldPoint: called after each block.
    init(maximum: Int, expected: Int, yieldPoint: (() -> Void)? = nil) {
        self.maximum = maximum
        self.yieldPoint = yieldPoint
        bytes.reserveCapacity(min(max(expected, 0), maximum))
    }

    /// Appends a block.
    mutating func append(_ block: UnsafeRawBufferPointer) throws(ContentCodingError) {
        guard block.count <= maximum - bytes.count else { throw .tooLarge(maximum: maximum) }
        let needed = bytes.count + block.count
        if needed > bytes.capacity {
            // Never more than the maximum, which doubling alone could exceed.
            bytes.reserveCapacity(min(maximum, max(needed, 2 * bytes.capacity)))
        }
        bytes.append(contentsOf: block)
        yieldPoint?()
    }
}

/// Memory for a decoder's output until it is known whether the output is within the limit.
struct DecodingBlock: ~Copyable {
    /// The size in bytes.
    static let size = 1 << 16

    let base = UnsafeMutablePointer<UInt8>.allocate(capacity: DecodingBlock.size)

    deinit { base.deallocate() }

    /// The first bytes.
    func prefix(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base, count: count)
    }
}
