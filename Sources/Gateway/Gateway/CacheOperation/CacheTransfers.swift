import CacheStore
import Clocks
import HTTPCore
import Locking

/// Exports and imports under way, by the names that their callers have given them. Few at a time;
/// one that nobody continues is forgotten.
final class CacheTransfers: Sendable {
    /// The most exports, and the most imports, at a time.
    static let maximum = 4
    /// How long one may wait for its next piece.
    static let idleMilliseconds: Int64 = 60_000

    private struct Transfer<Work> {
        var work: Work
        /// The number of the next piece.
        var piece = 0
        var isBusy = false
        var used: Int64
    }

    private struct State {
        var exports: [String: Transfer<CacheExport>] = [:]
        var imports: [String: Transfer<CacheImport>] = [:]
    }

    /// Why a piece cannot be had or taken.
    enum TransferError: Error, Equatable {
        /// Too many are under way.
        case tooMany
        /// It is not the next piece, or another request is for the same one.
        case outOfOrder
    }

    private let state = Locked(State())

    /// The export, for its next piece; a new one for the first.
    func export(
        _ name: String, piece: Int, _ make: @Sendable () -> CacheExport
    ) throws(TransferError) -> CacheExport {
        let result = state.withLock { state -> Result<CacheExport, TransferError> in
            Self.take(name, piece, of: &state.exports, make)
        }
        return try result.get()
    }

    /// The import, likewise.
    func `import`(
        _ name: String, piece: Int, _ make: @Sendable () -> CacheImport
    ) throws(TransferError) -> CacheImport {
        let result = state.withLock { state -> Result<CacheImport, TransferError> in
            Self.take(name, piece, of: &state.imports, make)
        }
        return try result.get()
    }

    private static func take<Work>(
        _ name: String, _ piece: Int, of all: inout [String: Transfer<Work>], _ make: () -> Work
    ) -> Result<Work, TransferError> {
        let now = Clock.monotonicMilliseconds()
        all = all.filter { $0.value.isBusy || now - $0.value.used < idleMilliseconds }
        if all[name] == nil {
            guard piece == 0 else { return .failure(.outOfOrder) }
            guard all.count < maximum else { return .failure(.tooMany) }
            all[name] = Transfer(work: make(), used: now)
        }
        guard var known = all[name], known.piece == piece, !known.isBusy else {
            return .failure(.outOfOrder)
        }
        known.isBusy = true
        known.used = now
        all[name] = known
        return .success(known.work)
    }

    /// The piece has been produced or read.
    /// - Parameter isLast: whether there is no other.
    func exported(_ name: String, isLast: Bool) {
        state.withLock { Self.end(name, isLast, &$0.exports) }
    }

    /// The piece has not been produced: it can be asked for again.
    func postponed(_ name: String) { state.withLock { $0.exports[name]?.isBusy = false } }

    func imported(_ name: String, isLast: Bool) {
        state.withLock { Self.end(name, isLast, &$0.imports) }
    }

    private static func end<Work>(
        _ name: String, _ isLast: Bool, _ all: inout [String: Transfer<Work>]
    ) {
        guard !isLast else {
            all[name] = nil
            return
        }
        all[name]?.piece += 1
        all[name]?.isBusy = false
        all[name]?.used = Clock.monotonicMilliseconds()
    }
}
