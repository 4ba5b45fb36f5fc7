import HTTPCore
import Locking
import PinfoldEngine
import Synchronization

/// The memory for bodies that recordings keep, from the first byte until they are written for a
/// reader: so much in all, and half of it for one client network at most, so that nobody keeps what
/// others do from being recorded.
final class ContentRoom: Sendable {
    private struct State {
        var taken = 0
        var networks: [IPNetwork: Int] = [:]
    }

    private let state = Locked(State())
    private let limit: Int

    /// - Parameter limit: the bytes in all.
    init(limit: Int) { self.limit = limit }

    /// The bytes that are taken.
    var taken: Int { state.withLock { $0.taken } }

    fileprivate func take(_ bytes: Int, for network: IPNetwork) -> Bool {
        state.withLock { state in
            let held = state.networks[network, default: 0]
            guard bytes <= limit - state.taken, bytes <= limit / 2 - held else { return false }
            state.taken += bytes
            state.networks[network] = held + bytes
            return true
        }
    }

    fileprivate func giveBack(_ bytes: Int, of network: IPNetwork) {
        guard bytes > 0 else { return }
        state.withLock { state in
            state.taken -= bytes
            let left = state.networks[network, default: 0] - bytes
            state.networks[network] = left > 0 ? left : nil
        }
    }

    /// Room for the bodies of one exchange.
    func lease(for network: IPNetwork) -> any ContentLease { Lease(self, network) }

    private final class Lease: ContentLease {
        private let room: ContentRoom
        private let network: IPNetwork
        private let taken = Atomic<Int>(0)

        init(_ room: ContentRoom, _ network: IPNetwork) {
            self.room = room
            self.network = network
        }

        deinit { room.giveBack(taken.load(ordering: .relaxed), of: network) }

        func take(_ bytes: Int) -> Bool {
            guard room.take(bytes, for: network) else { return false }
            taken.add(bytes, ordering: .relaxed)
            return true
        }
    }
}
