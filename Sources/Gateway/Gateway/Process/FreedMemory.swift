import CLinux
import CacheStore

/// Returns memory to the system that a burst used and that is free now: malloc keeps it for the
/// next burst, which may never come.
///
/// The main thread checks from time to time. Returning memory holds malloc's locks for as long as
/// the kernel needs for the pages (some 20 ms for 500 MiB), so it is done only if much is free and
/// has been for a while.
struct FreedMemory {
    /// How often the main thread checks.
    static let intervalMilliseconds = 10_000

    private var rule = TrimRule()
    private let process = ProcessReader()

    /// Checks, and returns what has been free since the last time.
    ///
    /// - Parameter store: does the same with its own heap.
    mutating func check(_ store: CacheStore?) {
        let stored = store?.releaseIdleMemory() ?? 0
        let heap = mallinfo2()
        let resident = Int(clamping: process.figures().residentBytes)
        let isDue = rule.isDue(
            free: Int(heap.fordblks), resident: resident,
            inUse: Int(heap.uordblks) + Int(heap.hblkhd) + stored)
        if isDue { malloc_trim(0) }
    }
}

/// Decides when free memory is returned to the system.
struct TrimRule {
    /// Less than this is kept.
    static let leastBytes = 32 << 20

    private var previous = 0
    /// What cannot be returned: it is not malloc's, or is fragmented. Known after trying.
    private var kept = 0
    private var hasJustGivenBack = false

    /// - Parameters:
    ///   - free: bytes that malloc keeps for later, backed by memory or not.
    ///   - resident: the process's bytes in RAM.
    ///   - inUse: bytes that malloc has handed out, and those of other heaps.
    mutating func isDue(free: Int, resident: Int, inUse: Int) -> Bool {
        let held = max(0, min(free, resident - inUse))
        kept = min(hasJustGivenBack ? held : kept, held)
        let lasting = min(held, previous)
        previous = held
        hasJustGivenBack = lasting - kept >= Self.leastBytes
        return hasJustGivenBack
    }
}
