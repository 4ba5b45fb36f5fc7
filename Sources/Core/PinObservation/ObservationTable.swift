import HTTPCore

/// The servers that are remembered, within limits on their number and on their bytes.
///
/// A host belongs to the network of the client for which it was first connected to. When there is
/// no room, the host seen longest ago gives way, of the network that holds the most: a client that
/// asks for ever new names displaces its own.
package struct ObservationTable {
    /// The most hosts.
    package static let hostsLimit = 4096
    /// The most bytes of all hosts together, as they are written.
    package static let bytesLimit = 16 << 20

    private var table = ShareTable<ObservedName, Entry>(limit: .max)
    private let hostsLimit: Int
    private let bytesLimit: Int
    /// Hosts that gave way.
    package private(set) var forgotten: UInt64 = 0

    /// A host, and whose share it counts towards.
    package struct Entry: Sendable {
        package var host: ObservedHost
        package var client: IPNetwork?

        package init(host: ObservedHost, client: IPNetwork?) {
            self.host = host
            self.client = client
        }
    }

    /// - Parameters:
    ///   - hostsLimit: the most hosts.
    ///   - bytesLimit: the most bytes of all together, as they are written.
    package init(hostsLimit: Int = Self.hostsLimit, bytesLimit: Int = Self.bytesLimit) {
        self.hostsLimit = hostsLimit
        self.bytesLimit = bytesLimit
    }

    /// The number of hosts.
    package var count: Int { table.count }
    /// Their bytes.
    package var bytes: Int { table.weight }
    /// All of them, by name.
    package var hosts: [ObservedHost] {
        table.values.map(\.host).sorted { one, other in
            (one.name.host, one.name.port) < (other.name.host, other.name.port)
        }
    }

    /// What is remembered of a host.
    package func entry(_ name: ObservedName) -> Entry? { table.value(of: name) }

    /// Remembers a sighting.
    ///
    /// - Parameter client: for whom a connection was made to the host; `nil` for nobody.
    /// - Returns: what was new, and which hosts gave way.
    package mutating func note(
        _ sighting: Sighting, for client: IPNetwork?
    ) -> (novelty: ObservedHost.Novelty?, forgotten: [ObservedName]) {
        var entry =
            table.use(sighting.name)
            ?? Entry(
                host: ObservedHost(name: sighting.name, time: sighting.time), client: client)
        let novelty = entry.host.note(sighting)
        return (novelty, keep(entry))
    }

    /// Puts a host in place of what is remembered of it.
    ///
    /// - Returns: the hosts that gave way.
    package mutating func keep(_ entry: Entry) -> [ObservedName] {
        let weight = entry.host.byteCount
        if table.value(of: entry.host.name) == nil {
            table.insert(entry, for: entry.host.name, of: entry.client, weight: weight)
        } else {
            table.update(entry, for: entry.host.name, weight: weight)
        }
        var gone: [ObservedName] = []
        while table.count > hostsLimit || table.weight > bytesLimit,
            let next = table.removeNext()
        {
            gone.append(next.host.name)
            forgotten &+= 1
        }
        return gone
    }
}

extension ObservedHost {
    /// About how many bytes it takes as it is written.
    package var byteCount: Int {
        var bytes = 160 + name.host.utf8.count
        for chain in chains {
            bytes += 270 + chain.leaf.subject.utf8.count + chain.leaf.issuer.utf8.count
            bytes += chain.addresses.count * 72
            for path in chain.paths {
                bytes += 60
                for issuer in path.issuers {
                    bytes += 160 + issuer.subject.utf8.count + issuer.issuer.utf8.count
                }
            }
        }
        return bytes
    }
}
