import CLinux

/// The single allocation of a response: key, head, and possibly body, in this order.
struct ResponseBlock: ~Copyable {
    private var memory: BlockMemory
    let keyCount: Int
    let headCount: Int
    private(set) var bodyCount = 0

    /// Copies key and head, with space for `bodyCapacity` bytes; `nil` if there is no memory.
    ///
    /// - Parameter heap: where it is allocated if it is large enough.
    init?(
        key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, bodyCapacity: Int,
        heap: BlockHeap?
    ) {
        let made = BlockMemory(key.count + head.count + bodyCapacity, heap)
        guard let memory = made else { return nil }
        keyCount = key.count
        headCount = head.count
        if let source = key.baseAddress { memcpy(memory.base, source, key.count) }
        if let source = head.baseAddress { memcpy(memory.base + key.count, source, head.count) }
        self.memory = memory
    }

    private var textCount: Int { keyCount + headCount }

    /// Space left for the body.
    var bodyRoom: Int { memory.capacity - textCount - bodyCount }

    /// The part of the body that is here.
    var body: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory.base + textCount, count: bodyCount)
    }

    var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory.base, count: keyCount)
    }

    var head: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory.base + keyCount, count: headCount)
    }

    /// Appends to the body, growing (up to double) if needed. Returns `false` if there is no
    /// memory.
    mutating func append(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
        if bodyRoom < bytes.count {
            let wanted = max(bodyCount + bytes.count, min(max(bodyCount * 2, 4096), limit))
            guard memory.resize(to: textCount + wanted) else { return false }
        }
        if let source = bytes.baseAddress {
            memcpy(memory.base + textCount + bodyCount, source, bytes.count)
        }
        bodyCount += bytes.count
        return true
    }

    /// Frees memory that was never used.
    mutating func trim() { memory.trim(to: textCount + bodyCount) }

    /// Removes the body, which is now stored elsewhere.
    mutating func dropBody() {
        bodyCount = 0
        trim()
    }

    /// A block with the same key and head; `nil` if there is no memory.
    func copyOfText() -> ResponseBlock? {
        ResponseBlock(key: key, head: head, bodyCapacity: 0, heap: memory.heap)
    }

    /// A block with the same key and body, and another head; `nil` if there is no memory.
    func withHead(_ head: UnsafeRawBufferPointer) -> ResponseBlock? {
        let made = ResponseBlock(key: key, head: head, bodyCapacity: bodyCount, heap: memory.heap)
        guard var block = made, block.append(body, limit: bodyCount) else { return nil }
        return block
    }

    /// The memory, which the caller now owns.
    consuming func take() -> BlockMemory { memory }
}
