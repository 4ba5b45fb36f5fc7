import Authentication
import CachePolicy
import HTTPCore
import PinfoldConfiguration

// What tables, the cache and tunnels make of an origin.

extension Dictionary where Value == Origin {
    /// Forgets the origins that are unused and not referenced elsewhere.
    mutating func keepNeeded() {
        var known = Array(self)
        self = [:]
        for index in known.indices where Origin.isStillNeeded(&known[index].value) {
            self[known[index].key] = known[index].value
        }
    }
}

extension ForwardingConfiguration {
    /// The part of it that the cache key must contain.
    var traits: ReverseTraits {
        var traits: ReverseTraits = []
        if mode != .none { traits.insert(.forwardsHost) }
        if mode != .none, clientsSpeakTLS { traits.insert(.forwardsTLS) }
        if keepsHost { traits.insert(.keepsHost) }
        if trustsSomebody { traits.insert(.trustsProxies) }
        return traits
    }
}

extension Origin {
    /// The basis of a connection that leaves HTTP.
    func basis(
        from client: Endpoint?, as identity: Identity?, request: AccessRequest?,
        at endpoint: Endpoint?, through parent: UpstreamProxy?
    ) -> TunnelBasis {
        TunnelBasis(
            BoundAuthority(host: key.host, port: key.requestedPort),
            by: key.isFixed ? .fixed(isSecure: key.isSecure) : .request(isSecure: key.isSecure),
            from: client, as: identity, request: request, at: endpoint, through: parent,
            proof: key.isSecure ? .verified : .none, onSocket: key.unixPath != nil, under: policy)
    }
}
