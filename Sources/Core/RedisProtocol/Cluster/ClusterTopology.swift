/// Why a reply does not describe a cluster.
package enum ClusterReplyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It is not an array of shards or ranges.
    case malformed
    /// A range of slots is none, or beyond the last one.
    case malformedRange(Int64, Int64)
    /// A slot is two nodes'.
    case overlap(slot: UInt16)
    case tooManyNodes(limit: Int)

    package var description: String {
        switch self {
        case .malformed: "the reply is not a list of shards or of ranges of slots"
        case .malformedRange(let first, let last): "\(first) to \(last) is no range of slots"
        case .overlap(let slot): "slot \(slot) belongs to two nodes"
        case .tooManyNodes(let limit): "there are more than \(limit) nodes"
        }
    }
}

/// Which master has which slots of a cluster.
package struct ClusterTopology: Sendable, Hashable {
    /// The masters.
    package private(set) var nodes: [RedisNode] = []
    /// For each slot the index of its master, or `none`.
    private var owners: [UInt16]

    private static let none = UInt16.max
    /// How many masters there may be.
    package static let maximumNodes = 1024

    /// A cluster of which nothing is known.
    package init() { owners = Array(repeating: Self.none, count: ClusterSlot.count) }

    /// The master of a slot; `nil` if none is known.
    package func owner(of slot: UInt16) -> RedisNode? {
        let index = owners[Int(slot)]
        return index == Self.none ? nil : nodes[Int(index)]
    }

    /// Whether every slot has a master.
    package var isComplete: Bool { !owners.contains(Self.none) }

    /// Whether some slot is this node's.
    package func owns(_ node: RedisNode) -> Bool {
        nodes.firstIndex(of: node).map { owners.contains(UInt16($0)) } ?? false
    }

    /// A node has replied that a slot is another's (MOVED).
    /// - Returns: `false` if there are too many nodes.
    package mutating func move(_ slot: UInt16, to node: RedisNode) -> Bool {
        guard let index = index(of: node) else { return false }
        owners[Int(slot)] = index
        return true
    }

    private mutating func index(of node: RedisNode) -> UInt16? {
        if let index = nodes.firstIndex(of: node) { return UInt16(index) }
        guard nodes.count < Self.maximumNodes else { return nil }
        nodes.append(node)
        return UInt16(nodes.count - 1)
    }

    private mutating func assign(
        _ first: Int64, _ last: Int64, to node: RedisNode
    ) throws(ClusterReplyError) {
        guard 0 <= first, first <= last, last < ClusterSlot.count else {
            throw .malformedRange(first, last)
        }
        guard let index = index(of: node) else { throw .tooManyNodes(limit: Self.maximumNodes) }
        for slot in Int(first)...Int(last) {
            guard owners[slot] == Self.none else { throw .overlap(slot: UInt16(slot)) }
            owners[slot] = index
        }
    }

    // MARK: Replies

    /// Reads the reply to `CLUSTER SLOTS`: for each range its first and last slot, its master and
    /// its replicas, each of these with host, port and more.
    /// - Parameter asked: the node that replied: if it does not know its own address, it says none.
    package init(slots reply: RESPValue, asked: RedisNode) throws(ClusterReplyError) {
        self.init()
        guard let ranges = reply.elements else { throw .malformed }
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3, let first = parts[0].integer,
                let last = parts[1].integer, let master = parts[2].elements, master.count >= 2,
                let port = master[1].integer
            else { throw .malformed }
            guard let node = Self.node(master[0], port: port, asked: asked) else {
                throw .malformed
            }
            try assign(first, last, to: node)
        }
    }

    /// Reads the reply to `CLUSTER SHARDS` (Redis 7): for each shard its ranges, and its nodes as
    /// maps. A shard whose master has failed keeps its slots.
    /// - Parameter isSecure: whether the nodes' port for TLS is used.
    package init(
        shards reply: RESPValue, asked: RedisNode, isSecure: Bool
    ) throws(ClusterReplyError) {
        self.init()
        guard let shards = reply.elements else { throw .malformed }
        for shard in shards {
            guard let slots = shard.value(of: "slots")?.elements, slots.count.isMultiple(of: 2),
                let members = shard.value(of: "nodes")?.elements
            else { throw .malformed }
            // A shard without slots is one that was just added.
            guard !slots.isEmpty else { continue }
            let masters = members.filter { $0.value(of: "role")?.text == "master" }
            // During a failover there may be two for a moment: the one that is not gone.
            let master =
                masters.first { $0.value(of: "health")?.text == "online" } ?? masters.first
            guard let master else { throw .malformed }
            let port = master.value(of: isSecure ? "tls-port" : "port")?.integer
            let host = master.value(of: "endpoint") ?? master.value(of: "ip") ?? .null
            guard let port, let node = Self.node(host, port: port, asked: asked) else {
                throw .malformed
            }
            for index in stride(from: 0, to: slots.count, by: 2) {
                guard let first = slots[index].integer, let last = slots[index + 1].integer else {
                    throw .malformed
                }
                try assign(first, last, to: node)
            }
        }
    }

    /// A null, an empty host and `?` stand for the address at which the node was asked.
    private static func node(_ host: RESPValue, port: Int64, asked: RedisNode) -> RedisNode? {
        switch host {
        case .null: return RedisNode(host: Array(asked.host.utf8), port: port)
        case .bulk(let bytes), .simple(let bytes):
            let isUnknown = bytes.isEmpty || bytes == [UInt8(ascii: "?")]
            return RedisNode(host: isUnknown ? Array(asked.host.utf8) : bytes, port: port)
        case .boolean, .integer, .double, .bigNumber, .verbatim, .error, .array, .set, .map:
            return nil
        }
    }
}
