import CacheStore
import EngineTestSupport
import EventLoop
import Synchronization
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// Work that a test runs when it wants to see the result.
final class ScriptedWork: Sendable {
    private let waiting = Mutex<[@Sendable () -> Void]>([])
    private let takes = Atomic(true)

    var count: Int { waiting.withLock { $0.count } }

    /// Accepts no more.
    func refuse() { takes.store(false, ordering: .relaxed) }

    func work(maximumHeldBytes: Int = 1 << 30) -> TransformationWork {
        TransformationWork(maximumHeldBytes: maximumHeldBytes) { [self] work in
            guard takes.load(ordering: .relaxed) else { return false }
            waiting.withLock { $0.append(work) }
            return true
        }
    }

    /// Runs all waiting work.
    func run() {
        let work = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for work in work { work() }
    }
}

/// A worker whose one route has rules, and a server.
struct RuledWorker {
    let still: StillWorker
    let server: ScriptedServer
    let work = ScriptedWork()

    /// - Parameters:
    ///   - rules: the keys of the host entry, in YAML's flow form.
    ///   - beside: more of the configuration, as lines.
    init(
        _ rules: String, caches: Bool = false, maximumHeldBytes: Int = 1 << 30, beside: String = ""
    ) throws {
        var store: CacheStore?
        if caches {
            var options = CacheStoreOptions()
            options.diskBytes = 0
            store = CacheStore(options: options)
        }
        server = try ScriptedServer()
        still = try StillWorker.reachingLoopback(
            "hosts: [{ match: [\"\(server.host):\(server.port)\"], \(rules) }]\n\(beside)",
            store: store,
            transformations: work.work(maximumHeldBytes: maximumHeldBytes))
    }

    /// A client whose request has arrived at the server, and what the server has read.
    func forward(
        _ request: String, content: String = ""
    ) throws -> (client: Peer, peer: Peer, received: String) {
        let client = try still.client()
        client.send(request + content)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        return (client, peer, peer.text)
    }

    /// Sends a response, and waits for everything that the client receives of it.
    func answer(_ client: Peer, _ peer: Peer, _ response: String, until text: String) {
        peer.send(response)
        still.await(text, at: client)
    }
}
