import RedisProtocol
import SharedCache

/// Which connection leads to the master of each slot of a cluster. Used by the level's thread
/// alone.
///
/// Changes of one key have to arrive in their order, although its slot may move from one node to
/// another. A slot that has moved is therefore *unsettled* until its old node has answered
/// everything that was sent before: what could not be removed there is removed at the new one
/// before anything is looked for there. Until then nothing of the slot is found.
struct ClusterLinks {
    /// Why a slot is not served at present.
    struct Unsettled {
        /// Everything that was sent to this node until then is to be answered first.
        var link: ServerLink
        var through: UInt64
        /// When it is tried again to remove what the cluster is moving to another node; `nil` if
        /// the slot has moved.
        var retryAt: Int64?
    }

    /// The slot of the fleet's streams, and of what else all gateways read.
    let fleetSlot: UInt16
    private(set) var topology = ClusterTopology()
    /// Connections besides the one to the master of the fleet's slot.
    private(set) var links: [ServerLink] = []
    private(set) var unsettled: [UInt16: Unsettled] = [:]
    private var owners = [ServerLink?](repeating: nil, count: ClusterSlot.count)

    init(_ names: SharedName) { fleetSlot = ClusterSlot.of(names.stream.span) }

    /// The master of the fleet's slot; `nil` if none is known.
    var home: RedisNode? { topology.owner(of: fleetSlot) }

    // MARK: Slots

    /// The connection to a slot's master; `nil` if it cannot be asked at present.
    func link(of slot: UInt16) -> ServerLink? {
        guard let link = owners[Int(slot)], link.isInUse, unsettled.isEmpty || !isUnsettled(slot)
        else { return nil }
        return link
    }

    /// The same, even if the slot is unsettled.
    func owner(of slot: UInt16) -> ServerLink? { owners[Int(slot)] }

    private func isUnsettled(_ slot: UInt16) -> Bool { unsettled[slot] != nil }

    private mutating func give(_ slot: UInt16, to link: ServerLink?) {
        let old = owners[Int(slot)]
        guard old !== link else { return }
        owners[Int(slot)] = link
        guard let old, old.answered < old.asked else {
            if unsettled[slot]?.retryAt != nil { unsettled[slot] = nil }
            return
        }
        // One that had moved already has got nothing from the node that it leaves now.
        if let known = unsettled[slot], known.retryAt == nil { return }
        unsettled[slot] = Unsettled(link: old, through: old.asked)
    }

    /// The old node has answered all.
    mutating func settled(_ slot: UInt16) { unsettled[slot] = nil }

    /// A node has replied that a change is another's business while the slot is moving.
    mutating func isMoving(_ slot: UInt16, from link: ServerLink, retryAt: Int64) {
        guard unsettled[slot] == nil else { return }
        unsettled[slot] = Unsettled(link: link, through: link.asked, retryAt: retryAt)
    }

    /// What could not be removed of a slot that is moving has been sent again.
    mutating func wasRetried(_ slot: UInt16, on link: ServerLink, retryAt: Int64) {
        unsettled[slot] = Unsettled(link: link, through: link.asked, retryAt: retryAt)
    }

    // MARK: Topologies

    /// The cluster has said which masters there are.
    /// - Parameters:
    ///   - home: the connection to the master of the fleet's slot.
    ///   - make: makes a connection to another one.
    /// - Returns: connections that have begun, and those that are not needed any longer.
    mutating func adopt(
        _ topology: ClusterTopology, home: ServerLink, making make: (RedisNode) -> ServerLink
    ) -> (new: [ServerLink], gone: [ServerLink]) {
        self.topology = topology
        var byNode: [RedisNode: ServerLink] = [:]
        for link in links { if let node = link.node { byNode[node] = link } }
        if let node = home.node { byNode[node] = home }
        var new: [ServerLink] = []
        for slot in 0..<UInt16(ClusterSlot.count) {
            guard let node = topology.owner(of: slot) else {
                give(slot, to: nil)
                continue
            }
            let link: ServerLink
            if let known = byNode[node] {
                link = known
            } else {
                link = make(node)
                byNode[node] = link
                new.append(link)
            }
            give(slot, to: link)
        }
        let used = Set(owners.compactMap { $0.map(ObjectIdentifier.init) })
        let gone = links.filter { !used.contains(ObjectIdentifier($0)) }
        links = links.filter { used.contains(ObjectIdentifier($0)) } + new
        return (new, gone)
    }

    /// A node has replied that a slot of its own is another's from now on (MOVED).
    /// - Returns: the topology with that; `nil` if it is known, or too much.
    func topology(
        moving slot: UInt16, from link: ServerLink, to node: RedisNode
    ) -> ClusterTopology? {
        guard owners[Int(slot)] === link, topology.owner(of: slot) != node else { return nil }
        var changed = topology
        return changed.move(slot, to: node) ? changed : nil
    }
}
