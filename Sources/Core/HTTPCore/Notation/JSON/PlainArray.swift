/// A growing array of plain values in memory of its own. An array of the standard library would
/// check at every change whether its memory is shared; and this one counts what it takes.
struct PlainArray<Element: BitwiseCopyable>: ~Copyable {
    private var start: UnsafeMutablePointer<Element>?
    private var capacity = 0
    private(set) var count = 0

    init() {}

    deinit { start?.deallocate() }

    /// The first element; only if there is one.
    @inline(__always)
    var first: UnsafeMutablePointer<Element> { start.unsafelyUnwrapped }

    /// The last element; only if there is one.
    @inline(__always)
    var last: UnsafeMutablePointer<Element> { start.unsafelyUnwrapped + (count &- 1) }

    /// The elements, valid until the array changes.
    var elements: UnsafeBufferPointer<Element> { UnsafeBufferPointer(start: start, count: count) }

    /// - Parameter memory: the number of bytes that may be used, which is reduced.
    /// - Throws: `outOfMemory` if that is too little.
    @inline(__always)
    mutating func append(
        _ element: Element, within memory: inout Int
    ) throws(JSONParsingError) {
        if count == capacity { try grow(to: max(16, capacity * 2), within: &memory) }
        (start.unsafelyUnwrapped + count).initialize(to: element)
        count &+= 1
    }

    /// The same for more than one.
    mutating func append(
        _ elements: UnsafePointer<Element>, count more: Int, within memory: inout Int
    ) throws(JSONParsingError) {
        guard more > 0 else { return }
        if capacity - count < more {
            try grow(to: max(16, capacity * 2, count + more), within: &memory)
        }
        (start.unsafelyUnwrapped + count).initialize(from: elements, count: more)
        count += more
    }

    /// Removes all elements from an index on.
    @inline(__always)
    mutating func cut(to index: Int) { count = index }

    @inline(never)
    mutating func grow(to larger: Int, within memory: inout Int) throws(JSONParsingError) {
        let bytes = (larger - capacity) * MemoryLayout<Element>.stride
        guard bytes <= memory else { throw JSONParsingError(.outOfMemory, at: 0) }
        memory -= bytes
        let moved = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        if let start {
            moved.initialize(from: start, count: count)
            start.deallocate()
        }
        start = moved
        capacity = larger
    }
}
