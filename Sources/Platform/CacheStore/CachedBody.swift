import CLinux
import Files
import Synchronization

/// Where the bytes of a cached body are.
public enum CachedBody: Sendable {
    /// Directly after the head, in the same allocation.
    case contiguous(BodyView)
    /// In a memory file, for sendfile(2).
    case file(MemoryFile)
    /// In the heap: all memory files were in use.
    case heap(HeapBody)
    /// In a level below memory: read it with `CacheStore.readChunk`.
    case disk(LevelBody)
    /// It is still being received: read it part by part. Such a response is in no level.
    case arriving(BodyUnderWay)
    /// Parts of it are stored, as entries of their own (`CacheStore.slice`).
    case parts(PartsBody)
}

/// A view into the allocation of the `CachedResponse` that it came from, valid while that lives.
public struct BodyView: @unchecked Sendable {
    public let bytes: UnsafeRawBufferPointer
}

/// Counts the open memory files, up to a limit.
final class DescriptorBudget: Sendable {
    private let used = Atomic<Int>(0)
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// The descriptors in use.
    var count: Int { used.load(ordering: .relaxed) }

    /// Takes one; `false` at the limit.
    func take() -> Bool {
        let after = used.wrappingAdd(1, ordering: .relaxed).newValue
        if after <= limit { return true }
        used.wrappingSubtract(1, ordering: .relaxed)
        return false
    }

    func giveBack() { used.wrappingSubtract(1, ordering: .relaxed) }
}

/// A body in a memory file (memfd_create(2)). Appended to by the one thread that builds it, and
/// never changed once it is published; closed when the last reader releases it.
public final class MemoryFile: @unchecked Sendable {
    /// The descriptor; its file offset is meaningless: pass one to sendfile(2) and pread(2).
    public let fileDescriptor: Int32
    /// The body's bytes; it begins at offset 0.
    public private(set) var count: Int = 0
    private let budget: DescriptorBudget

    /// `nil` if the budget is used up or the system has no descriptor or memory for it.
    init?(_ budget: DescriptorBudget) {
        guard budget.take() else { return nil }
        let created = memfd_create("cached-body", UInt32(PINFOLD_MFD_CLOEXEC))
        guard created >= 0 else {
            budget.giveBack()
            return nil
        }
        fileDescriptor = created
        self.budget = budget
    }

    deinit {
        close(fileDescriptor)
        budget.giveBack()
    }

    /// Appends `bytes`; `false` if there is no memory for them.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let wrote = uninterrupted {
                pwrite(fileDescriptor, rest.baseAddress, rest.count, off_t(count))
            }
            if wrote < 0 { return false }
            done += wrote
            count += wrote
        }
        return true
    }

    /// Copies bytes from `offset` on into `target`; `false` if there are not enough.
    public func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        var done = 0
        while done < target.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: target[done...])
            let got = uninterrupted {
                pread(fileDescriptor, rest.baseAddress, rest.count, off_t(offset + done))
            }
            if got <= 0 { return false }
            done += got
        }
        return true
    }
}

/// A body in the heap, too large to be placed after its head. Appended to by the one thread that
/// builds it, and never changed once it is published.
public final class HeapBody: @unchecked Sendable {
    private var memory: BlockMemory?
    private let heap: BlockHeap?
    public private(set) var count = 0

    /// - Parameter heap: where it is allocated unless it is too large.
    init(_ heap: BlockHeap?) { self.heap = heap }

    /// Bytes of memory that it occupies.
    var capacity: Int { memory?.capacity ?? 0 }

    /// The body, valid while this object lives.
    public var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory?.base, count: count)
    }

    /// Makes space for `total` bytes in total; `false` if there is no memory.
    private func reserve(_ total: Int) -> Bool {
        if memory == nil { memory = BlockMemory(total, heap) }
        guard capacity < total else { return true }
        return memory?.resize(to: total) == true
    }

    /// Appends `bytes`; `false` if there is no memory for them.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if count + bytes.count > capacity {
            guard reserve(max(count + bytes.count, capacity * 2)) else { return false }
        }
        guard let base = memory?.base, let source = bytes.baseAddress else { return true }
        memcpy(base + count, source, bytes.count)
        count += bytes.count
        return true
    }

    /// Frees memory that was never used.
    func trim() { memory?.trim(to: count) }
}

/// A body in a level below memory, in chunks. While it is held its chunks stay readable, even if
/// the entry is replaced, invalidated or evicted in the meantime: a download in progress is not cut
/// off.
public final class LevelBody: Sendable {
    /// Its level's number for it.
    package let id: Int64
    /// The number of bytes of the body.
    public let count: UInt64
    /// Bytes of every chunk except the last.
    public let chunkBytes: Int
    /// The number of chunks; they are numbered from 0.
    public var chunkCount: Int {
        Int((count + UInt64(chunkBytes) - 1) / UInt64(chunkBytes))
    }
    /// The level that has it.
    package let source: any ChunkSource

    /// The level must already keep the chunks readable; it is told when it no longer needs to
    /// (`ChunkSource.release`).
    package init(id: Int64, count: UInt64, chunkBytes: Int, source: any ChunkSource) {
        self.id = id
        self.count = count
        self.chunkBytes = chunkBytes
        self.source = source
    }

    deinit { source.release(body: id) }

    /// The number of bytes that chunk `index` must have.
    package func expectedCount(_ index: Int) -> Int {
        let start = UInt64(index) * UInt64(chunkBytes)
        return start >= count ? 0 : Int(min(UInt64(chunkBytes), count - start))
    }
}

/// A piece of a body in memory of its own, on its way to or from the disk.
public final class ChunkBytes: @unchecked Sendable {
    private let base: UnsafeMutableRawPointer
    let capacity: Int
    private(set) var count = 0
    /// Whether a level has written it, so that it can be read there.
    let isWritten = Atomic<Bool>(false)
    /// Whether the disk did not take it: there is no room, or its body was given up.
    let isDropped = Atomic<Bool>(false)

    /// `nil` if there is no memory.
    package init?(capacity: Int) {
        guard let memory = malloc(max(capacity, 1)) else { return nil }
        base = memory
        self.capacity = capacity
    }

    deinit { free(base) }

    /// The bytes, valid while this object lives.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// Appends as much of `bytes` as fits; returns how many.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Int {
        let taken = min(bytes.count, capacity - count)
        if taken > 0, let source = bytes.baseAddress {
            memcpy(base + count, source, taken)
            count += taken
        }
        return taken
    }
}
