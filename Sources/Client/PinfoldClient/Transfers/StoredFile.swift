import CLinux

/// Reads stored content from a file in memory.
enum StoredFile {
    /// Returns up to `count` bytes, or none if there are none or they cannot be read.
    static func read(_ file: Int32, at offset: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { memory, read in
            read = max(0, pread(file, memory.baseAddress, count, off_t(offset)))
        }
    }
}
