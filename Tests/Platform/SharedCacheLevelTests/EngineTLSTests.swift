import CacheStore
import CacheTestSupport
import PinfoldTLS
import SharedCacheLevel
import TestSupport
import Testing
import Trust

/// Engines that speak TLS only, except to the tests themselves, on their sockets. They are always
/// Redis: other programs may have been built without TLS.
@Suite("An engine that is reached by TLS", .serialized)
struct EngineTLSTests {
    private let authority: TestAuthority
    private let place: LoopbackPlace

    init() throws {
        authority = try TestAuthority()
        place = try LoopbackPlace.drawn()
    }

    /// Names a certificate's owner as the engine's address.
    private var ownName: String { "IP:\(place.host)" }

    private func engine(
        _ certificate: TestAuthority.Issued, _ arguments: [String] = ["--tls-auth-clients", "no"]
    ) throws -> EngineProcess {
        try EngineProcess(
            [
                "--bind", place.host, "--tls-port", "\(place.port)",
                "--tls-cert-file", certificate.certificatePath,
                "--tls-key-file", certificate.keyPath, "--tls-ca-cert-file", authority.rootPath,
            ] + arguments, program: "redis-server")
    }

    private func server(_ tls: TLSClientContext?) -> SharedLevelOptions.Server {
        .tcp(host: place.host, port: place.port, tls: tls)
    }

    /// Expects a level not to be taken into use, and says why it is not.
    private func refusal(
        _ engine: EngineProcess, _ tls: TLSClientContext?
    ) throws -> SharedLevelStatistics {
        var options = try engine.options()
        options.server = server(tls)
        let level = try SharedLevel(options)
        level.begin(EngineProcess.duties)
        defer { level.close() }
        #expect(eventually { level.figures().reason != nil })
        #expect(level.state == .off)
        return level.figures()
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `is used as any other`(_ version: String) throws {
        let certificate = try authority.issue(for: ownName)
        let engine = try engine(
            certificate, ["--tls-auth-clients", "no", "--tls-protocols", version])
        let tls = try authority.context(pins: Pin.decode(file: certificate.certificate))
        let (first, level) = try engine.gateway { $0.server = server(tls) }
        let (second, _) = try engine.gateway(memoryBytes: 0) { $0.server = server(tls) }
        for size in [0, 10, 100_000, 400_000, 2_000_000] {
            first.put("http://a/\(size)", body(size))
            first.flushNow()
            #expect(second.foundBodies("http://a/\(size)") == [body(size)])
        }
        second.drop("http://a/10")
        second.flushNow()
        #expect(second.found("http://a/10").isEmpty)
        #expect(level.figures().connections == 1)
        first.close()
        second.close()
    }

    @Test func `takes what is written while it does not read, in pieces`() throws {
        let engine = try engine(try authority.issue(for: ownName))
        let tls = try authority.context()
        let (first, level) = try engine.gateway { $0.server = server(tls) }
        engine.pause()
        for number in 0..<12 {
            first.put("http://a/\(number)", body(900_000 + number, seed: number))
        }
        // More than the system takes waits.
        #expect(eventually { level.figures().bytesWritten > 100_000 })
        engine.goOn()
        first.flushNow()
        let (second, _) = try engine.gateway(memoryBytes: 0) { $0.server = server(tls) }
        for number in 0..<12 {
            #expect(
                second.foundBodies("http://a/\(number)")
                    == [body(900_000 + number, seed: number)])
        }
        #expect(level.figures().connections == 1)
        first.close()
        second.close()
    }

    @Test func `is used again when it is back`() throws {
        let engine = try engine(try authority.issue(for: ownName))
        let tls = try authority.context()
        let (store, level) = try engine.gateway(memoryBytes: 0) { $0.server = server(tls) }
        engine.end()
        #expect(eventually { level.state == .off })
        try engine.start()
        #expect(eventually { level.state == .ready })
        store.put("http://a/", body(10))
        #expect(store.foundBodies("http://a/") == [body(10)])
        store.close()
    }

    @Test func `is not trusted by what another authority says`() throws {
        let engine = try engine(try authority.issue(for: ownName))
        let figures = try refusal(engine, TestAuthority().context())
        #expect(figures.reason == .tls)
        #expect(figures.detail.contains("is not a trust anchor"), "\(figures.detail)")
        #expect(figures.connections == 0)
    }

    @Test func `is not trusted under another name`() throws {
        let engine = try engine(try authority.issue(for: "DNS:engine.test"))
        let figures = try refusal(engine, authority.context())
        #expect(figures.reason == .tls)
        #expect(
            figures.detail.contains(
                "the certificate is for engine.test, not for the address \(place.host)"),
            "\(figures.detail)")
    }

    @Test func `is not trusted when its certificate has expired`() throws {
        let engine = try engine(try authority.issue(for: ownName, days: -1))
        let figures = try refusal(engine, authority.context())
        #expect(figures.reason == .tls)
        #expect(figures.detail.contains("expired at"), "\(figures.detail)")
    }

    @Test func `is not trusted with another key than the pinned one`() throws {
        let engine = try engine(try authority.issue(for: ownName))
        guard case .literal(let pins) = try Pin.parse(SampleCertificate.keyPin) else { return }
        let figures = try refusal(engine, authority.context(pins: pins))
        #expect(figures.reason == .tls)
        #expect(figures.detail.contains("no pin matches"), "\(figures.detail)")
    }

    @Test func `may demand a certificate`() throws {
        let engine = try engine(
            try authority.issue(for: ownName), ["--tls-auth-clients", "yes"])
        let figures = try refusal(engine, authority.context())
        #expect(figures.reason == .tls)
        #expect(figures.detail.contains("requires a client certificate"), "\(figures.detail)")
        let own = try authority.issue("gateway", for: "DNS:gateway.test")
        let tls = try authority.context(identity: own)
        let level = try engine.level { $0.server = server(tls) }
        level.close()
    }

    @Test func `does not answer what is sent to it in clear text`() throws {
        let engine = try engine(try authority.issue(for: ownName))
        let figures = try refusal(engine, nil)
        #expect(figures.reason == .closedByServer || figures.reason == .tls)
        #expect(figures.detail.contains("TLS"), "\(figures.detail)")
    }

    @Test func `is not reached at a port of clear text`() throws {
        let engine = try EngineProcess(["--bind", place.host, "--port", "\(place.port)"])
        let figures = try refusal(engine, authority.context())
        #expect(figures.reason == .connectTimeout || figures.reason == .tls)
        #expect(
            figures.detail.contains("clear text") || figures.detail.contains("other than TLS"),
            "\(figures.detail)")
        // It is well, for others.
        let level = try engine.level { $0.server = server(nil) }
        level.close()
    }
}
