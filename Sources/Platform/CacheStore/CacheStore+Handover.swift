/// What a process has given away of its cache's database.
public enum DiskHandover: Sendable, Equatable {
    /// A descriptor with the folder's lock, which the receiver owns: to be sent to the process that
    /// succeeds this one (`CacheStoreOptions.inheritedLock`) and closed. This process keeps one as
    /// well, so that it can take the database back; the lock is free when both have ended.
    case lock(Int32)
    /// Any process can take the database.
    case released
    /// There is nothing to give: the disk tier is off or closed.
    case nothing
}

/// The database passes from one process to the next.
extension CacheStore {
    /// The folder of the database.
    public var folder: String { options.folder }

    /// Whether the database was handed over: the process that has it learns what is purged here.
    package var hasHandedOverDisk: Bool { disk.index.phase == .handedOver }

    /// Hands the database over to another process. Responses that are on their way to disk are
    /// written, for at most `closeMilliseconds`; from then on this store keeps responses only in
    /// memory. It goes on finding what is in the database, and reading the bodies that it is
    /// reading, until it is closed; of other bodies, only those of up to `wholeBodyBytes`.
    ///
    /// From when the other process has opened the database, what is invalidated or purged in one of
    /// them is not found in the other any more. Before that, only keys are purged here.
    ///
    /// - Parameters:
    ///   - keepingLock: `true` for a certain process, to which the caller sends the lock; `false`
    ///     for any.
    ///   - completion: called once, on one of the store's threads or this one. Calling this again
    ///     gives the same answer.
    public func handOverDisk(
        keepingLock: Bool, _ completion: @escaping @Sendable (DiskHandover) -> Void = { _ in }
    ) {
        disk.handOver(keepsLock: keepingLock, memory, completion)
    }

    /// Takes the database back from a process that has ended, as if it had not been handed over.
    /// What that process has stored and removed meanwhile stays so.
    ///
    /// - Parameter completion: called once, with whether the disk tier is on. If the other process
    ///   still has the database, it is not, and can be taken back later.
    public func takeBackDisk(_ completion: @escaping @Sendable (Bool) -> Void) {
        disk.takeBack(completion)
    }
}
