import RedisProtocol

/// `cache.shared`: the engine that several gateways share as the last level of their caches.
package struct SharedCacheConfiguration: Sendable, Equatable {
    /// Where the engine is.
    package enum Place: Sendable, Equatable {
        case url(RedisURL)
        /// The master that Sentinels name.
        case sentinels(SharedCacheSentinels)
        /// The masters of a cluster.
        case cluster(SharedCacheCluster)
    }

    /// `nil` only until it has been read.
    package var place: Place?
    /// The user of the engine; `nil` for its default one.
    package var user: String?
    /// Where the password comes from; `nil` if none is sent.
    package var passwordSource: SecretSource?
    package var password: SecretText?
    /// What the fleet's gateways have in common, and nobody else; `nil` if the engine can be
    /// reached by a Unix socket alone, whose permissions then protect it.
    package var keys: SharedCacheKeys?
    /// How long a lookup may take before the request goes on without it.
    package var timeoutMilliseconds: Int64 = 20
    /// How long a request waits for the response that another gateway of the fleet fetches; 0 if
    /// they do not wait for each other.
    package var waitMilliseconds: Int64 = 2_000
    /// The largest body that is stored in the engine.
    package var maximumObjectBytes = 8 << 20
    /// What all names in the engine begin with.
    package var prefix = "pinfold:"
    /// What this gateway is called in the fleet; `nil` for the machine's name.
    package var name: String?
    /// How long the gateway may be without the engine before it confirms what it has stored with
    /// the servers: it may have missed a purge.
    package var graceMilliseconds: Int64 = 10_000

    /// Creates the defaults.
    package init() {}

    /// The user, wherever it is written.
    package var userInForce: String? {
        if let user { return user }
        if case .url(let url) = place { return url.user }
        return nil
    }

    /// Where the engine is, as logs and the status show it.
    package var placeText: String {
        switch place {
        case .url(let url): "\(url)"
        case .sentinels(let sentinels): "\(sentinels.master), by Sentinels"
        case .cluster(let cluster):
            "the cluster of \(cluster.nodes.map(\.description).joined(separator: ", "))"
        case nil: ""
        }
    }
}

/// The Sentinels that know which of several servers is the master.
package struct SharedCacheSentinels: Sendable, Equatable {
    /// The port where none is written.
    package static let defaultPort: UInt16 = 26_379

    /// Where they are, in the order in which they are asked.
    package var nodes: [RedisNode] = []
    /// Whether they, and the master, are reached by TLS.
    package var isSecure = false
    /// What they call the master.
    package var master = ""
    /// Their own user and password, which are not the master's.
    package var user: String?
    package var passwordSource: SecretSource?
    package var password: SecretText?

    package init() {}
}

/// Some nodes of a cluster, which say what the others are.
package struct SharedCacheCluster: Sendable, Equatable {
    /// The port where none is written.
    package static let defaultPort: UInt16 = 6379
    /// How many may be written.
    package static let maximumNodes = 32

    /// In the order in which they are asked.
    package var nodes: [RedisNode]
    /// Whether all nodes are reached by TLS.
    package var isSecure: Bool

    package init(_ nodes: [RedisNode], isSecure: Bool) {
        self.nodes = nodes
        self.isSecure = isSecure
    }
}

/// The secrets of a fleet, and the file that they are in.
package struct SharedCacheKeys: Sendable, Equatable {
    /// The absolute path.
    package var path: String
    /// One of each line: the first is the one that is written with, and all are accepted.
    package var secrets: [SecretText]

    package init(path: String, secrets: [SecretText]) {
        self.path = path
        self.secrets = secrets
    }
}
