import CLinux
import CacheTestSupport
import Foundation
import RedisProtocol
import SharedCacheLevel
import TestSupport

/// A master, a replica and a Sentinel of a test's own.
final class WatchedEngines {
    static let master = "mymaster"

    let first: EngineProcess
    let second: EngineProcess
    let places: [LoopbackPlace]
    let sentinelPlace: LoopbackPlace
    private let folder = TemporaryFolder()
    private let program: String
    private var sentinel: Command?

    /// - Parameters:
    ///   - lines: of the Sentinel's configuration, besides those that each has.
    ///   - program: that of the Sentinel.
    init(_ lines: String..., program: String = EngineProcess.program) throws {
        self.program = program
        let places = try (0..<2).map { _ in try LoopbackPlace.drawn() }
        func engine(_ number: Int, _ arguments: [String] = []) throws -> EngineProcess {
            let place = places[number]
            return try EngineProcess(
                [
                    "--bind", place.host, "--port", "\(place.port)", "--replica-announce-ip",
                    place.host, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period",
                    "1",
                ] + arguments)
        }
        self.places = places
        first = try engine(0)
        second = try engine(1, ["--replicaof", places[0].host, "\(places[0].port)"])
        sentinelPlace = try LoopbackPlace.drawn()
        try folder.write(
            """
            port \(sentinelPlace.port)
            bind \(sentinelPlace.host)
            dir \(folder.path)
            logfile \(folder.file("log"))
            sentinel monitor \(Self.master) \(places[0]) 1
            sentinel down-after-milliseconds \(Self.master) 500
            sentinel failover-timeout \(Self.master) 5000
            \(lines.joined(separator: "\n"))

            """, to: "sentinel.conf")
        try startSentinel()
    }

    deinit { endSentinel() }

    /// The same program is a Sentinel if it is told so.
    func startSentinel() throws {
        sentinel = try Command(
            program, [folder.file("sentinel.conf"), "--sentinel"])
    }

    func endSentinel() {
        guard let ended = sentinel.take() else { return }
        kill(ended.processIdentifier, SIGKILL)
        _ = ended.wait()
    }

    /// Waits until the replica follows the master, and the Sentinel could make it the master.
    func awaitReplica() -> Bool {
        eventually {
            let role = (try? second.ask("ROLE"))?.elements ?? []
            return role.count > 3 && role[3].text == "connected"
        }
            && eventually {
                let text = (try? String(contentsOfFile: folder.file("log"), encoding: .utf8)) ?? ""
                return text.contains("+slave")
            }
    }

    func node(_ place: LoopbackPlace) throws -> RedisNode {
        guard let node = RedisNode(host: Array(place.host.utf8), port: Int64(place.port)) else {
            throw EngineProcess.EngineProcessError(text: "no node")
        }
        return node
    }

    /// What finds the master by the Sentinel, after asking others first.
    func server(
        after others: [LoopbackPlace] = [], name: String = master, password: String? = nil
    ) throws -> SharedLevelOptions.Server {
        var sentinels = SharedLevelOptions.Sentinels(
            try (others + [sentinelPlace]).map(node), master: name)
        sentinels.password = password.map { Array($0.utf8) }
        return .sentinels(sentinels, tls: nil)
    }
}
