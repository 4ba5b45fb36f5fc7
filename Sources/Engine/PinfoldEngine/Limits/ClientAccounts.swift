import HTTPCore
import Locking
import Synchronization

/// What one client network uses in this process, over all workers.
///
/// `IPNetwork.init(client:)` determines the network.
package final class ClientAccount: Sendable {
    package var network: IPNetwork { key.network }
    /// Whether its connections are those of a sender of PROXY headers that have not said yet for
    /// whom they are.
    package var isOfHeaders: Bool { key.isOfHeaders }
    fileprivate let key: ClientAccounts.Key
    /// Exchanges that are being sent to an origin, and tunnels.
    package let exchanges = Atomic<Int>(0)
    /// Renditions of stored responses that are being made for it.
    private let renditions = Atomic<Int>(0)
    /// Bytes used by its unfinished heads and handshakes.
    package let unfinishedBytes = Atomic<Int>(0)
    /// Connections; changed only under the lock of the table's shard.
    fileprivate let connections = Atomic<Int>(0)
    /// When a refusal of this client was last logged, in the loop's milliseconds.
    private let loggedAt = Atomic<Int64>(.min)

    fileprivate init(_ key: ClientAccounts.Key) { self.key = key }

    /// How many connections are open.
    package var openConnections: Int { connections.load(ordering: .relaxed) }

    /// Counts one more exchange; returns false if the limit is reached.
    package func beginExchange(limit: Int) -> Bool {
        if exchanges.add(1, ordering: .relaxed).newValue <= limit { return true }
        endExchange()
        return false
    }

    package func endExchange() { exchanges.subtract(1, ordering: .relaxed) }

    /// The most renditions that are made for one client at a time, however many it asks for.
    private static let renditionLimit = 4

    /// Counts one more rendition that is made for it; returns false if there are too many.
    func beginRendition() -> Bool {
        if renditions.add(1, ordering: .relaxed).newValue <= Self.renditionLimit { return true }
        endRendition()
        return false
    }

    func endRendition() { renditions.subtract(1, ordering: .relaxed) }

    /// Whether to log a refusal: at most one per client in `milliseconds`.
    package func mayLog(now: Int64, every milliseconds: Int64) -> Bool {
        let last = loggedAt.load(ordering: .relaxed)
        guard last == .min || now - last >= milliseconds else { return false }
        return loggedAt.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }
}

/// The clients that have connections open, by network.
///
/// It is used once per connection; the connection keeps a reference to its client's account, so
/// that requests need no lookup.
package final class ClientAccounts: Sendable {
    /// A power of two; few threads compete for one shard.
    private static let shardCount = 64

    /// A network has an account as a client, and another one as a sender of PROXY headers.
    fileprivate struct Key: Hashable {
        let network: IPNetwork
        let isOfHeaders: Bool
    }

    private let shards: [Locked<[Key: ClientAccount]>]

    package init() {
        shards = (0..<Self.shardCount).map { _ in Locked([:]) }
    }

    /// Counts one more connection of a client. Returns `nil` if it already has `limit`.
    /// - Parameter awaitsHeader: whether its PROXY header will say for whom it is.
    package func open(
        _ address: IPAddress, limit: Int, awaitsHeader: Bool = false
    ) -> ClientAccount? {
        let key = Key(network: IPNetwork(client: address), isOfHeaders: awaitsHeader)
        return shard(key).withLock { accounts in
            let account = accounts[key] ?? ClientAccount(key)
            let open = account.connections.load(ordering: .relaxed)
            guard open < limit else { return nil }
            account.connections.store(open + 1, ordering: .relaxed)
            if open == 0 { accounts[key] = account }
            return account
        }
    }

    /// Counts one more connection of a client that has some, whatever the limit.
    package func add(_ account: ClientAccount) {
        shard(account.key).withLock { _ in
            _ = account.connections.add(1, ordering: .relaxed)
        }
    }

    /// A connection of the client is gone.
    package func close(_ account: ClientAccount) {
        shard(account.key).withLock { accounts in
            let remaining = account.connections.subtract(1, ordering: .relaxed).newValue
            if remaining == 0 { accounts[account.key] = nil }
        }
    }

    /// The account of a client that has connections open.
    package func account(of address: IPAddress, awaitsHeader: Bool = false) -> ClientAccount? {
        let key = Key(network: IPNetwork(client: address), isOfHeaders: awaitsHeader)
        return shard(key).withLock { $0[key] }
    }

    /// What the clients that have the most of something have.
    package struct Use: Sendable, Equatable {
        /// Connections of the client with the most of them.
        package var connections = 0
        /// Exchanges on their way to an origin, and tunnels, of the client with the most of them.
        package var exchanges = 0

        package init() {}
    }

    /// What the clients that have the most of something have now.
    package var greatestUse: Use {
        shards.reduce(into: Use()) { use, shard in
            shard.withLock { accounts in
                for account in accounts.values {
                    use.connections = max(use.connections, account.openConnections)
                    use.exchanges = max(
                        use.exchanges, account.exchanges.load(ordering: .relaxed))
                }
            }
        }
    }

    /// How many clients have connections open.
    package var count: Int { shards.reduce(0) { sum, shard in sum + shard.withLock { $0.count } } }

    private func shard(_ key: Key) -> Locked<[Key: ClientAccount]> {
        shards[key.hashValue & (Self.shardCount - 1)]
    }
}
