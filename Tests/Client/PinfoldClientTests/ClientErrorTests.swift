import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS
import Testing
import Trust

@testable import PinfoldClient

@Suite("An error of the client")
struct ClientErrorTests {
    @Test(
        arguments: [
            ("http://a.test/x", "http://a.test/x"), ("http://a.test/@x", "http://a.test/@x"),
            ("http://a.test:80/x:y@z", "http://a.test:80/x:y@z"),
            ("http://[::1]:80/@x", "http://[::1]:80/@x"), ("/x/@y", "/x/@y"),
            ("http://a.test?b=c@d", "http://a.test?b=c@d"),
            ("http://u:secret@a.test/", "http://***@a.test/"),
            ("http://u:sec/ret@a.test/", "http://***@a.test/"),
            ("http://u:sec?re#t@a.test", "http://***@a.test"),
            ("http:/u:secret@a.test/x", "http:/***@a.test/x"),
            ("HTTPS:u:secret@a.test", "***@a.test"),
            ("http:\\\\u:secret@a.test", "***@a.test"),
            ("http:/u:sec/ret@a.test", "http:/***@a.test"), ("u:secret@a.test", "***@a.test"),
        ])
    func `has no credentials in its URL, well-formed or not`(url: String, shown: String) {
        #expect(ClientError(.invalidRequest, "", url: url).url == shown)
    }

    @Test func `does not mention a gateway if descriptors are exhausted`() {
        let error = ClientError(ExchangeError.gateway(.descriptorsExhausted))
        #expect(error.explanation == "the process has no file descriptors left")
        #expect(error.token == "descriptors-exhausted")
    }

    /// Terms of gateway operators, and signs of configuration keys.
    private static let foreign = [
        "gateway", "entry", "pinset", "listener", "configuration", "reload", "upgrade:", "tunnel:",
        "mode:", "clearText", "`", "access.", "timeouts.", "limits.", "tls.", "cache.", "resolver.",
        "the route", "this client",
    ]

    private func isForeign(_ text: String) -> Bool {
        Self.foreign.contains { text.contains($0) }
    }

    @Test(arguments: Reason.allCases)
    func `mentions no gateway configuration, whatever the reason`(reason: PinfoldEngine.Reason) {
        #expect(!isForeign(ClientError.meaning(of: reason)), "\(reason.token)")
    }

    @Test(
        arguments: [
            .access(.clearTextRefused), .access(.pinnedPortRefused), .access(.tunnelRefused),
            .connectPortRefused(1),
            .connectFailed(.connectionRefused), .upstreamReset(.connectionReset),
            .gateway(.superseded),
            .tlsFailed(.certificateRequired(TLSAlert(code: 116))), .tlsFailed(.refusedByReview),
            .nameNotResolved(.cancelled), .nameNotResolved(.clientLimit),
            .server(.eventStreamTimeout),
            .request(.headTooLarge), .response(.spaceBeforeColon),
            .proxy(.unreachable(.nameNotResolved(.nxdomain))),
            .proxy(.unreachable(.connectFailed(.connectionRefused))),
            .proxy(.unreachable(.destinationRefused(.scope(.multicast)))),
            .proxy(.tlsFailed(.notTLS)),
        ] + DestinationRefusalReason.allCases.map { .destinationRefused($0) } as [ExchangeError])
    func `names no key of a gateway's file, and has a fault's details`(fault: ExchangeError) {
        #expect(!isForeign(ClientError(fault).explanation), "\(ClientError(fault).explanation)")
    }

    @Test func `has the system's error if the server may speak TLS`() {
        let broken = ClientError(ExchangeError.upstreamUnanswered(.connectionReset))
        let reset = ClientError(ExchangeError.upstreamReset(.connectionReset))
        #expect(reset.explanation.contains("104"))
        #expect(broken.explanation.hasPrefix(reset.explanation))
        #expect(broken.explanation.hasSuffix("port, expected an https URL"))
        let closed = ClientError(ExchangeError.upstreamUnanswered(nil))
        #expect(closed.explanation.hasSuffix("port, expected an https URL"))
    }

    @Test(
        arguments: [
            .noPinMatches(expected: ["sha256/a"], chain: []), .pinsetWithoutPins, .invalidPolicy,
            .chain(.selfSigned(subject: "CN=a")),
        ] as [TrustError.Reason])
    func `does not name the engine's set of pins`(reason: TrustError.Reason) {
        let failure = TrustError(reason, pinsetIndex: 0, pinset: "session")
        let error = ClientError(ExchangeError.tlsFailed(.trust(failure)))
        #expect(!isForeign(error.explanation) && !error.explanation.contains("session"))
        #expect(error.explanation.hasPrefix("no secure connection to the server: "))
    }

    @Test(arguments: PinsetError.allCases)
    func `of a policy names its properties`(problem: PinsetError) {
        let error = ClientError(problem)
        #expect(error.reason == .invalidSecurityPolicy && !isForeign(error.explanation))
        #expect(
            !isForeign(ClientError(TLSContextError.pinset(name: "session", problem)).explanation))
    }
}
