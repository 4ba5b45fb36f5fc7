import Activity
import CLinux
import CacheStore
import EngineTestSupport
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import PinfoldResolver
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// A worker whose loop does not run: a test calls what the loop would call, in the order it
/// chooses. Without a cache, unless it is given one; names are looked up, but no answer arrives.
final class StillWorker {
    let worker: Worker
    let listener: Listener
    private let endpoint: Endpoint
    let resolver: Resolver
    var pool: UpstreamPool { worker.environment.upstreams as! UpstreamPool }

    init(
        _ configuration: String = "{}", store: CacheStore? = nil,
        transformations: TransformationWork = .none
    ) throws {
        var options = ResolverOptions()
        options.servers = .list([try #require(Endpoint("127.0.0.1:9"))])
        resolver = try Resolver(options: options)
        let mailbox = try Mailbox<WorkerMessage>()
        let engine = SharedEnvironment(
            mailboxes: [try Mailbox<EngineMessage>()], resolver: resolver, store: store,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            labels: RouteLabels(),
            activity: ActivityMonitor(
                delays: ActivityDelays(activationMilliseconds: 0, completionMilliseconds: 0)),
            transformationWork: transformations)
        let shared = SharedServices(
            mailboxes: [mailbox], engine: engine, accessLog: nil,
            tellActivity: {},
            administration: { _ in AdminResponse(status: 404, contentType: "", body: []) })
        worker = try Worker(
            index: 0, policy: try testPolicy(configuration), shared: shared,
            metrics: WorkerMetrics(
                dimensions: MetricsDimensions(reasons: Reason.tokens.count)),
            mailbox: mailbox)
        endpoint = try #require(Endpoint("127.0.0.1:0"))
        listener = Listener(
            worker: worker,
            ingress: Ingress(name: "test", label: .other, endpoint: endpoint, role: .forward),
            descriptor: -1)
    }

    private func ingress(_ role: Ingress.Role) -> Ingress {
        guard role != .forward else { return listener.ingress }
        return Ingress(name: "test", label: .other, endpoint: endpoint, role: role)
    }

    deinit {
        worker.close()
        resolver.close()
    }

    /// A client's connection, and the descriptor of its other end.
    /// - Parameters:
    ///   - transport: carries its bytes, over the descriptor of its near end.
    ///   - role: the role of the listener that it came through.
    func connect(
        _ transport: (Int32) throws -> Transport = { Transport(descriptor: $0) },
        as role: Ingress.Role = .forward
    ) throws -> (client: ClientConnection, far: Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let client = ClientConnection(
            worker: worker, transport: try transport(ends[0]), ingress: ingress(role),
            peer: try #require(Endpoint("127.0.0.1:1")), account: nil)
        try worker.loop.add(client, descriptor: ends[0])
        client.start()
        return (client, ends[1])
    }

    /// Accepts a client from an address, within the limits; returns the client's descriptor.
    func accept(_ address: String) throws -> Int32 {
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        worker.accept(ends[0], from: try #require(Endpoint(address)), on: listener)
        return ends[1]
    }
}

/// Everything that can be read from a descriptor now.
func readable(_ descriptor: Int32) -> String {
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return text }
        text += String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// Writes a text completely.
func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { _ = send(descriptor, $0.baseAddress, $0.count, 0) }
}
