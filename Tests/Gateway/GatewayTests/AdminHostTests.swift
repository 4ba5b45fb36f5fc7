import HTTPCore
import Testing
import Trust

@testable import Gateway
@testable import PinfoldEngine

@Suite("Which hosts a request to the administrative address may name")
struct AdminHostTests {
    @Test(
        arguments: [
            ("", true), ("localhost", true), ("LocalHost", true), ("a.localhost", true),
            ("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::ffff:127.0.0.1", true),
            ("192.0.2.7", true), ("::ffff:192.0.2.7", true), ("192.0.2.8", false),
            ("metrics.example", true), ("METRICS.example", true), ("b.ops.example", true),
            ("ops.example", false), ("evil.example", false), ("localhost.evil.example", false),
            ("evillocalhost", false), ("127.0.0.1.evil.example", false), ("0.0.0.0", false),
        ])
    func `loopback, the address itself and the configured hosts may be named`(
        host: String, isOwn: Bool
    ) throws {
        let named = [try HostPattern("metrics.example"), try HostPattern("*.ops.example")]
        #expect(
            AdminHost.isOwn(host, port: 9090, at: IPAddress("192.0.2.7"), named: named) == isOwn)
    }

    @Test func `a pattern with a port is for that port`() throws {
        let named = [try HostPattern("a.example:9090")]
        #expect(AdminHost.isOwn("a.example", port: 9090, at: nil, named: named))
        #expect(!AdminHost.isOwn("a.example", port: 80, at: nil, named: named))
    }

    @Test func `letters that are equal only in Unicode are another host`() throws {
        let named = [try HostPattern("kiosk.example")]
        #expect(AdminHost.isOwn("KIOSK.example", port: 80, at: nil, named: named))
        #expect(!AdminHost.isOwn("\u{212A}iosk.example", port: 80, at: nil, named: named))
    }
}
