import CLinux
import CacheStore
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldMetrics
import PinfoldResolver
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// A worker whose loop does not run: a test calls what the loop would call, in the order that it
/// wants to see. Without a cache, unless it is given one; names are asked for, and no answer
/// arrives.
final class StillWorker: StillEnvironment {
    let worker: Worker
    var environment: Environment { worker.environment }
    let listener: Listener
    private let endpoint: Endpoint
    let resolver: Resolver
    var pool: UpstreamPool { worker.environment.upstreams as! UpstreamPool }

    init(
        _ configuration: String = "{}", store: CacheStore? = nil,
        transformations: TransformationWork = .none
    ) throws {
        resolver = try silentResolver()
        let mailbox = try Mailbox<WorkerMessage>()
        let engine = try testSharedEnvironment(
            resolver, store: store, transformations: transformations)
        let shared = SharedServices(
            mailboxes: [mailbox], engine: engine, pinReporter: nil, accessLog: nil,
            notifyActivity: {},
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

    /// A worker that may connect to this host.
    /// - Parameters:
    ///   - more: further sections of the configuration.
    ///   - ports: the ports that CONNECT may name.
    ///   - store: its cache.
    static func reachingLoopback(
        _ more: String = "", connectPorts ports: [UInt16] = [443], store: CacheStore? = nil,
        transformations: TransformationWork = .none
    ) throws -> StillWorker {
        let still = try StillWorker(
            """
            access: { destinations: { allow: [127.0.0.0/8] }, connectPorts: \(ports) }
            \(more)
            """, store: store, transformations: transformations)
        store == nil ? try still.receivePermits() : try still.environment.start()
        return still
    }

    /// Handles permits and the results of transformations. Answers of the resolver are ignored, so
    /// that a lookup stays in progress.
    private func receivePermits() throws {
        let receiver = MailboxReceiver(environment.mailbox) { [unowned environment] in
            switch $0 {
            case .permitGranted(let limit): environment.pool?.permitGranted(limit)
            case .transformed(let token, let outcome): environment.deliver(outcome, to: token)
            default: break
            }
        }
        try environment.loop.add(
            receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
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
        worker.accept(ends[0], from: try #require(Endpoint(address)), on: listener.ingress)
        return ends[1]
    }
}

/// Writes all of a text.
func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { _ = send(descriptor, $0.baseAddress, $0.count, 0) }
}

extension StillWorker {
    /// A client's connection over TLS, and its other end.
    func connectSecurely(as role: Ingress.Role = .admin) throws -> (ClientConnection, FarEnd) {
        let (client, far) = try connect({ try .server($0) }, as: role)
        return (client, FarEnd(try .client(far)))
    }
}
