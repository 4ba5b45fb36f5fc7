import EngineTestSupport
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine
@testable import PinfoldTLS

@Suite("The factory of TLS contexts")
struct ContextFactoryTests {
    private func roots(
        _ sources: [ConfiguredRoots] = [.system],
        _ version: SystemRootsVersion = SystemRootsVersion(), readsSystem: Bool = false
    ) throws -> LoadedRoots {
        var factory = ContextFactory(
            sessions: TLSSessionCache(), showsChains: false, systemRoots: version)
        factory.preparesTLS = readsSystem
        return try factory.make(UpstreamTLS(roots: sources), pinsets: [], .auto).verifier.roots
    }

    @Test func `shares the system's trust anchors with all others of the process`() throws {
        let first = try roots()
        #expect(try roots() === first)
        #expect(try roots(readsSystem: true) === first)
        #expect(first.hasReadSystem)
    }

    @Test(
        arguments: [
            (.auto, ["h2", "http/1.1"]), (.require, ["h2"]), (.off, ["http/1.1"]),
        ] as [(ServerHTTP2, [String])])
    func `servers are offered what their entry says`(
        _ http2: ServerHTTP2, _ names: [String]
    ) throws {
        var factory = ContextFactory(
            sessions: TLSSessionCache(), showsChains: false, systemRoots: SystemRootsVersion())
        factory.preparesTLS = false
        let context = try factory.make(UpstreamTLS(), pinsets: [], http2)
        let offered = context.settings.applicationProtocols
        #expect(offered == names)
    }

    @Test func `shares anchors with no context that also trusts others`() throws {
        let system = try roots()
        let nobody = try roots([])
        #expect(nobody !== system && nobody.hasReadSystem)
        let other = try roots([.file(path: "one", certificates: [TestRoots.one])])
        #expect(other !== system && other.hasReadSystem)
        let both = try roots([.system, .file(path: "one", certificates: [TestRoots.one])])
        #expect(both !== system && !both.hasReadSystem)
        let read = try roots(
            [.system, .file(path: "one", certificates: [TestRoots.one])], readsSystem: true)
        #expect(read.hasReadSystem)
    }
}
