import HTTPCore

extension ObservedHost {
    /// Takes over what another record of the same host has besides, such as that of another
    /// process. Of what both count, the larger count stays: they may have counted the same.
    package mutating func merge(_ other: ObservedHost) {
        firstSeen = min(firstSeen, other.firstSeen)
        lastSeen = max(lastSeen, other.lastSeen)
        forgottenChains = max(forgottenChains, other.forgottenChains)
        newKeys = max(newKeys, other.newKeys)
        newKeySeen = [newKeySeen, other.newKeySeen].compactMap { $0 }.max()
        var added: [ObservedChain] = []
        for chain in other.chains {
            if let index = chains.firstIndex(where: {
                $0.leaf.fingerprint == chain.leaf.fingerprint
            }) {
                chains[index].merge(chain)
            } else {
                added.append(chain)
            }
        }
        guard !added.isEmpty else { return }
        chains = (chains + added).sorted { $0.firstSeen < $1.firstSeen }
        while chains.count > Self.chainsLimit { forgetOne() }
    }
}

extension ObservedChain {
    fileprivate mutating func merge(_ other: ObservedChain) {
        firstSeen = min(firstSeen, other.firstSeen)
        lastSeen = max(lastSeen, other.lastSeen)
        verified = max(verified, other.verified)
        verifiedDays = max(verifiedDays, other.verifiedDays)
        lastVerified = [lastVerified, other.lastVerified].compactMap { $0 }.max()
        reported = max(reported, other.reported)
        forgottenAddresses = max(forgottenAddresses, other.forgottenAddresses)
        for path in other.paths {
            let fingerprints = path.issuers.map(\.fingerprint)
            if let index = paths.firstIndex(where: {
                $0.issuers.map(\.fingerprint) == fingerprints
            }) {
                paths[index].firstSeen = min(paths[index].firstSeen, path.firstSeen)
                paths[index].lastSeen = max(paths[index].lastSeen, path.lastSeen)
            } else if paths.count < Self.pathsLimit {
                paths.append(path)
            }
        }
        for one in other.addresses {
            if let index = addresses.firstIndex(where: { $0.address == one.address }) {
                addresses[index].firstSeen = min(addresses[index].firstSeen, one.firstSeen)
                addresses[index].lastSeen = max(addresses[index].lastSeen, one.lastSeen)
                addresses[index].count = max(addresses[index].count, one.count)
            } else if addresses.count < Self.addressesLimit {
                addresses.append(one)
            }
        }
    }
}
