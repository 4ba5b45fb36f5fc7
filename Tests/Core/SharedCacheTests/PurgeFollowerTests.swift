import TestSupport
import Testing

@testable import SharedCache

/// A stream from which the entries up to `removed` were trimmed.
private func stream(
    epoch: UInt64? = 1, last: UInt64 = 0, removed: UInt64 = 0, deleted: UInt64? = nil
) -> PurgeFollower.Stream {
    func position(_ milliseconds: UInt64) -> PurgePosition {
        Sample.position(milliseconds, epoch: epoch ?? 0)
    }
    return PurgeFollower.Stream(
        epoch: epoch, first: removed < last ? position(removed + 1) : nil,
        last: last > 0 ? position(last) : nil, hasRemoved: removed > 0 || deleted != nil,
        lastDeleted: deleted.map { position($0) })
}

@Suite("Following the stream of purges")
struct PurgeFollowerTests {
    private func checking(at position: UInt64?, hasOwnEntries: Bool = true) -> PurgeFollower {
        var follower = PurgeFollower(
            at: position.map { Sample.position($0) }, hasOwnEntries: hasOwnEntries, now: 0)
        #expect(follower.connected() == .check)
        return follower
    }

    private func following(at position: UInt64) -> PurgeFollower {
        var follower = checking(at: position)
        _ = follower.checked(stream(last: position), now: 0)
        _ = follower.carriedOut(through: nil, of: stream(last: position), now: 0)
        #expect(follower.state == .following)
        return follower
    }

    /// Where a gateway was, what the stream is like, and what follows.
    @Test func `goes on from where it was, or makes everything stale`() {
        typealias Action = PurgeFollower.Action
        let cases: [(UInt64?, Bool, PurgeFollower.Stream, Action)] = [
            (5, true, stream(last: 5), .read(after: Sample.position(5))),
            (5, true, stream(last: 9), .read(after: Sample.position(5))),
            (5, true, stream(last: 9, removed: 4), .read(after: Sample.position(5))),
            (5, true, stream(last: 5, removed: 5), .read(after: Sample.position(5))),
            (5, true, stream(last: 9, deleted: 5), .read(after: Sample.position(5))),
            (
                5, true, stream(last: 9, removed: 5),
                .makeAllStale(.missedEntries, thenReadAfter: Sample.position(9))
            ),
            (
                5, true, stream(last: 9, removed: 9),
                .makeAllStale(.missedEntries, thenReadAfter: Sample.position(9))
            ),
            (
                5, true, stream(last: 9, deleted: 6),
                .makeAllStale(.missedEntries, thenReadAfter: Sample.position(9))
            ),
            (
                5, true, stream(last: 4),
                .makeAllStale(.wentBack, thenReadAfter: Sample.position(4))
            ),
            (
                5, true, stream(),
                .makeAllStale(.wentBack, thenReadAfter: Sample.position(0))
            ),
            (
                5, true, stream(epoch: 2, last: 9),
                .makeAllStale(.otherEpoch, thenReadAfter: Sample.position(9, epoch: 2))
            ),
            (
                nil, true, stream(last: 9),
                .makeAllStale(.neverFollowed, thenReadAfter: Sample.position(9))
            ),
            (nil, false, stream(last: 9), .read(after: Sample.position(9))),
            (nil, false, stream(), .read(after: Sample.position(0))),
            (0, true, stream(), .read(after: Sample.position(0))),
            (5, true, stream(epoch: nil), .beginEpoch),
            (nil, false, stream(epoch: nil), .beginEpoch),
        ]
        for (position, hasOwnEntries, stream, action) in cases {
            var follower = checking(at: position, hasOwnEntries: hasOwnEntries)
            #expect(follower.checked(stream, now: 0) == action, "\(action)")
            #expect(follower.born == nil)
        }
    }

    @Test func `joins when it has caught up`() {
        var follower = checking(at: 5)
        _ = follower.checked(stream(last: 9), now: 0)
        func carryOut(_ last: UInt64, of stream: PurgeFollower.Stream) -> PurgeFollower.Action {
            follower.carriedOut(through: Sample.position(last), of: stream, now: 0)
        }
        #expect(carryOut(7, of: stream(last: 9)) == .read(after: Sample.position(7)))
        #expect(follower.born == nil)
        #expect(carryOut(9, of: stream(last: 10)) == .join)
        #expect(follower.born == Sample.position(9))
        #expect(carryOut(12, of: stream(last: 12)) == .none)
        #expect(follower.born == Sample.position(12))
        // Never back.
        #expect(carryOut(3, of: stream(last: 12)) == .none)
        #expect(follower.born == Sample.position(12))
    }

    @Test func `joins also if what was the last entry has been removed`() {
        var follower = checking(at: 5)
        _ = follower.checked(stream(last: 9), now: 0)
        #expect(follower.carriedOut(through: nil, of: stream(last: 9), now: 0) == .join)
    }

    @Test func `joins after everything was made stale`() {
        var follower = checking(at: 5)
        let other = stream(epoch: 2, last: 9)
        _ = follower.checked(other, now: 0)
        #expect(follower.carriedOut(through: nil, of: other, now: 0) == .join)
        #expect(follower.born == Sample.position(9, epoch: 2))
    }

    @Test func `notices that entries were removed before it read them`() {
        var follower = following(at: 5)
        let trimmed = stream(last: 9, removed: 7)
        #expect(
            follower.carriedOut(through: Sample.position(9), of: trimmed, now: 0)
                == .makeAllStale(.missedEntries, thenReadAfter: Sample.position(9)))
        #expect(follower.born == nil)
        #expect(follower.carriedOut(through: nil, of: trimmed, now: 0) == .join)
        #expect(follower.born == Sample.position(9))
    }

    @Test func `notices while it follows that the stream is another one`() {
        var lost = following(at: 5)
        #expect(lost.checked(stream(last: 5), now: 1) == .none)
        #expect(lost.checked(stream(last: 8), now: 1) == .none)
        #expect(lost.born == Sample.position(5))
        #expect(lost.checked(stream(epoch: nil), now: 1) == .beginEpoch)
        #expect(lost.born == nil)
        #expect(
            lost.checked(stream(epoch: 7), now: 1)
                == .makeAllStale(.otherEpoch, thenReadAfter: Sample.position(0, epoch: 7)))
        var back = following(at: 5)
        #expect(
            back.checked(stream(last: 4), now: 1)
                == .makeAllStale(.wentBack, thenReadAfter: Sample.position(4)))
        #expect(back.born == nil)
    }

    @Test func `is told nothing while it is away`() {
        var follower = following(at: 5)
        follower.disconnected(now: 10)
        #expect(follower.checked(stream(last: 9), now: 11) == .none)
        #expect(
            follower.carriedOut(through: Sample.position(9), of: stream(last: 9), now: 11)
                == .none)
        #expect(follower.position == Sample.position(5))
        #expect(follower.connected() == .check)
        #expect(follower.connected() == .none)
    }

    @Test func `is away since the stream was followed last`() {
        var follower = following(at: 5)
        follower.disconnected(now: 10)
        #expect(follower.state == .away(since: 10))
        // Connections that come and go make the time no shorter.
        _ = follower.connected()
        #expect(follower.state == .checking(since: 10))
        follower.disconnected(now: 14)
        #expect(follower.state == .away(since: 10))
        _ = follower.connected()
        _ = follower.checked(stream(last: 9), now: 16)
        #expect(follower.state == .catchingUp(until: Sample.position(9), since: 10))
        _ = follower.carriedOut(through: Sample.position(9), of: stream(last: 9), now: 16)
        #expect(follower.state == .following)
    }

    /// A stream with a bounded length, to which entries are added, and gateways that come and go.
    @Test func `misses no purge, whatever happens`() {
        var random = SeededRandom(seed: 23)
        var joins = 0
        for _ in 0..<500 {
            var (epoch, last, removed) = (UInt64(1), UInt64(0), UInt64(0))
            var follower = PurgeFollower(at: nil, hasOwnEntries: true, now: 0)
            // What this gateway has carried out, one by one or as everything.
            var done: Set<[UInt64]> = []
            var added: [[UInt64]] = []
            func perform(_ first: PurgeFollower.Action) {
                var action = first
                for _ in 0..<20 {
                    switch action {
                    case .none: return
                    case .check, .beginEpoch:
                        action = follower.checked(
                            stream(epoch: epoch, last: last, removed: removed), now: 0)
                    case .makeAllStale(_, let position):
                        done.formUnion(added)
                        action = .read(after: position)
                    case .read(let position):
                        let from = max(position.milliseconds, removed)
                        let next = from < last ? min(last, from + 2) : nil
                        if let next {
                            for entry in from + 1...next { done.insert([epoch, entry]) }
                        }
                        action = follower.carriedOut(
                            through: next.map { Sample.position($0, epoch: epoch) },
                            of: stream(epoch: epoch, last: last, removed: removed), now: 0)
                    case .join:
                        joins += 1
                        return
                    }
                }
            }
            for _ in 0..<30 {
                switch random.below(8) {
                case 0..<3:
                    last += 1
                    added.append([epoch, last])
                    removed = max(removed, last > 4 ? last - 4 : 0)
                case 3: follower.disconnected(now: 0)
                case 4..<6: perform(follower.connected())
                case 6:
                    guard let position = follower.born else { break }
                    perform(.read(after: position))
                default:
                    guard random.chance(20) else { break }
                    (epoch, last, removed) = (epoch + 1, 0, 0)
                }
                // What it says that it knows, it has carried out.
                if let born = follower.born {
                    for entry in added
                    where entry[0] < born.epoch
                        || entry[0] == born.epoch && entry[1] <= born.milliseconds
                    {
                        #expect(done.contains(entry))
                    }
                }
            }
        }
        #expect(joins > 500)
    }
}
