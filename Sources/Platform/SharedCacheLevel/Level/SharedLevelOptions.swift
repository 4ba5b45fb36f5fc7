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
    /// Keys that are remembered while they cannot be removed; beyond them everything is.
    package var lostKeys = 8192
    /// How long ``SharedLevel/close()`` waits for what is queued.
    package var closeMilliseconds: Int64 = 2000
    /// How long it is not taken into use again after an error that will hardly pass by itself.
    package var holdOffMilliseconds: Int64 = 5000
    package var breaker = CircuitBreaker.Options()
    package var backoff = ReconnectBackoff()

    package init(server: Server, names: SharedName, keyring: SharedKeyring) {
        self.server = server
        self.names = names
        self.keyring = keyring
    }
}
