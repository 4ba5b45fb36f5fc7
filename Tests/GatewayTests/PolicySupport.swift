import Activity
import Addressing
import Configuration
import ConfigurationFile
import EventLoop
import Foundation
import HTTPCore
import Pinning
import TLS

@testable import Engine
@testable import Gateway

/// Self-signed certificates, for roots that differ.
enum TestRoots {
    static let one = der(
        """
        MIIBijCCATGgAwIBAgIUV/mi+jLkc0L436uk5XEos/FlSwYwCgYIKoZIzj0EAwIw
        GjEYMBYGA1UEAwwPYXBpLmV4YW1wbGUuY29tMCAXDTI2MTEyMTA1MDk1NloYDzIx
        MjYxMDI4MDUwOTU2WjAaMRgwFgYDVQQDDA9hcGkuZXhhbXBsZS5jb20wWTATBgcq
        hkjOPQIBBggqhkjOPQMBBwNCAAQejJNuR1lJiLvPARoKNq71tEzZ1aAxs4w2u4UU
        P1NKivp/2q8pjhThPujblRvWdJfq+grGfp8vPliOAFsdvW60o1MwUTAdBgNVHQ4E
        FgQUumD12PrKAdp1v4w1/LjEDRKURZkwHwYDVR0jBBgwFoAUumD12PrKAdp1v4w1
        /LjEDRKURZkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiArK/cy
        iP6AARyRwjrfwg/M6TY+cnT3ShjaHMRu6qRHKgIgMqqO0O3apGDqPntzfTTmRtcc
        4UhOMlYuiqKK/iUCTos=
        """)
    /// The same with another signature byte: other roots, for all that is compared here.
    static let two: [UInt8] = {
        var bytes = one
        bytes[bytes.count - 1] ^= 1
        return bytes
    }()

    private static func der(_ base64: String) -> [UInt8] {
        Array(Data(base64Encoded: base64, options: .ignoreUnknownCharacters) ?? Data())
    }

    static func file(_ path: String, _ certificates: [UInt8]...) -> ConfiguredRoots {
        .file(path: path, certificates: certificates)
    }
}

/// A snapshot of a text, with roots that do not depend on the machine.
func testConfiguration(
    _ text: String = "{}", roots: [ConfiguredRoots] = [TestRoots.file("/roots.pem", TestRoots.one)]
) throws -> ConfigurationSnapshot {
    let environment = ConfigurationEnvironment(
        homeFolder: "/home/someone", stateFolder: nil, workingFolder: "/srv", onlineCores: 2)
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

func testPolicy(
    _ configuration: ConfigurationSnapshot, generation: UInt64 = 1,
    following previous: PolicySnapshot? = nil, labels: RouteLabels = RouteLabels()
) throws -> PolicySnapshot {
    try PolicySnapshot(
        configuration, generation: generation, following: previous, sessions: TLSSessionCache(),
        labels: labels
    ) { HostReachability(host: $0) }
}

func testPolicy(_ text: String = "{}") throws -> PolicySnapshot {
    try testPolicy(try testConfiguration(text))
}

/// A consumer that notes nothing: for queues.
final class IdleConsumer: UpstreamConsumer {
    var mayBeRepeated: Bool { true }
    var clientNetwork: IPNetwork? { nil }
    var response = ResponseHead()
    func upstreamReady(_ upstream: any UpstreamStream) {}
    func upstreamFailed(_ fault: ExchangeFault, responseStarted: Bool) {}
    func upstreamHead(_ head: UnsafeRawBufferPointer) {}
    func upstreamHeadWithoutBody() {}
    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool { true }
    func upstreamEnded(trailers: TrailerSection?) {}
    func upstreamDrained() {}
}
