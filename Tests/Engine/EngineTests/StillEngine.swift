import EngineTestSupport
import EventLoop
import PinfoldMetrics
import PinfoldResolver
import Testing

@testable import PinfoldEngine

/// An environment without listeners whose loop does not run by itself: a test turns it. Names are
/// looked up, but no answer arrives; a test passes answers on itself.
final class StillEngine: StillEnvironment {
    let environment: Environment
    private let resolver: Resolver
    var pool: UpstreamPool { environment.upstreams as! UpstreamPool }

    init(_ configuration: String = "{}") throws {
        resolver = try silentResolver()
        environment = Environment(
            index: 0, loop: try EventLoop(), policy: try testPolicy(configuration),
            shared: try testSharedEnvironment(resolver),
            metrics: WorkerMetrics(
                dimensions: MetricsDimensions(reasons: Reason.tokens.count)))
    }

    /// An environment that may connect to this host.
    /// - Parameter more: further sections of the configuration.
    static func reachingLoopback(_ more: String = "") throws -> StillEngine {
        let still = try StillEngine(
            "access: { destinations: { allow: [127.0.0.0/8] } }\n\(more)")
        try still.receivePermits()
        return still
    }

    /// Handles the permits that environments pass to each other, and nothing else: answers of the
    /// resolver are left to the test.
    private func receivePermits() throws {
        let receiver = MailboxReceiver(environment.mailbox) { [unowned environment] in
            if case .permitGranted(let limit) = $0 { environment.pool?.permitGranted(limit) }
        }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
    }

    deinit {
        environment.closeConnections()
        for handler in loop.handlers { loop.remove(handler) }
        environment.close()
        loop.forgetDeferred()
        resolver.close()
    }
}

extension ScriptedConsumer {
    /// The connection that the consumer has now.
    var connection: UpstreamConnection? { upstream as? UpstreamConnection }
    /// The last connection that the consumer had.
    var lastConnection: UpstreamConnection? { lastUpstream as? UpstreamConnection }
}
