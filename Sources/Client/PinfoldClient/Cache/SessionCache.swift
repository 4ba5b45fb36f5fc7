import CacheStore
import Threads

/// The responses that a session keeps to answer the same requests again: what `NSURLCache` is to
/// AFNetworking.
///
/// It is a private cache by RFC 9111: for one user, so that whoever signs another one in removes
/// what the first was answered (``removeAll()``).
public final class SessionCache: Sendable {
    /// What the part on disk does.
    public enum DiskState: Sendable, Hashable {
        /// There is none.
        case none
        /// The file is being opened; nothing is found on disk yet.
        case opening
        /// The file is open, and used.
        case ready
        /// It takes and gives nothing, for a reason in one word, such as `locked`, `folder` or
        /// `full`. The part in memory goes on.
        case off(String)
    }

    /// How much is kept.
    public struct Figures: Sendable, Hashable {
        /// Responses in memory.
        public var memoryResponses: Int
        /// Bytes that the responses in memory take.
        public var memoryBytes: Int
        /// Responses on disk.
        public var diskResponses: Int
        /// Bytes that the responses on disk take.
        public var diskBytes: Int64
    }

    let store: CacheStore
    private let threads: ThreadPool
    private let hasDisk: Bool

    /// How long the opening of the file is waited for at most, in milliseconds.
    private static let openMilliseconds = 60_000

    /// Nil: the configuration asks for none.
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
        // A small cache in one piece holds larger responses.
        options.memoryShards = 1
        options.readers = 1
        hasDisk = options.diskBytes > 0
        threads = runtime.readers
        store = CacheStore(options: options)
    }

    /// The session has ended, its requests included: what is queued is written down, where that
    /// may block.
    deinit {
        guard hasDisk else { return }
        // Refused, it is done when the last reference is let go of.
        _ = threads.run { [store] in store.close() }
    }

    /// How much is kept now.
    public var figures: Figures {
        let figures = store.statistics()
        return Figures(
            memoryResponses: figures.memoryEntries, memoryBytes: figures.memoryBytes,
            diskResponses: figures.diskEntries, diskBytes: figures.diskBytes)
    }

    /// What the part on disk does now.
    public var disk: DiskState {
        guard hasDisk else { return .none }
        return switch store.statistics().diskState {
        case .opening: .opening
        case .ready: .ready
        case .off(let reason): .off(reason.rawValue)
        }
    }

    /// Removes everything, from memory and disk.
    public func removeAll() { store.purgeAll() }

    /// Waits until what an earlier process has kept on disk can be found, or is known not to be.
    public func waitUntilOpen() async {
        await awaiting { [store] done in
            _ = store.waitUntilDiskSettled(milliseconds: Self.openMilliseconds)
            done.end(())
        }
    }

    /// Waits until everything kept by now is on disk, or has been given up.
    public func flush() async {
        await awaiting { [store] done in store.flush { done.end(()) } }
    }

    /// Begins something on a thread that may block, and waits for it.
    private func awaiting(_ work: @escaping @Sendable (AwaitedWork<Void>) -> Void) async {
        _ = await withCheckedContinuation { continuation in
            let done = AwaitedWork<Void>(continuation)
            _ = threads.run { work(done) }
        }
    }
}
