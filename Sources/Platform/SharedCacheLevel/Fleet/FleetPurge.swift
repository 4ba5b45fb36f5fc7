import CachePolicy
import CacheStore
import SharedCache

/// A purge that all gateways of the fleet are to carry out.
struct FleetPurge: Sendable, Hashable {
    let pattern: PurgePattern
    let isSoft: Bool
    /// When it was purged, in seconds since 1970 on the own clock.
    let seconds: Int64

    static func everything(isSoft: Bool, at seconds: Int64) -> FleetPurge {
        FleetPurge(pattern: .everything, isSoft: isSoft, seconds: seconds)
    }

    /// What a store has purged.
    static func all(of purges: [Purge], at seconds: Int64) -> [FleetPurge] {
        purges.flatMap { purge in
            PurgePattern.all(of: purge.scope).map {
                // What is too long for the stream is as hard as it could be.
                guard $0.isWithinLimits else {
                    return everything(isSoft: purge.isSoft, at: seconds)
                }
                return FleetPurge(pattern: $0, isSoft: purge.isSoft, seconds: seconds)
            }
        }
    }

    /// What a store is to purge.
    var purge: Purge { Purge(pattern.scope, isSoft: isSoft) }
}

extension PurgePattern {
    fileprivate static func all(of scope: Purge.Scope) -> [PurgePattern] {
        switch scope {
        case .keys(let keys):
            let uris = keys.map { key in
                key.bytes.withUnsafeBytes { [UInt8](StoredURI($0).uri) }
            }
            return Set(uris).map { .key($0) }
        case .uri(let uri): return [.key(uri)]
        case .prefix(let prefix): return [.prefix(prefix)]
        case .tag(let tag, let origin): return [.tag(tag, origin: origin)]
        case .everything: return [.everything]
        case .host(let host):
            let reach: Reach =
                switch host.reach {
                case .exact: .exact
                case .oneLabel: .oneLabel
                case .anyDepth: .anyDepth
                }
            return [.host(reach, name: host.name, port: host.port)]
        }
    }

    fileprivate var scope: Purge.Scope {
        switch self {
        case .everything: return .everything
        case .host(let reach, let name, let port):
            let own: PurgeHost.Reach =
                switch reach {
                case .exact: .exact
                case .oneLabel: .oneLabel
                case .anyDepth: .anyDepth
                }
            return .host(PurgeHost(own, name, port: port))
        case .tag(let tag, let origin): return .tag(tag, origin: origin)
        case .prefix(let prefix): return .prefix(prefix)
        case .key(let uri): return .uri(uri)
        }
    }

    /// The same for the table of purges that values are compared with.
    var banned: BanPattern {
        switch scope {
        case .everything: .everything
        case .host(let host): .host(host)
        case .tag(let tag, let origin): .tag(tag, origin: origin)
        case .prefix(let prefix): .prefix(prefix)
        case .uri(let uri): .key(uri)
        // No pattern is one of keys.
        case .keys: .everything
        }
    }
}
