import HTTPCore
import Locking
import Synchronization

/// What one client network holds in this process, over all workers.
///
/// Which network that is, `IPNetwork.init(client:)` says.
package final class ClientAccount: Sendable {
    package let network: IPNetwork
    /// Exchanges on their way to an origin, and tunnels.
    package let exchanges = Atomic<Int>(0)
    /// Bytes that its unfinished heads and handshakes take up.
    package let unfinishedBytes = Atomic<Int>(0)
    /// Connections; changed under the lock of the table's shard only.
    fileprivate let connections = Atomic<Int>(0)
    /// When a refusal of this client was logged last, in the loop's milliseconds.
    private let loggedAt = Atomic<Int64>(.min)

    fileprivate init(_ network: IPNetwork) { self.network = network }

    /// How many connections are open.
    package var openConnections: Int { connections.load(ordering: .relaxed) }

    /// Counts one more exchange; false: there are as many as there may be.
    package func beginExchange(limit: Int) -> Bool {
        if exchanges.add(1, ordering: .relaxed).newValue <= limit { return true }
        endExchange()
        return false
    }

    package func endExchange() { exchanges.subtract(1, ordering: .relaxed) }

    /// Whether a refusal is to be logged: at most one per client in so many milliseconds.
    package func mayLog(now: Int64, every milliseconds: Int64) -> Bool {
        let last = loggedAt.load(ordering: .relaxed)
        guard last == .min || now - last >= milliseconds else { return false }
        return loggedAt.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }
}

/// The clients that have connections open, by network.
///
/// Looked at once per connection; the connection keeps a reference to its client's account, so that
/// a request finds it without looking.
package final class ClientAccounts: Sendable {
    /// Power of two; few threads meet at one of them.
    private static let shardCount = 64

    private let shards: [Locked<[IPNetwork: ClientAccount]>]

    package init() {
        shards = (0..<Self.shardCount).map { _ in Locked([:]) }
    }

    /// Counts one more connection of a client. nil: it has `limit` already.
    package func open(_ address: IPAddress, limit: Int) -> ClientAccount? {
        let network = IPNetwork(client: address)
        return shard(network).withLock { accounts in
            let account = accounts[network] ?? ClientAccount(network)
            let open = account.connections.load(ordering: .relaxed)
            guard open < limit else { return nil }
            account.connections.store(open + 1, ordering: .relaxed)
            if open == 0 { accounts[network] = account }
            return account
        }
    }

    /// A connection of the client is gone.
    package func close(_ account: ClientAccount) {
        shard(account.network).withLock { accounts in
            let remaining = account.connections.subtract(1, ordering: .relaxed).newValue
            if remaining == 0 { accounts[account.network] = nil }
        }
    }

    /// The account of a client that has connections open.
    package func account(of address: IPAddress) -> ClientAccount? {
        let network = IPNetwork(client: address)
        return shard(network).withLock { $0[network] }
    }

    /// How many clients have connections open.
    package var count: Int { shards.reduce(0) { sum, shard in sum + shard.withLock { $0.count } } }

    private func shard(_ network: IPNetwork) -> Locked<[IPNetwork: ClientAccount]> {
        shards[network.hashValue & (Self.shardCount - 1)]
    }
}
