import Activity
import EventLoop
import Gateway
import HTTPCore
import JSONSchema
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import TestSupport
import Trust

/// Self-signed certificates, for different roots.
package enum TestRoots {
    /// The sample certificate.
    package static let one = SampleCertificate.der
    /// The same with a different signature byte: different roots for the purposes of comparison.
    package static let two: [UInt8] = {
        var bytes = one
        bytes[bytes.count - 1] ^= 1
        return bytes
    }()

    /// The roots that were read from a file.
    package static func file(
        _ path: String, _ certificates: [UInt8]...
    ) -> PinfoldConfiguration.TrustRoots {
        .file(path: path, certificates: certificates)
    }
}

/// A snapshot from a text, with roots that do not depend on the machine.
package func testConfiguration(
    _ text: String = "{}",
    roots: [PinfoldConfiguration.TrustRoots] = [TestRoots.file("/roots.pem", TestRoots.one)]
) throws -> ConfigurationSnapshot {
    let environment = ConfigurationEnvironment(
        homeFolder: "/home/someone", stateFolder: nil, workingFolder: "/srv", cores: 2)
    var snapshot = try ConfigurationLoader(environment: environment)
        .load(text: Array(text.utf8), name: "/srv/gateway.yaml").snapshot
    snapshot.tls.roots = roots
    snapshot.hosts = HostTable(
        entries: snapshot.hosts.entries.map { entry in
            var entry = entry
            entry.tls.roots = roots
            return entry
        })
    return snapshot
}

/// The policy of a configuration, after another one if there was one.
package func testPolicy(
    _ configuration: ConfigurationSnapshot, generation: UInt64 = 1,
    following previous: PolicySnapshot? = nil, labels: RouteLabels = RouteLabels()
) throws -> PolicySnapshot {
    try PolicySnapshot(
        configuration, generation: generation, following: previous, sessions: TLSSessionCache(),
        schemas: JSONSchema.compile, labels: labels
    ) { EntryReachability(label: $0) }
}

/// The policy of a configuration's text.
package func testPolicy(_ text: String = "{}") throws -> PolicySnapshot {
    try testPolicy(try testConfiguration(text))
}

/// A consumer that records nothing, for queues.
package final class IdleConsumer: UpstreamConsumer {
    package var mayBeRepeated: Bool { true }
    package var clientNetwork: IPNetwork?
    package var response = ResponseHead()

    package init(of client: IPNetwork? = nil) { clientNetwork = client }

    package func upstreamReady(_ upstream: any UpstreamStream) {}
    package func upstreamFailed(_ failure: StreamError) {}
    package func upstreamHead(_ head: UnsafeRawBufferPointer) {}
    package func upstreamHeadWithoutBody() {}
    package func upstreamBody(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool { true }
    package func upstreamEnded(trailers: TrailerSection?) {}
    package func upstreamDrained() {}
}
