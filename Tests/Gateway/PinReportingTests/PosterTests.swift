import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS
import Testing

@testable import PinReporting

/// Deliveries whose loop a test turns, and their results.
private final class Deliveries: StillEnvironment {
    let environment: Environment
    let server: ScriptedServer
    private let resolver: Resolver
    private(set) var results: [PostResult] = []

    init(listens: Bool = true) throws {
        resolver = try silentResolver()
        environment = try Poster.makeEnvironment(on: try EventLoop(), resolver: resolver)
        server = try ScriptedServer(listens: listens)
    }

    deinit {
        environment.closeConnections()
        environment.close()
        environment.loop.forgetDeferred()
        resolver.close()
    }

    func begin(_ scheme: UpstreamOrigin.Scheme = .http, body: String = "{}") -> Poster {
        let origin = UpstreamOrigin(scheme: scheme, host: server.host, port: server.port)
        let poster = Poster(
            Array(body.utf8), as: .report, to: ReportDestination(origin: origin, path: "/pins?a=b"),
            context: TestIdentity.client, in: environment
        ) { [unowned self] in results.append($0) }
        poster.start()
        return poster
    }

    /// Whether nothing of them is left.
    var areOver: Bool {
        settle()
        return openConnections(toPort: server.port) == 0 && loop.buffers.outstanding == 0
            && environment.shared.upstreamLimit.taken == 0
    }
}

@Suite("A report that is delivered")
struct PosterTests {
    private let deliveries: Deliveries

    init() throws { deliveries = try Deliveries() }

    /// The text of a failure.
    private var failure: String? {
        guard case .failed(let text, _, _)? = deliveries.results.first else { return nil }
        return text
    }

    @Test func `is one request, after which the connection is closed`() throws {
        let poster = deliveries.begin()
        let peer = try deliveries.peer(of: deliveries.server)
        deliveries.await("{}", at: peer)
        let expected =
            "POST /pins?a=b HTTP/1.1\r\nHost: 127.0.0.1:\(deliveries.server.port)\r\n"
            + "User-Agent: pinfold\r\nContent-Type: application/json\r\n"
            + "Content-Length: 2\r\n\r\n{}"
        #expect(peer.text == expected)
        #expect(deliveries.results.isEmpty)
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        deliveries.turn(until: "it is closed") { peer.hasEnded }
        #expect(deliveries.results == [.delivered])
        #expect(deliveries.areOver)
        poster.cancel()
        #expect(deliveries.results.count == 1)
    }

    static let hint = "HTTP/1.1 103 Early Hints\r\n\r\n"
    static let answers: [(String, PostResult)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin", .delivered),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .delivered),
        // Its lines end in a bare line feed.
        ("HTTP/1.1 204 \n\n", .delivered),
        ("HTTP/1.0 500 Oops\n\n", .failed("it answered 500", answered: true, retryAfter: nil)),
        (String(repeating: hint, count: 16) + "HTTP/1.1 204 \r\n\r\n", .delivered),
        (
            String(repeating: hint, count: 17),
            .failed("its answer does not end", answered: true, retryAfter: nil)
        ),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", .rejected(status: 404)),
        (
            "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
            .failed("it answered 503", answered: true, retryAfter: 7000)
        ),
        (
            "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 16 << 10))",
            .failed("its answer is too long", answered: true, retryAfter: nil)
        ),
        (
            "220 ready\r\n\r\n",
            .failed(
                "its answer is not HTTP: malformedVersion", answered: true, retryAfter: nil)
        ),
        (
            "\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}\u{50}",
            .failed("its answer is not HTTP", answered: true, retryAfter: nil)
        ),
    ]

    @Test(arguments: answers.indices)
    func `is finished by the head of the answer`(_ index: Int) throws {
        let (answer, result) = Self.answers[index]
        let poster = deliveries.begin()
        let peer = try deliveries.peer(of: deliveries.server)
        deliveries.await("{}", at: peer)
        peer.send(answer)
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        #expect(deliveries.results == [result])
        #expect(poster.token == .none)
        #expect(deliveries.areOver)
    }

    // MARK: An answer that comes early

    /// A report of which the server has read one byte, and which is longer than sockets take.
    private func longReport() throws -> (poster: Poster, peer: Peer) {
        let poster = deliveries.begin(body: String(repeating: "x", count: Self.longBytes))
        let peer = try deliveries.peer(of: deliveries.server)
        deliveries.turn(until: "it begins") { peer.read(atMost: 1).count > 0 }
        return (poster, peer)
    }

    private static let longBytes = 32 << 20

    /// RFC 9110 §7.5.
    @Test(arguments: [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
    func `is sent to its end, even if it was accepted before`(_ answer: String) throws {
        let (poster, peer) = try longReport()
        deliveries.deliver(answer, from: peer)
        deliveries.settle()
        #expect(deliveries.results.isEmpty)
        deliveries.turn(until: "it ends") {
            peer.read()
            return !deliveries.results.isEmpty
        }
        #expect(deliveries.results == [.delivered])
        deliveries.turn(until: "it is closed") { peer.hasEnded }
        #expect(peer.end == .closed)
        let content = peer.text.firstRange(of: "\r\n\r\n").map { peer.text[$0.upperBound...] }
        #expect(content?.utf8.count == Self.longBytes)
        #expect(poster.token == .none)
        #expect(deliveries.areOver)
    }

    /// How a server goes on that has accepted a report of which it has read one byte.
    enum Ending: CaseIterable {
        case saysClose, finishes, resets, breaksOff, waits, ends
    }

    @Test(arguments: Ending.allCases)
    func `is not delivered if the server accepts it and does not take all of it`(
        _ ending: Ending
    ) throws {
        let (poster, peer) = try longReport()
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(ending == .breaksOff ? 1 : 0)\r\n"
        deliveries.deliver(
            head + (ending == .saysClose ? "Connection: close\r\n\r\n" : "\r\n"), from: peer)
        var expected = PostResult.failed(
            "it did not take all of the content", answered: true, retryAfter: nil)
        switch ending {
        case .saysClose: break
        case .finishes, .breaksOff: peer.finishSending()
        case .resets: peer.reset()
        case .waits:
            poster.deadlineReached()
            expected = .failed(
                "it accepted the content too slowly", answered: true, retryAfter: nil)
        case .ends:
            poster.cancel()
            expected = .interrupted
        }
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        #expect(deliveries.results == [expected])
        #expect(poster.token == .none)
        #expect(deliveries.areOver)
    }

    /// The answer is read although what was still to be sent has been given up by then.
    @Test func `is not delivered if its server had gone when it answered`() throws {
        let (_, peer) = try longReport()
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        peer.reset()
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        guard case .failed(_, answered: true, _)? = deliveries.results.first else {
            Issue.record("\(deliveries.results)")
            return
        }
        #expect(deliveries.areOver)
    }

    // MARK: Failures

    @Test(arguments: ["", "HTTP/1.1 204 No", hint])
    func `has failed if the server closes without an answer`(_ sent: String) throws {
        _ = deliveries.begin()
        let peer = try deliveries.peer(of: deliveries.server)
        deliveries.await("{}", at: peer)
        peer.send(sent)
        peer.close()
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        let text = "it closed the connection without an answer"
        #expect(deliveries.results == [.failed(text, answered: true, retryAfter: nil)])
        #expect(deliveries.areOver)
    }

    @Test func `is not sent to a server that speaks before it is asked`() throws {
        let poster = deliveries.begin()
        // It begins to connect, and does not notice yet that it has.
        deliveries.loop.turn(waitingAtMost: 0)
        let peer = try deliveries.server.nextPeer()
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        guard case .failed(_, answered: false, _)? = deliveries.results.first else {
            Issue.record("\(deliveries.results)")
            return
        }
        #expect(peer.read().isEmpty)
        #expect(poster.token == .none)
        #expect(deliveries.areOver)
    }

    @Test func `is not sent to a server that does not prove who it is`() throws {
        _ = deliveries.begin(.https)
        let peer = try deliveries.peer(of: deliveries.server)
        let far = FarEnd(try .server(dup(peer.descriptor)))
        peer.close()
        #expect(deliveries.run(far) { !deliveries.results.isEmpty && far.end != nil })
        #expect(far.received.isEmpty)
        #expect(failure?.hasPrefix("TLS: ") == true)
        #expect(deliveries.areOver)
    }

    @Test func `has failed if nobody listens`() throws {
        let deliveries = try Deliveries(listens: false)
        _ = deliveries.begin()
        deliveries.turn(until: "it ends") { !deliveries.results.isEmpty }
        let address = deliveries.server.endpoint
        let text = "cannot connect to \(address): Connection refused (errno 111)"
        #expect(deliveries.results == [.failed(text, answered: false, retryAfter: nil)])
        #expect(deliveries.areOver)
    }

    @Test func `has a limited time for the handshake`() throws {
        let poster = deliveries.begin(.https)
        #expect(poster.deadline == deliveries.loop.now + 15_000)
        poster.deadlineReached()
        #expect(failure == "TLS: the handshake did not complete in time")
        poster.deadlineReached()
        #expect(deliveries.results.count == 1)
    }

    @Test(arguments: [2, longBytes])
    func `has a limited time for the upload and the answer`(_ bytes: Int) throws {
        let poster = deliveries.begin(body: String(repeating: "x", count: bytes))
        let deadline = poster.deadline
        #expect(deadline == deliveries.loop.now + 15_000)
        let peer = try deliveries.peer(of: deliveries.server)
        deliveries.turn(until: "it begins") { peer.read(atMost: 1).count > 0 }
        // What has been done so far prolongs nothing.
        #expect(poster.deadline == deadline)
        poster.deadlineReached()
        let isSent = bytes == 2
        let text = isSent ? "it did not answer in time" : "it accepted the content too slowly"
        #expect(deliveries.results == [.failed(text, answered: isSent, retryAfter: nil)])
        #expect(deliveries.areOver)
    }

    @Test(arguments: [false, true])
    func `is interrupted when the process ends`(_ isConnected: Bool) throws {
        let poster = deliveries.begin()
        let peer = isConnected ? try deliveries.peer(of: deliveries.server) : nil
        if let peer { deliveries.await("{}", at: peer) }
        poster.cancel()
        #expect(deliveries.results == [.interrupted])
        #expect(poster.token == .none)
        if let peer { #expect(peer.hasEnded) }
        if !isConnected {
            // The pool completes the connection, on which nothing is sent.
            let unused = try deliveries.peer(of: deliveries.server)
            deliveries.settle()
            deliveries.environment.closeConnections()
            #expect(unused.hasEnded && unused.text.isEmpty)
        }
        #expect(deliveries.areOver)
    }

    @Test func `has a connection, a result and an end of its own`() throws {
        let posters = [deliveries.begin(body: "[1]"), deliveries.begin(body: "[2]")]
        var peers: [Peer] = []
        for _ in posters { peers.append(try deliveries.peer(of: deliveries.server)) }
        deliveries.turn(until: "both arrive") {
            peers.allSatisfy { $0.read().hasSuffix("]") }
        }
        peers.sort { $0.text < $1.text }
        #expect(peers.map { $0.text.suffix(3) } == ["[1]", "[2]"])
        peers[1].send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        deliveries.turn(until: "the second ends") { peers[1].hasEnded }
        #expect(deliveries.results == [.rejected(status: 404)])
        #expect(posters[1].token == .none && posters[0].token != .none)
        posters[1].cancel()
        #expect(!peers[0].hasEnded)
        peers[0].send("HTTP/1.1 204 No Content\r\n\r\n")
        deliveries.turn(until: "the first ends") { peers[0].hasEnded }
        #expect(deliveries.results == [.rejected(status: 404), .delivered])
        #expect(deliveries.areOver)
    }

    @Test func `has its failure explained`() throws {
        let explained: [(ExchangeError, String)] = [
            (.nameNotResolved(.nxdomain), "a.test has no address (nxdomain)"),
            (.connectTimeout, "a.test was not resolved in time"),
            (.tlsTimeout, "TLS: the handshake did not complete in time"),
            (.server(.upstreamClosed), "it closed the connection without an answer"),
            (.upstreamReset(.connectionReset), "it closed the connection without an answer"),
            (.upstreamUnanswered(nil), "it closed the connection without an answer"),
            (.response(.truncatedHead), "it closed the connection without an answer"),
            (.gateway(.tooManyPending), ExchangeError.gateway(.tooManyPending).explanation),
        ]
        for (error, text) in explained {
            #expect(Poster.text(StreamError(error), "a.test") == text)
        }
    }
}
