import CachePolicy
import EventLoop
import HTTPCore
import Locking

// Filling the cache: a response that is being stored is received to its end although its client has
// left, unless that takes too long. Otherwise a popular response whose clients lose patience would
// be requested over and over.

/// A response that is received for the cache only.
struct CacheFilling {
    /// The network of the client that has left; `nil` if it has none.
    let network: IPNetwork?
    /// When it left, in the loop's milliseconds.
    let began: Int64
    /// Bytes received since.
    var received = 0

    /// How long it may go on before its rate matters, and the least that is accepted then.
    private static let graceMilliseconds: Int64 = 10_000
    private static let leastBytesPerSecond: Int64 = 16 << 10

    /// Whether it is too slow to be waited for.
    func isTooSlow(now: Int64) -> Bool {
        let elapsed = now - began
        return elapsed > Self.graceMilliseconds
            && Int64(received) * 1000 < elapsed * Self.leastBytesPerSecond
    }
}

/// How many responses are received for the cache only, by the networks of the clients that have
/// left. Any thread may call it.
final class FillingLimits: Sendable {
    /// The maximum for one network, so that a client that begins and leaves cannot keep the origin
    /// and the disk busy.
    static let limit = 4

    private let counts = Locked<[IPNetwork?: Int]>([:])

    /// Returns false if the network has as many as it may have.
    func begin(for network: IPNetwork?) -> Bool {
        counts.withLock { counts in
            guard counts[network, default: 0] < Self.limit else { return false }
            counts[network, default: 0] += 1
            return true
        }
    }

    func end(for network: IPNetwork?) {
        counts.withLock { counts in
            let left = (counts[network] ?? 1) - 1
            counts[network] = left > 0 ? left : nil
        }
    }
}

extension Exchange {
    /// The client leaves: whether its response is received to the end for the cache.
    func fills() -> Bool {
        let network = clientNetwork ?? intake.causingNetwork
        guard case .responding = state.step, storing.ticket != nil, storing.filling == nil,
            origin?.caching.fill == .always, !environment.isDraining,
            environment.shared.fillings.begin(for: network)
        else { return false }
        storing.fill(CacheFilling(network: network, began: environment.loop.now))
        environment.metrics.adjust(.cacheFills, by: 1)
        return true
    }

    /// Whether filling goes on. It was not begun yet if others were reading the response when the
    /// client left, and have left as well.
    func goesOnFilling(_ count: Int) -> Bool {
        // A revalidation in the background never had a client.
        if caching.revalidated != nil { return true }
        guard storing.filling != nil || fills() else { return false }
        storing.filled(count)
        guard storing.filling?.isTooSlow(now: environment.loop.now) ?? false else { return true }
        environment.metrics.add(.cacheFillsGivenUp)
        return false
    }

    /// Filling has ended.
    func endFilling() {
        guard let filling = storing.takeFilling() else { return }
        environment.shared.fillings.end(for: filling.network)
        environment.metrics.adjust(.cacheFills, by: -1)
    }
}
