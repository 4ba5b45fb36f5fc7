import CacheTestSupport
import TestSupport

@testable import CacheStore

/// Tests of stores that use a folder one after the other, and together.
protocol HandsOver {
    var folder: TemporaryFolder { get }
    var log: EventLog { get }
}

struct HandoverError: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}

extension HandsOver {
    func open(
        inheriting lock: Int32? = nil, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        var options = CacheStoreOptions.small(folder)
        // Loads are from the disk.
        options.memoryBytes = 256 << 10
        options.retrySeconds = 1
        options.inheritedLock = lock
        change(&options)
        return CacheStore(options: options, onEvent: log.record).ready()
    }

    var changes: String { folder.path + "/cache.sqlite.changes" }

    func handOver(_ store: CacheStore, keepingLock: Bool = false) -> DiskHandover? {
        let answer = Handover<DiskHandover>()
        store.handOverDisk(keepingLock: keepingLock) { answer.give($0) }
        return answer.take()
    }

    func takeBack(_ store: CacheStore) -> Bool? {
        let answer = Handover<Bool>()
        store.takeBackDisk { answer.give($0) }
        return answer.take()
    }

    func lock(of handover: DiskHandover?) throws -> Int32 {
        guard case .lock(let descriptor)? = handover else {
            throw HandoverError("no lock: \(String(describing: handover))")
        }
        return descriptor
    }

    func has(_ store: CacheStore, _ url: String, _ content: [UInt8]) -> Bool {
        store.loaded(url).first.flatMap { store.bytes($0) } == content
    }

    /// Whether the store that was opened last has the database for itself.
    func isSole() -> Bool {
        log.all.last { if case .sharing = $0 { true } else { false } } == .sharing(false)
    }
}
