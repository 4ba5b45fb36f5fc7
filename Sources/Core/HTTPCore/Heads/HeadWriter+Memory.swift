extension HeadWriter {
    /// Appends what `write` writes to the memory after what has been written, and counts.
    /// - Parameter most: how many bytes it may touch. If they do not fit, it is not called, and
    ///   ``overflowed`` is set.
    @inlinable @inline(__always)
    public mutating func append(
        atMost most: Int, _ write: (UnsafeMutableRawPointer) -> Int
    ) {
        guard !overflowed, most <= capacity &- count, let base else {
            lacksRoom = true
            return
        }
        let count = write(base + written)
        assert(count >= 0 && count <= most)
        written &+= count
    }
}
