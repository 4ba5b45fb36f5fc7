import PinfoldTLS
import Testing

@testable import PinfoldEngine

@Suite("The TLS version toward a server")
struct UpstreamTLSVersionTests {
    @Test(
        arguments: [
            (TLSVersion.tls10, .tls10, "TLSv1.0"), (.tls11, .tls11, "TLSv1.1"),
            (.tls12, .tls12, "TLSv1.2"), (.tls13, .tls13, "TLSv1.3"), (nil, .none, ""),
        ] as [(TLSVersion?, UpstreamTLSVersion, String)])
    func `a connection's version has its name in the log, clear text has none`(
        version: TLSVersion?, logged: UpstreamTLSVersion, label: String
    ) {
        #expect(UpstreamTLSVersion(version) == logged)
        #expect("\(logged.label)" == label)
    }
}
