import CLinux
import Synchronization

/// A key to look for: its hash and the bytes it is of. The bytes are only read during the call.
package struct KeyView {
    /// Any hash of `bytes`, the same for equal bytes while the process runs.
    package let hash: UInt64
    package let bytes: UnsafeRawBufferPointer
    @inlinable
    package init(hash: UInt64, bytes: UnsafeRawBufferPointer) {
        self.hash = hash
        self.bytes = bytes
    }
}

/// The times of an entry and the policy under which it was obtained.
package struct EntryFacts: Sendable, Equatable {
    /// Seconds since 1970 when the request was sent.
    package var requestTime: Int64
    /// Seconds since 1970 when the response head was received.
    package var responseTime: Int64
    /// corrected_initial_age in seconds (RFC 9111 section 4.2.3).
    package var initialAge: Int64
    /// Fingerprint of the security policy under which the response was obtained; the caller
    /// compares it before reuse. It must mean the same after a restart.
    package var policy: UInt64
    package init(requestTime: Int64, responseTime: Int64, initialAge: Int64, policy: UInt64 = 0) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.initialAge = initialAge
        self.policy = policy
    }
}

// SURFACE (bodies follow):
//
// package enum MemoryMatch { case none, one(CachedResponse), several([CachedResponse]) }
// package enum LoadResult: Sendable { case found([CachedResponse]), nothing, unavailable }
// package enum ChunkResult: Sendable { case chunk(ChunkBytes), gone, damaged, unavailable }
//
// package final class CachedResponse: Sendable        // immutable, one allocation
//   let facts: EntryFacts; var key, vary, head: UnsafeRawBufferPointer (valid while retained)
//   let body: CachedBody; var bodyLength: UInt64
//   var headAndBody: UnsafeRawBufferPointer           // head + body contiguous when .contiguous
// package enum CachedBody: Sendable
//   case contiguous(UnsafeRawBufferPointer)           // right behind the head, same allocation
//   case file(MemoryFile)                             // .fileDescriptor, .count: sendfile(2)
//   case heap(HeapBody)                               // .bytes (descriptor cap reached)
//   case disk(DiskBody)                               // .count, .chunkCount, .chunkBytes
// package final class ChunkBytes: Sendable            // .bytes: UnsafeRawBufferPointer
//
// package final class CacheStore: Sendable
//   init(options:, onEvent:)                          // never blocks on the disk, never throws
//   waitUntilDiskSettled(milliseconds:) -> DiskState  // optional, at start: opening is over
//   lookup(_ key: KeyView) -> MemoryMatch
//   diskMayHold(_ key: KeyView) -> Bool
//   load(_ key: KeyView, completion: @escaping @Sendable (LoadResult) -> Void) -> Bool
//   readChunk(_ body: DiskBody, _ index: Int, completion:) -> Bool   // false: too many pending
//   beginStore(key: KeyView, vary:, head:, facts:, expectedLength: UInt64?)
//       throws(StoreRefusal) -> StoreTicket
//   update(_ old: CachedResponse, head:, facts:) throws(StoreRefusal) -> CachedResponse  // 304
//   invalidate(_ key: KeyView)
//   remove(_ response: CachedResponse)                // one variant
//   purgeAll()
//   statistics() -> StoreStatistics
//   close()
// package final class StoreTicket                     // one thread
//   append(_: UnsafeRawBufferPointer) -> Bool         // false: refused, see .refusal
//   isCongested: Bool                                 // the disk is behind: slow down if you like
//   finish() -> CachedResponse?   abandon()
