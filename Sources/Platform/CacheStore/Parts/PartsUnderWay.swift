import Locking

/// A run of bytes of a representation that is being received: the slices that it completes are
/// stored, and `body` has what arrived last for those who want it now. Its positions count from
/// `range.lowerBound`.
public final class PartsUnderWay: Sendable {
    public let set: UInt64
    /// The positions of the bytes that were asked for.
    public let range: Range<UInt64>
    public let body: BodyUnderWay

    init(set: UInt64, range: Range<UInt64>, budget: StoreBudget) {
        self.set = set
        self.range = range
        body = BodyUnderWay(expectedCount: range.upperBound - range.lowerBound, budget: budget)
    }

    /// How far behind what has arrived a position may be for it to be waited for.
    private static let nearbyBytes: UInt64 = 4 << 20

    /// Whether the bytes at a position have arrived lately, or will soon.
    fileprivate func isNear(_ offset: UInt64) -> Bool {
        range.contains(offset) && body.isReachable(offset - range.lowerBound, Self.nearbyBytes)
    }
}

/// The runs that are being received, by their sets. Any thread may call it. There are no more than
/// exchanges that receive them.
final class RunsUnderWay: Sendable {
    private let runs = Locked<[UInt64: [PartsUnderWay]]>([:])

    /// Finds a run of which the bytes at a position will soon be there, or adds one.
    /// - Parameter range: what is asked for if there is none.
    func join(
        _ set: UInt64, at offset: UInt64, orAdd range: () -> Range<UInt64>, budget: StoreBudget
    ) -> (run: PartsUnderWay, isNew: Bool) {
        if let run = runs.withLock({ $0.run(of: set, near: offset) }) { return (run, false) }
        // It looks up many slices: not under the lock.
        let new = PartsUnderWay(set: set, range: range(), budget: budget)
        return runs.withLock { runs in
            if let run = runs.run(of: set, near: offset) { return (run, false) }
            runs[set, default: []].append(new)
            return (new, true)
        }
    }

    func first(of set: UInt64, within content: Range<UInt64>) -> PartsUnderWay? {
        runs.withLock { runs in
            runs[set]?.lazy.filter { content.contains($0.range.lowerBound) }
                .min { $0.range.lowerBound < $1.range.lowerBound }
        }
    }

    func end(_ run: PartsUnderWay) {
        runs.withLock { runs in
            runs[run.set]?.removeAll { $0 === run }
            if runs[run.set]?.isEmpty ?? false { runs[run.set] = nil }
        }
    }
}

extension [UInt64: [PartsUnderWay]] {
    fileprivate func run(of set: UInt64, near offset: UInt64) -> PartsUnderWay? {
        self[set]?.first { $0.isNear(offset) }
    }
}
