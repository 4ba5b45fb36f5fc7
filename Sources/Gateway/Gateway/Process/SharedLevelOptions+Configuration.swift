import CLinux
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS
import RedisProtocol
import SharedCache
import SharedCacheLevel

/// Why there can be no shared level. What is configured has been checked.
enum SharedLevelSetupError: Error, CustomStringConvertible {
    case outOfMemory
    case noEngine

    var description: String {
        switch self {
        case .noEngine: "cache.shared: no engine is configured"
        case .outOfMemory: "cache.shared: there is no memory for its secrets"
        }
    }
}

extension SharedLevelOptions {
    /// What `cache.shared` says.
    ///
    /// An engine is verified like any server: by the entry of `hosts` for its host and port, pins
    /// included, or else by `tls`, and so is each node of a cluster under the name that the cluster
    /// gives it; Sentinels and their master by `tls`.
    init(
        _ shared: SharedCacheConfiguration, in cache: CacheConfiguration,
        _ policy: PolicySnapshot, _ resolver: Resolver
    ) throws(SharedLevelSetupError) {
        guard let names = SharedName(prefix: Array(shared.prefix.utf8)),
            let keyring = Self.keyring(shared.keys)
        else { throw .outOfMemory }
        let server: Server
        switch shared.place {
        case .url(let url):
            switch url.server {
            case .unix(let path): server = .unix(path: path)
            case .tcp(let host, let port, let isSecure):
                let entry = policy.configuration.hostEntry(host: host.utf8.span, port: port)
                server = .tcp(
                    host: host, port: port, tls: isSecure ? policy.tls(entryIndex: entry) : nil)
            }
        case .sentinels(let configured):
            // Who the master is, and so its entry of `hosts`, is known only later.
            let tls = configured.isSecure ? policy.tls(entryIndex: nil) : nil
            var sentinels = Sentinels(configured.nodes, master: configured.master)
            sentinels.user = configured.user.map { Array($0.utf8) }
            sentinels.password = configured.password.map { Array($0.text.utf8) }
            sentinels.tls = tls
            server = .sentinels(sentinels, tls: tls)
        case .cluster(let configured):
            var cluster = Cluster(configured.nodes)
            if configured.isSecure {
                cluster.tls = { node in
                    let entry = policy.configuration.hostEntry(
                        host: node.host.utf8.span, port: node.port)
                    return policy.tls(entryIndex: entry)
                }
            }
            server = .cluster(cluster)
        case nil: throw .noEngine
        }
        self.init(server: server, names: names, keyring: keyring)
        session.user = shared.userInForce.map { Array($0.utf8) }
        session.password = shared.password.map { Array($0.text.utf8) }
        if case .url(let url) = shared.place { session.database = url.database }
        session.clientName = Array("pinfold".utf8)
        self.resolver = resolver
        timeoutMilliseconds = shared.timeoutMilliseconds
        waitMilliseconds = shared.waitMilliseconds
        // Not as long as others wait, so that one of them takes the place of a dead gateway.
        leaseMilliseconds = min(leaseMilliseconds, max(1, waitMilliseconds * 3 / 4))
        maximumObject = UInt64(shared.maximumObjectBytes)
        maximumVariants = Int64(cache.variantsPerURL)
        gateway = Array((shared.name ?? MachineName.text).utf8)
        graceMilliseconds = shared.graceMilliseconds
        guard cache.diskBytes > 0 else { return }
        positionFile = cache.fleetPositionFile
        hasOwnEntries = access(cache.databaseFile, F_OK) == 0
    }

    private static func keyring(_ keys: SharedCacheKeys?) -> SharedKeyring? {
        guard let keys else { return SharedSecret.none.flatMap { SharedKeyring([$0]) } }
        let secrets = keys.secrets.compactMap { SharedSecret(Array($0.text.utf8)) }
        return secrets.count == keys.secrets.count ? SharedKeyring(secrets) : nil
    }
}
