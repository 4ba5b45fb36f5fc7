import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCache
import SharedCacheLevel
import TestSupport

/// A real cluster of a test's own: masters with an equal part of the slots each, and replicas of
/// the first ones.
final class EngineCluster {
    let engines: [EngineProcess]
    let places: [LoopbackPlace]
    /// How many of them were made masters.
    let masters: Int

    init(masters: Int = 3, replicas: Int = 0, _ arguments: [String] = []) throws {
        self.masters = masters
        let places = try (0..<masters + replicas).map { _ in try LoopbackPlace.drawn() }
        self.places = places
        let buses = try places.map { try LoopbackPlace.drawn($0.host) }
        engines = try zip(places, buses).map { place, bus in
            try EngineProcess(
                [
                    "--bind", place.host, "--port", "\(place.port)", "--cluster-enabled", "yes",
                    "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000",
                    "--cluster-port", "\(bus.port)", "--cluster-announce-ip", place.host,
                    "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0",
                    "--cluster-replica-validity-factor", "0",
                ] + arguments)
        }
        for number in 0..<masters {
            let slots = slots(of: number)
            try tell(
                number, "CLUSTER", "ADDSLOTSRANGE", "\(slots.lowerBound)", "\(slots.upperBound)")
            try tell(number, "CLUSTER", "SET-CONFIG-EPOCH", "\(number + 1)")
        }
        for number in engines.indices.dropFirst() {
            try tell(
                number, "CLUSTER", "MEET", places[0].host, "\(places[0].port)",
                "\(buses[0].port)")
        }
        try awaitAll("a whole cluster") { knowsAll($0) }
        for number in 0..<replicas {
            try tell(masters + number, "CLUSTER", "REPLICATE", try id(of: number))
        }
        try awaitAll("a cluster that is ready") { number in
            let info = (try? engines[number].ask("CLUSTER", "INFO"))?.text ?? ""
            return info.contains("cluster_state:ok")
                && (number < masters || isFollowing(number))
        }
    }

    /// The slots that a master has at first.
    func slots(of number: Int) -> ClosedRange<Int> {
        number * ClusterSlot.count / masters...(number + 1) * ClusterSlot.count / masters - 1
    }

    private func awaitAll(_ what: String, _ isSo: (Int) -> Bool) throws {
        guard eventually({ engines.indices.allSatisfy(isSo) }) else {
            throw EngineProcess.EngineProcessError(text: "there is not \(what)")
        }
    }

    private func knowsAll(_ number: Int) -> Bool {
        let info = (try? engines[number].ask("CLUSTER", "INFO"))?.text ?? ""
        return info.contains("cluster_known_nodes:\(engines.count)\r")
            && info.contains("cluster_slots_assigned:16384\r")
    }

    private func isFollowing(_ number: Int) -> Bool {
        let role = (try? engines[number].ask("ROLE"))?.elements ?? []
        return role.count > 3 && role[3].text == "connected"
    }

    /// Tells a node something that it does not refuse.
    func tell(_ number: Int, _ words: String...) throws {
        let reply = try engines[number].ask(RedisCommand(words.map { Array($0.utf8) }))
        if case .error(let text) = reply {
            throw EngineProcess.EngineProcessError(
                text: "\(words): \(String(decoding: text, as: UTF8.self))")
        }
    }

    /// The number by which nodes know a node.
    func id(of number: Int) throws -> String {
        try engines[number].ask("CLUSTER", "MYID").text ?? ""
    }

    /// Waits until a node is a master for all others.
    func awaitMaster(_ number: Int) -> Bool {
        eventually { (try? RedisRole(engines[number].ask("ROLE"))) == .master }
    }

    // MARK: Slots

    /// Has a slot be moved from one master to another, with what is in it.
    func move(_ slot: UInt16, from old: Int, to new: Int) throws {
        try beginMoving(slot, from: old, to: new)
        try moveKeys(of: slot, from: old, to: new)
        try endMoving(slot, from: old, to: new)
    }

    func beginMoving(_ slot: UInt16, from old: Int, to new: Int) throws {
        try tell(new, "CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", try id(of: old))
        try tell(old, "CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", try id(of: new))
    }

    func moveKeys(of slot: UInt16, from old: Int, to new: Int) throws {
        let reply = try engines[old].ask("CLUSTER", "GETKEYSINSLOT", "\(slot)", "1000")
        for name in (reply.elements ?? []).compactMap(\.text) {
            try tell(
                old, "MIGRATE", places[new].host, "\(places[new].port)", name, "0", "5000")
        }
    }

    func endMoving(_ slot: UInt16, from old: Int, to new: Int) throws {
        let owner = try id(of: new)
        for number in [new, old] + (0..<masters).filter({ $0 != new && $0 != old }) {
            try tell(number, "CLUSTER", "SETSLOT", "\(slot)", "NODE", owner)
        }
    }

    /// The slot of a URL's response.
    static func slot(of url: String) -> UInt16 {
        let digest = Array(url.utf8).withUnsafeBytes { SharedName.digest(of: $0) } ?? []
        return ClusterSlot.of(digest.span)
    }

    /// Which master has that.
    func node(of url: String) -> Int {
        (0..<masters).first { slots(of: $0).contains(Int(Self.slot(of: url))) } ?? 0
    }

    /// The master that has the fleet's streams.
    var home: Int {
        let slot = Int(ClusterSlot.of(Array("fleet".utf8).span))
        return (0..<masters).first { slots(of: $0).contains(slot) } ?? 0
    }

    /// The masters besides that.
    var others: [Int] { (0..<masters).filter { $0 != home } }

    /// URLs of responses that a master has.
    func urls(of number: Int, count: Int) -> [String] {
        Array(
            (0...).lazy.map { "http://a/\($0)" }.filter { self.node(of: $0) == number }
                .prefix(count))
    }

    // MARK: Levels

    func server() throws -> SharedLevelOptions.Server {
        .cluster(
            SharedLevelOptions.Cluster(
                places.compactMap { RedisNode(host: Array($0.host.utf8), port: Int64($0.port)) }))
    }

    /// A gateway's store over a level with all masters in use.
    func gateway(
        memoryBytes: Int = 0, wholeBodyBytes: Int = 1 << 20,
        _ change: (inout SharedLevelOptions) -> Void = { _ in }
    ) throws -> (store: CacheStore, level: SharedLevel) {
        let server = try server()
        let (store, level) = try engines[0].gateway(
            memoryBytes: memoryBytes, wholeBodyBytes: wholeBodyBytes
        ) {
            $0.server = server
            change(&$0)
        }
        guard eventually({ level.figures().usedNodes == masters }) else {
            let figures = level.figures()
            store.close()
            throw EngineProcess.EngineProcessError(text: "not all nodes are in use: \(figures)")
        }
        return (store, level)
    }
}
