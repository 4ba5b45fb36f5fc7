import HTTPCore
import Trust

/// What is remembered of one server: its certificates, and by which addresses they were seen.
package struct ObservedHost: Hashable, Sendable {
    package var name: ObservedName
    /// Seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64
    /// In the order in which they were first seen.
    package var chains: [ObservedChain] = []
    /// Certificates that gave way to others.
    package var forgottenChains: UInt64 = 0
    /// How often a key came up that was new.
    package var newKeys: UInt64 = 0
    /// When the last one did, in seconds since 1970; `nil` if none has.
    package var newKeySeen: Int64?

    /// The most certificates that are remembered of a host: four years of renewals every 47 days.
    package static let chainsLimit = 32

    /// A host that has not been seen yet.
    package init(name: ObservedName, time: Int64) {
        self.name = name
        firstSeen = time
        lastSeen = time
    }

    /// What a sighting shows that was not known.
    package enum Novelty: Hashable, Sendable {
        /// The host's first certificate.
        case firstCertificate
        /// Another certificate for a key that was known.
        case renewedCertificate
        /// A key that no certificate of the host had before.
        ///
        /// - Parameter issuerIsKnown: whether a key above it has been above another one of the
        ///   host's.
        case newKey(issuerIsKnown: Bool)
    }

    /// Remembers a sighting.
    ///
    /// - Returns: what was new; `nil` if nothing was but an address, a path or the count.
    @discardableResult
    package mutating func note(_ sighting: Sighting) -> Novelty? {
        firstSeen = min(firstSeen, sighting.time)
        lastSeen = max(lastSeen, sighting.time)
        if let index = chains.firstIndex(where: {
            $0.leaf.fingerprint == sighting.leaf.fingerprint
        }) {
            chains[index].note(sighting)
            return nil
        }
        let novelty = novelty(of: sighting)
        if case .newKey = novelty {
            newKeys &+= 1
            newKeySeen = sighting.time
        }
        var chain = ObservedChain(
            leaf: sighting.leaf, paths: [], firstSeen: sighting.time, lastSeen: sighting.time)
        chain.note(sighting)
        chains.append(chain)
        if chains.count > Self.chainsLimit { forgetOne() }
        return novelty
    }

    private func novelty(of sighting: Sighting) -> Novelty {
        guard !chains.isEmpty else { return .firstCertificate }
        if chains.contains(where: { $0.leaf.key == sighting.leaf.key }) {
            return .renewedCertificate
        }
        // Roots alone say little: nearly everybody's certificates lead to a few of them. But what
        // is pinned may be a root, and a change of intermediates under it is no surprise.
        let above = Set(sighting.paths.joined().map(\.key))
        return .newKey(
            issuerIsKnown: chains.contains { chain in
                chain.paths.contains { $0.issuers.contains { above.contains($0.key) } }
            })
    }

    /// Forgets the certificate that was seen longest ago, of those seen by the address that has
    /// the most: an address with ever new certificates displaces its own.
    mutating func forgetOne() {
        var held: [IPAddress?: Int] = [:]
        for chain in chains { held[chain.addresses.first?.address, default: 0] += 1 }
        let most = held.values.max() ?? 0
        let next = chains.indices.dropLast().filter {
            held[chains[$0].addresses.first?.address] == most
        }.min { chains[$0].lastSeen < chains[$1].lastSeen }
        chains.remove(at: next ?? 0)
        forgottenChains &+= 1
    }
}

extension ObservedChain {
    /// Remembers another sighting of the certificate.
    mutating func note(_ sighting: Sighting) {
        firstSeen = min(firstSeen, sighting.time)
        lastSeen = max(lastSeen, sighting.time)
        if sighting.isReported {
            reported &+= sighting.count
        } else {
            verified &+= sighting.count
            let day = sighting.time / ProposalOptions.day
            if lastVerified.map({ $0 / ProposalOptions.day < day }) ?? true { verifiedDays &+= 1 }
            lastVerified = max(lastVerified ?? sighting.time, sighting.time)
        }
        for issuers in sighting.paths { note(path: issuers, at: sighting.time) }
        if let address = sighting.address { note(address, sighting) }
    }

    private mutating func note(path issuers: [ObservedCertificate], at time: Int64) {
        let issuers = Array(issuers.prefix(Self.issuersLimit))
        let fingerprints = issuers.map(\.fingerprint)
        if let index = paths.firstIndex(where: {
            $0.issuers.lazy.map(\.fingerprint).elementsEqual(fingerprints)
        }) {
            paths[index].lastSeen = max(paths[index].lastSeen, time)
            return
        }
        let path = ObservedPath(issuers: issuers, firstSeen: time, lastSeen: time)
        guard paths.count >= Self.pathsLimit else { return paths.append(path) }
        guard let oldest = paths.indices.min(by: { paths[$0].lastSeen < paths[$1].lastSeen }),
            paths[oldest].lastSeen < time
        else { return }
        paths[oldest] = path
    }

    private mutating func note(_ address: IPAddress, _ sighting: Sighting) {
        if let index = addresses.firstIndex(where: { $0.address == address }) {
            addresses[index].lastSeen = max(addresses[index].lastSeen, sighting.time)
            addresses[index].count &+= sighting.count
            return
        }
        addresses.append(
            ObservedAddress(
                address: address, firstSeen: sighting.time, lastSeen: sighting.time,
                count: sighting.count))
        guard addresses.count > Self.addressesLimit,
            let oldest = addresses.indices.dropLast().min(by: {
                addresses[$0].lastSeen < addresses[$1].lastSeen
            })
        else { return }
        addresses.remove(at: oldest)
        forgottenAddresses &+= 1
    }
}
