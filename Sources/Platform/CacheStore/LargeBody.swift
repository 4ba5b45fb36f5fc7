/// A body being received into memory that is too large to be placed after its head: in a memory
/// file, or in the heap if those are used up.
enum LargeBody: Sendable {
    case file(MemoryFile)
    case heap(HeapBody)

    /// - Parameter heap: used if the memory files are used up.
    init(_ budget: DescriptorBudget, _ heap: BlockHeap?) {
        if let file = MemoryFile(budget) {
            self = .file(file)
        } else {
            self = .heap(HeapBody(heap))
        }
    }

    /// Returns `false` if there is no memory.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .file(let file): file.append(bytes)
        case .heap(let heap): heap.append(bytes)
        }
    }

    var count: Int {
        switch self {
        case .file(let file): file.count
        case .heap(let heap): heap.count
        }
    }

    /// The complete body; nothing more may be appended.
    func complete() -> BodyStorage {
        switch self {
        case .file(let file):
            return .file(file)
        case .heap(let heap):
            heap.trim()
            return .heap(heap)
        }
    }

    /// Copies from `offset` on into `target`; `false` if there are not enough bytes.
    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        switch self {
        case .file(let file):
            return file.read(into: target, at: offset)
        case .heap(let heap):
            guard offset + target.count <= heap.count else { return false }
            target.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: heap.bytes[offset..<offset + target.count]))
            return true
        }
    }
}
