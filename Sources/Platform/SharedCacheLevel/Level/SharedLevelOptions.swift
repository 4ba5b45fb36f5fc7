import PinfoldResolver
import PinfoldTLS
import RedisProtocol
import SharedCache

/// Where the engine is that a fleet's gateways share, and how it is used.
package struct SharedLevelOptions: Sendable {
    /// How the engine is reached.
    package enum Server: Sendable {
        case unix(path: String)
        /// - Parameters:
        ///   - host: a name, or an address without brackets.
        ///   - tls: by what the engine is verified; `nil` for a connection in clear text.
        case tcp(host: String, port: UInt16, tls: TLSClientContext?)
        /// The master that Sentinels name.
        /// - Parameter tls: by what it is verified, under the name that the Sentinels give it;
        ///   `nil` for connections to it in clear text.
        case sentinels(Sentinels, tls: TLSClientContext?)
        /// The masters of a cluster.
        case cluster(Cluster)
    }

    /// A cluster, by some of its nodes.
    package struct Cluster: Sendable {
        /// Who is asked which masters there are, until one says so: names, or addresses without
        /// brackets.
        package var nodes: [RedisNode]
        /// By what a node is verified, under the name that the cluster gives it; `nil` for
        /// connections in clear text.
        package var tls: @Sendable (RedisNode) -> TLSClientContext? = { _ in nil }
        /// How long one of them may take before the next is asked.
        package var timeoutMilliseconds: Int64 = 400

        package init(_ nodes: [RedisNode]) { self.nodes = nodes }
    }

    /// Those who know which of several servers is the master, and are asked before each connection.
    package struct Sentinels: Sendable {
        /// Where they are: names, or addresses without brackets.
        package var nodes: [RedisNode]
        /// What they call the master.
        package var master: String
        /// Their own user and password, which are not the master's.
        package var user: [UInt8]?
        package var password: [UInt8]?
        /// By what they are verified; `nil` for connections to them in clear text.
        package var tls: TLSClientContext?
        /// How long one of them may take before the next is asked.
        package var timeoutMilliseconds: Int64 = 250

        package init(_ nodes: [RedisNode], master: String) {
            self.nodes = nodes
            self.master = master
        }
    }

    package var server: Server
    /// User, password and database.
    package var session = RedisSession()
    /// The names of what is stored.
    package var names: SharedName
    /// By which what is stored is verified.
    package var keyring: SharedKeyring
    /// Resolves the engine's name; `nil` if that is an address, or `localhost`.
    package var resolver: Resolver?

    /// How long a lookup may take, from when it was asked for.
    package var timeoutMilliseconds: Int64 = 20
    /// How long the engine may leave a command without a reply before the connection is given up.
    package var stallMilliseconds: Int64 = 1000
    /// The largest body that is stored.
    package var maximumObject: UInt64 = 8 << 20
    /// Up to this size a body is read completely, and put into memory
    /// (`CacheStoreOptions.wholeBodyBytes`).
    package var wholeBodyBytes: UInt64 = 1 << 20
    /// Up to this size a body is stored with its head.
    package var inlineBodyBytes: UInt64 = 64 << 10
    /// The variants of one key at most; another one is not stored.
    package var maximumVariants: Int64 = 32
    /// Bytes of responses that wait to be sent.
    package var queueBytes = 32 << 20
    /// Commands that wait to be sent, lookups included.
    package var queueCommands = 8192
    /// For how long a response is kept after it has become stale, to be confirmed by its origin.
    package var graceSeconds: Int64 = 3600
    /// How long a lookup waits for the response that another gateway fetches; 0: gateways do not
    /// wait for each other.
    package var waitMilliseconds: Int64 = 2000
    /// How long a lease lasts that its holder does not prolong: not as long as others wait, so that
    /// one of them takes the place of a gateway that has died.
    package var leaseMilliseconds: Int64 = 1500
    /// How long it is prolonged.
    package var longestLeaseMilliseconds: Int64 = 300_000
    /// How long nobody waits for a response after one could not be stored, or took too long.
    package var noteMilliseconds: Int64 = 30_000
    /// Lookups that wait for other gateways at most; a quarter of them for one key.
    package var waitingLookups = 16_384
    /// Keys that are remembered while the engine cannot be told that they were replaced here;
    /// beyond them nothing is used that it has from before.
    package var lostKeys = 8192
    /// Keys that are remembered while they cannot be removed; beyond them everything is.
    package var lostRemovals = 65_536
    /// How long ``SharedLevel/close()`` waits for what is queued.
    package var closeMilliseconds: Int64 = 2000
    /// How long it is not taken into use again after an error that will hardly pass by itself.
    package var holdOffMilliseconds: Int64 = 5000
    /// The gateway's name, for those who look at the fleet.
    package var gateway = Array("gateway".utf8)
    /// How often what others have purged is read.
    package var pollMilliseconds: Int64 = 100
    /// For how long the gateway trusts what it has stored itself while it does not hear from the
    /// engine; after that everything is confirmed by its origin.
    package var graceMilliseconds: Int64 = 10_000
    /// Where it is kept up to which purge the gateway has carried everything out; `nil` if it
    /// stores nothing that outlives it.
    package var positionFile: String?
    /// Whether something may be stored in the gateway's own tiers when it begins.
    package var hasOwnEntries = false
    /// Purges and removed keys that the engine keeps for gateways that are away, roughly.
    package var keptPurges: Int64 = 16_384
    package var keptRemovals: Int64 = 65_536
    package var breaker = CircuitBreaker.Options()
    package var backoff = ReconnectBackoff()

    package init(server: Server, names: SharedName, keyring: SharedKeyring) {
        self.server = server
        // While there is no master those are asked often who know when there is one: that costs
        // them little.
        switch server {
        case .sentinels, .cluster: backoff = ReconnectBackoff(longestMilliseconds: 1000)
        case .unix, .tcp: break
        }
        self.names = names
        self.keyring = keyring
    }
}
