import Activity
import CacheStore
import EventLoop
import HTTPCore
import Logging
import PinfoldEngine
import PinfoldResolver
import Testing

/// A resolver with a server that does not answer.
package func silentResolver() throws -> Resolver {
    var options = ResolverOptions()
    options.servers = .list([try #require(Endpoint("127.0.0.1:9"))])
    return try Resolver(options: options)
}

/// What the environment of a test shares with no other: it logs nothing.
package func testSharedEnvironment(
    _ resolver: Resolver, store: CacheStore? = nil, transformations: TransformationWork = .none
) throws -> SharedEnvironment {
    SharedEnvironment(
        mailboxes: [try Mailbox<EngineMessage>()], resolver: resolver, store: store,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        labels: RouteLabels(),
        activity: ActivityMonitor(
            delays: ActivityDelays(activationMilliseconds: 0, completionMilliseconds: 0)),
        transformationWork: transformations)
}
