import CLinux
import CachePolicy
import HTTPCore
import Synchronization

/// A stored response: immutable, shared by every worker that serves it, freed when the last one
/// lets go.
///
/// Key, head and (below `CacheStoreOptions.memoryFileBytes`) body lie in one allocation, head and
/// body side by side, so that a hit is one copy or one vectored write.
package final class CachedResponse: @unchecked Sendable {
    /// The hash the key was stored or loaded with (this process's).
    package let keyHash: UInt64
    /// Which requests it answers.
    package let varyKey: VaryKey
    /// All that a decision needs to know, made from `head`; `bodyBytes` is set.
    package let metadata: StoredMetadata
    /// Fingerprint of the security policy under which it was obtained.
    package let policy: UInt64
    package let body: CachedBody

    private let block: UnsafeMutableRawPointer
    private let keyCount: Int
    private let headCount: Int
    private let contiguousCount: Int

    /// The entry on disk. Set at most once, before any other thread can see this object: all
    /// threads get it out of a table whose lock was held when it was set.
    var token = IndexToken.none
    /// Bytes of its chunks on disk, if it has any there.
    let chunkBytes: Int

    /// Until when nobody else asks the origin about it in the background, in seconds since 1970.
    private let claimedUntil = Atomic<Int64>(0)

    /// Takes over `builder`'s memory.
    init(
        keyHash: UInt64, varyKey: VaryKey, metadata: StoredMetadata, policy: UInt64,
        block: consuming ResponseBlock, body: BodyStorage, chunkBytes: Int
    ) {
        self.keyHash = keyHash
        self.varyKey = varyKey
        self.policy = policy
        self.chunkBytes = chunkBytes
        keyCount = block.keyCount
        headCount = block.headCount
        contiguousCount = block.bodyCount
        self.block = block.take()
        var metadata = metadata
        switch body {
        case .contiguous:
            let start = self.block + keyCount + headCount
            self.body = .contiguous(
                UnsafeBody(bytes: UnsafeRawBufferPointer(start: start, count: contiguousCount)))
            metadata.bodyBytes = UInt64(contiguousCount)
        case .file(let file):
            self.body = .file(file)
            metadata.bodyBytes = UInt64(file.count)
        case .heap(let heap):
            self.body = .heap(heap)
            metadata.bodyBytes = UInt64(heap.count)
        case .disk(let disk):
            self.body = .disk(disk)
            metadata.bodyBytes = disk.count
        }
        self.metadata = metadata
    }

    deinit { free(block) }

    /// Claims to ask the origin about it in the background: true for one caller at a time, of
    /// whichever thread. The claim ends at `end`, if it is not moved by `endClaim` before.
    package func claim(now: Int64, until end: Int64) -> Bool {
        let current = claimedUntil.load(ordering: .relaxed)
        guard current <= now else { return false }
        return claimedUntil.compareExchange(
            expected: current, desired: end, ordering: .relaxed
        ).exchanged
    }

    /// Lets the next one claim it from `time` on.
    package func endClaim(at time: Int64) { claimedUntil.store(time, ordering: .relaxed) }

    /// The key's bytes, valid while this object lives.
    package var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block, count: keyCount)
    }

    /// The stored head, valid while this object lives.
    package var head: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block + keyCount, count: headCount)
    }

    /// The stored head and, if it is `.contiguous`, the body right behind it.
    package var headAndBody: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block + keyCount, count: headCount + contiguousCount)
    }

    /// The body's bytes.
    package var bodyCount: UInt64 { metadata.bodyBytes ?? 0 }

    /// The body as it can be shared with a successor; a contiguous one cannot.
    var storage: BodyStorage {
        switch body {
        case .contiguous: .contiguous
        case .file(let file): .file(file)
        case .heap(let heap): .heap(heap)
        case .disk(let disk): .disk(disk)
        }
    }

    /// A response with another head and the same body; nil: no memory.
    func withHead(
        _ head: UnsafeRawBufferPointer, varyKey: VaryKey, metadata: StoredMetadata, policy: UInt64
    ) -> CachedResponse? {
        guard var block = ResponseBlock(key: key, head: head, bodyCapacity: contiguousCount) else {
            return nil
        }
        if case .contiguous(let body) = body {
            guard block.append(body.bytes, limit: contiguousCount) else { return nil }
        }
        return CachedResponse(
            keyHash: keyHash, varyKey: varyKey, metadata: metadata, policy: policy, block: block,
            body: storage, chunkBytes: chunkBytes)
    }

    /// The same response with its body on disk alone; nil: no memory.
    func onDisk(_ body: DiskBody) -> CachedResponse? {
        guard let block = ResponseBlock(key: key, head: head, bodyCapacity: 0) else { return nil }
        return CachedResponse(
            keyHash: keyHash, varyKey: varyKey, metadata: metadata, policy: policy, block: block,
            body: .disk(body), chunkBytes: chunkBytes)
    }

    /// Bytes of memory it takes in the memory tier, allocator's and table's overhead included.
    var memoryBytes: Int {
        let own = 320 + keyCount + headCount + contiguousCount + varyKey.bytes.count
        switch body {
        case .contiguous, .disk: return own
        // Whole pages, and the kernel's own of an open file.
        case .file(let file): return own + (file.count + 4095) & ~4095 + 1024
        case .heap(let heap): return own + heap.count + 64
        }
    }

    /// Whether it is of this key.
    @inline(__always)
    func isOf(_ hash: UInt64, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard keyHash == hash, keyCount == bytes.count else { return false }
        guard keyCount > 0, let other = bytes.baseAddress else { return true }
        return memcmp(block, other, keyCount) == 0
    }
}

/// Where the body of a response under construction is.
enum BodyStorage: Sendable {
    case contiguous
    case file(MemoryFile)
    case heap(HeapBody)
    case disk(DiskBody)
}

/// The one allocation of a response: key, head, and maybe body, in this order.
struct ResponseBlock: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    let keyCount: Int
    let headCount: Int
    private(set) var bodyCount = 0

    /// Copies key and head, with room for `bodyCapacity` bytes. nil: no memory.
    init?(key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, bodyCapacity: Int) {
        let needed = key.count + head.count + bodyCapacity
        guard let memory = malloc(max(needed, 1)) else { return nil }
        base = memory
        capacity = needed
        keyCount = key.count
        headCount = head.count
        if let source = key.baseAddress { memcpy(base, source, key.count) }
        if let source = head.baseAddress { memcpy(base + key.count, source, head.count) }
    }

    deinit { free(base) }

    private var textCount: Int { keyCount + headCount }

    /// Room left for the body.
    var bodyRoom: Int { capacity - textCount - bodyCount }

    /// The part of the body that is here.
    var body: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + textCount, count: bodyCount)
    }

    var head: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + keyCount, count: headCount)
    }

    /// Appends to the body, making room (up to double) if needed. false: no memory.
    mutating func append(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
        if bodyRoom < bytes.count {
            let wanted = max(bodyCount + bytes.count, min(max(bodyCount * 2, 4096), limit))
            guard resize(body: wanted) else { return false }
        }
        if let source = bytes.baseAddress {
            memcpy(base + textCount + bodyCount, source, bytes.count)
        }
        bodyCount += bytes.count
        return true
    }

    /// Gives back memory if more than a quarter was never used.
    mutating func trim() {
        if bodyRoom > capacity / 4 { _ = resize(body: bodyCount) }
    }

    /// Forgets the body, which has found another place.
    mutating func dropBody() {
        bodyCount = 0
        trim()
    }

    private mutating func resize(body: Int) -> Bool {
        guard let moved = realloc(base, max(textCount + body, 1)) else { return false }
        base = moved
        capacity = textCount + body
        return true
    }

    /// A block with the same key and head; nil: no memory.
    func copyOfText() -> ResponseBlock? {
        ResponseBlock(
            key: UnsafeRawBufferPointer(start: base, count: keyCount), head: head, bodyCapacity: 0)
    }

    /// The memory, which now is the caller's to free.
    consuming func take() -> UnsafeMutableRawPointer {
        let memory = base
        discard self
        return memory
    }
}
