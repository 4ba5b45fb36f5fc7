import CacheStore
import Threads

/// A session's cache of responses: the counterpart of `NSURLCache`.
///
/// It is a private cache according to RFC 9111, meant for a single user. When another user signs
/// in, call ``removeAll()`` to remove the previous user's responses.
public final class SessionCache: Sendable {
    /// The state of the disk cache.
    public enum DiskState: Sendable, Hashable {
        /// There is no disk cache.
        case none
        /// The file is being opened; nothing is found on disk yet.
        case opening
        /// The file is open and in use.
        case ready
        /// The disk cache is off, for a reason in one word, such as `locked`, `folder` or `full`.
        /// The memory cache stays in use.
        case off(String)
    }

    /// The size of the cache.
    public struct Statistics: Sendable, Hashable {
        /// The number of responses in memory.
        public var memoryResponses: Int
        /// The size of the responses in memory, in bytes.
        public var memoryBytes: Int
        /// The number of responses on disk.
        public var diskResponses: Int
        /// The size of the responses on disk, in bytes.
        public var diskBytes: Int64
    }

    let store: CacheStore
    private let threads: ThreadPool
    private let hasDisk: Bool

    /// The maximum time to wait for the file to be opened, in milliseconds.
    private static let openMilliseconds = 60_000

    /// Returns `nil` if the configuration has no cache.
    init?(_ configuration: SessionConfiguration, _ runtime: ClientRuntime) throws(ClientError) {
        guard configuration.cacheMemoryBytes > 0 else {
            guard configuration.cacheDiskBytes == 0 else {
                throw ClientError(
                    .invalidConfiguration,
                    "cacheDiskBytes is \(configuration.cacheDiskBytes), and cacheMemoryBytes 0; "
                        + "expected both above 0")
            }
            return nil
        }
        var options = CacheStoreOptions()
        options.memoryBytes = configuration.cacheMemoryBytes
        options.memoryObjectBytes = configuration.cacheMemoryBytes
        options.diskBytes = Int64(max(0, configuration.cacheDiskBytes))
        if options.diskBytes > 0 {
            guard let folder = configuration.cacheDirectory, folder.hasPrefix("/") else {
                throw ClientError(
                    .invalidConfiguration,
                    "cacheDirectory is \(configuration.cacheDirectory ?? "not set"); expected an "
                        + "absolute path, for cacheDiskBytes is above 0")
            }
            options.folder = folder
        }
        // A small cache that is not divided into shards can hold larger responses.
        options.memoryShards = 1
        options.readers = 1
        hasDisk = options.diskBytes > 0
        threads = runtime.readers
        store = CacheStore(options: options)
    }

    /// The session and its requests have ended. Queued writes are completed on a thread that may
    /// block.
    deinit {
        guard hasDisk else { return }
        // If the pool refuses the work, it is done when the last reference is released.
        _ = threads.run { [store] in store.close() }
    }

    /// The current size of the cache.
    public var statistics: Statistics {
        let counts = store.statistics()
        return Statistics(
            memoryResponses: counts.memoryEntries, memoryBytes: counts.memoryBytes,
            diskResponses: counts.diskEntries, diskBytes: counts.diskBytes)
    }

    /// The current state of the disk cache.
    public var disk: DiskState {
        guard hasDisk else { return .none }
        return switch store.statistics().diskState {
        case .opening: .opening
        case .ready: .ready
        // By nobody in a client.
        case .handedOver: .off(DiskOffReason.locked.rawValue)
        case .off(let reason): .off(reason.rawValue)
        }
    }

    /// Removes all responses from memory and disk.
    public func removeAll() { store.purgeAll() }

    /// Waits until responses stored by an earlier process can be found, or it is known that they
    /// cannot.
    public func waitUntilOpen() async {
        await awaiting { [store] done in
            _ = store.waitUntilDiskSettled(milliseconds: Self.openMilliseconds)
            done.end(())
        }
    }

    /// Waits until everything stored so far is on disk or has been given up.
    public func flush() async {
        await awaiting { [store] done in store.flush { done.end(()) } }
    }

    /// Starts work on a thread that may block, and waits for it.
    private func awaiting(_ work: @escaping @Sendable (AwaitedWork<Void>) -> Void) async {
        _ = await withCheckedContinuation { continuation in
            let done = AwaitedWork<Void>(continuation)
            _ = threads.run { work(done) }
        }
    }
}
