import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldTLS
import Testing
import Threads

@testable import PinfoldEngine

@Suite("A server that the command line asks for its certificates")
struct ServerProbeTests {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }

    /// What a server does with its one connection, on a thread of its own.
    private enum Conduct { case shakesHands, speaksClearText, closes }

    private func serve(_ conduct: Conduct) throws -> Thread {
        nonisolated(unsafe) let server = server
        return try Thread(name: "server") {
            guard let peer = try? server.nextPeer() else { return }
            switch conduct {
            case .closes: peer.close()
            case .speaksClearText:
                peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
                while !peer.hasEnded { usleep(1000) }
            case .shakesHands:
                guard let transport = try? Transport.server(peer.descriptor) else { return }
                while !Self.hasShakenHands(transport) { usleep(1000) }
                while !peer.hasEnded { usleep(1000) }
            }
        }
    }

    private static func hasShakenHands(_ transport: Transport) -> Bool {
        switch transport.handshake() {
        case .complete, .failed: true
        case .wantRead, .wantWrite, .turnIsOver, .wantIdentity: false
        }
    }

    private func look(
        _ probe: ServerProbe, _ server: ScriptedServer? = nil
    ) throws(ServerProbeError) -> ServerPresentation {
        let server = server ?? self.server
        return try probe.look(
            at: "service.test", port: server.port, addresses: [server.endpoint.address])
    }

    /// The text of the error of a probe.
    private func failure(_ probe: ServerProbe, _ server: ScriptedServer? = nil) -> String? {
        do throws(ServerProbeError) {
            _ = try look(probe, server)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// - Parameter isTrusting: whether it trusts the servers of tests.
    private func probe(
        milliseconds: Int64 = 20_000, isTrusting: Bool = true
    ) throws -> ServerProbe {
        let roots = try TrustRoots(
            isTrusting ? [.file(name: "roots", contents: TestIdentity.certificate)] : [])
        return try ServerProbe(roots: roots, milliseconds: milliseconds)
    }

    @Test(arguments: [true, false])
    func `shows them, and whether they are trusted`(_ isTrusting: Bool) throws {
        let thread = try serve(.shakesHands)
        let shown = try look(try probe(isTrusting: isTrusting))
        thread.join()
        #expect(shown.endpoint == server.endpoint)
        #expect(shown.certificates == [TestIdentity.certificateDER])
        #expect(shown.version == (isTrusting ? .tls13 : nil))
        #expect((shown.facts != nil) == isTrusting)
        #expect(shown.failure?.reason.token == (isTrusting ? nil : "tls-self-signed"))
    }

    @Test func `has a limited time`() throws {
        let begin = ContinuousClock.now
        let text = failure(try probe(milliseconds: 50))
        #expect(text == "service.test:\(server.port) sent no certificate in time")
        #expect(ContinuousClock.now - begin >= .milliseconds(50))
        #expect(ContinuousClock.now - begin < .seconds(10))
        #expect(server.accept() != nil)
    }

    @Test func `may not listen, may not speak TLS, and may leave`() throws {
        let nobody = try ScriptedServer(listens: false)
        #expect(
            failure(try probe(), nobody)
                == "cannot connect to \(nobody.endpoint): Connection refused (errno 111)")
        for conduct in [Conduct.speaksClearText, .closes] {
            let thread = try serve(conduct)
            let text = try #require(failure(try probe()))
            thread.join()
            #expect(text.hasPrefix("service.test:\(server.port) sent no certificate: "))
        }
    }

    @Test func `is reported by what failed`() throws {
        let peer = BoundAuthority(host: "a.test", port: 443)
        let endpoint = try #require(Endpoint("192.0.2.1:443"))
        let refused = FailedAttempts([(endpoint, .failed(.connectionRefused))])
        let silent = FailedAttempts([(endpoint, .unanswered)])
        let rows: [(StreamError, String)] = [
            (
                StreamError(.nameNotResolved(.nxdomain)), "a.test cannot be resolved (nxdomain)"
            ),
            // The time was over before there was an address.
            (StreamError(.connectTimeout), "a.test cannot be resolved (timeout)"),
            (
                StreamError(.connectTimeout, silent),
                "cannot connect to 192.0.2.1:443: \(Errno.timedOut)"
            ),
            (
                StreamError(.connectFailed(.connectionRefused), refused),
                "cannot connect to 192.0.2.1:443: \(Errno.connectionRefused)"
            ),
            (
                StreamError(.tlsTimeout, FailedAttempts(connectedTo: endpoint)),
                "a.test:443 sent no certificate in time"
            ),
            (
                StreamError(.tlsFailed(.versionRefused)),
                "a.test:443 sent no certificate: \(TLSError.versionRefused)"
            ),
            (
                StreamError(.gateway(.tooManyPending)),
                "a.test:443: \(ExchangeError.gateway(.tooManyPending).explanation)"
            ),
        ]
        for (failure, text) in rows {
            #expect("\(ServerProbeError(failure, peer))" == text)
        }
    }
}
