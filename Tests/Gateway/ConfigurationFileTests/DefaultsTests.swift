import Foundation
import HTTPCore
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

@Suite("Defaults")
struct DefaultsTests {
    @Test
    func `without a file proxy and admin listen on loopback and serve only loopback`() throws {
        let snapshot = try loadDefaults()
        #expect(!snapshot.watch)
        #expect(snapshot.variables.isEmpty)
        #expect(snapshot.listeners.map(\.name) == ["proxy"])
        #expect(snapshot.listeners.map(\.address.description) == ["127.0.0.1:8080"])
        #expect(snapshot.listeners.map(\.kind) == [.forward])
        #expect(snapshot.admin.address.description == "127.0.0.1:9090")
        #expect(snapshot.admin.token == nil)
        #expect(!snapshot.admin.recordSecrets)
        #expect(snapshot.access.clients.map(\.description) == ["127.0.0.0/8", "::1/128"])
        #expect(snapshot.access.connectPorts == .ports([443]))
        #expect(snapshot.access.allow == DestinationList())
        #expect(snapshot.access.deny == DestinationList())
        #expect(snapshot.access.lists.isEmpty)
        #expect(snapshot.hosts.entries.isEmpty)
        #expect(snapshot.pinsets.isEmpty)
        #expect(snapshot.tls == UpstreamTLS(minimum: .tls12, roots: [.system]))
    }

    @Test func `the stores have the documented defaults`() throws {
        let snapshot = try loadDefaults()
        let cache = snapshot.cache
        #expect(cache.isEnabled)
        #expect(cache.memoryBytes == 67_108_864)
        #expect(cache.diskBytes == 1_073_741_824)
        #expect(cache.diskEntries == 524_288)
        #expect(cache.variantsPerURL == 64)
        #expect(cache.path == "/home/someone/.local/state/pinfold")
        #expect(cache.maximumObjectBytes == 268_435_456)
        #expect(cache.fill == .always)
        #expect(cache.bypassFields == CacheConfiguration.defaultBypassFields)
        #expect(cache.shared == nil && cache.purge == nil)
        #expect(snapshot.resolver.servers == .system)
        #expect(snapshot.resolver.minimumTTLSeconds == 0)
        #expect(snapshot.resolver.maximumTTLSeconds == 3_600)
    }

    @Test func `the engine has the documented defaults`() throws {
        let snapshot = try loadDefaults()
        #expect(snapshot.activity.activationDelayMilliseconds == 1_000)
        #expect(snapshot.activity.completionDelayMilliseconds == 170)
        let limits = snapshot.limits
        #expect(limits.connections == 20_000)
        #expect(limits.headBytes == 32_768)
        #expect(limits.fields == 128)
        #expect(limits.upstreamPerHost == 256)
        #expect(limits.pending == 1_024)
        #expect(limits.bufferBytes == 67_108_864)
        #expect(limits.streams == 100 && limits.resets == 100 && limits.upstreamStreams == 100)
        #expect(limits.perClient == ClientLimits(connections: 15_000, exchanges: 10_000))
        let timeouts = snapshot.timeouts
        #expect(timeouts.headMilliseconds == 10_000)
        #expect(timeouts.idleMilliseconds == 60_000)
        #expect(timeouts.connectMilliseconds == 5_000)
        #expect(timeouts.firstByteMilliseconds == 60_000)
        #expect(timeouts.bodyMilliseconds == 60_000)
        #expect(timeouts.tunnelMilliseconds == 600_000)
        #expect(timeouts.eventStreamMilliseconds == 600_000)
        #expect(timeouts.collapseMilliseconds == 5_000)
        #expect(timeouts.drainDelayMilliseconds == 0)
        #expect(timeouts.graceMilliseconds == 30_000)
        #expect(timeouts.tunnelGraceMilliseconds == 5_000)
        #expect(snapshot.log.level == .info && snapshot.log.format == .text)
        #expect(snapshot.log.access == nil)
        #expect(snapshot.errorReplies == ErrorRepliesConfiguration())
        #expect(snapshot.errorReplies.format == .negotiate && snapshot.errorReplies.page == nil)
        #expect(snapshot.pinObservation.scope == .listed && snapshot.pinObservation.reportTo == nil)
        #expect(!snapshot.observesAnyPins && !snapshot.observesPins(entry: nil))
        #expect(snapshot.tracing.traceparent == .pass && snapshot.tracing.otlp == nil)
        #expect(snapshot.tracing.sampleMillionths == 10_000)
        #expect(snapshot.policy == nil && snapshot.policyInForce == nil)
        #expect(PolicyConfiguration().intervalMilliseconds == 60_000)
        #expect(!PolicyConfiguration().isFromEngine)
        #expect(PolicyConfiguration().afterExpiry == .keep)
        #expect(snapshot.limits.headLimits.headBytes == 32_768)
        #expect(snapshot.limits.headLimits.fields == 128)
    }

    @Test(arguments: [
        ("disk: 64KiB", 1_000), ("disk: 1MB", 1_000), ("disk: 10MiB", 5_120),
        ("disk: 2GiB", 1_048_576), ("disk: 1TiB", 5_000_000), ("entries: auto", 524_288),
        ("disk: 1GiB, entries: 7", 7), ("entries: 50000000", 50_000_000), ("disk: 0", 1_000),
    ])
    func `the number of entries depends on the size of the disk tier`(text: String, entries: Int)
        throws
    {
        #expect(try load("cache: { path: /x, \(text) }").cache.diskEntries == entries)
    }

    @Test func `the sample configuration loads and equals the defaults`() throws {
        let file = Checkout.root.appending(path: "config/pinfold.yaml").path
        let loader = ConfigurationLoader(environment: testEnvironment)
        #expect(try loader.load(file: file).snapshot == loadDefaults())
    }

    @Test(arguments: [
        "{}\n", "access:\nhosts:\npinsets:\ntls:\n",
    ])
    func `empty keys have the defaults`(text: String) throws {
        #expect(try load(text) == loadDefaults())
    }

    @Test func `workers are the online cores by default`() throws {
        #expect(try load("workers: auto").workers.count == 4)
        #expect(try load("workers: auto").workers == .auto(cores: 4))
        #expect(try load("workers: 3").workers.count == 3)
        var environment = testEnvironment
        environment.cores = 0
        #expect(try loadDefaults(environment: environment).workers.count == 1)
        environment.cores = 1_000
        #expect(try loadDefaults(environment: environment).workers.count == 256)
    }

    @Test func `the cache folder honours the state folder of the XDG specification`() throws {
        var environment = testEnvironment
        environment.stateFolder = "/state"
        #expect(try loadDefaults(environment: environment).cache.path == "/state/pinfold")
        // "All paths set in these environment variables must be absolute. If an implementation
        // encounters a relative path […] it should consider the path invalid and ignore it."
        environment.stateFolder = "state"
        let path = try loadDefaults(environment: environment).cache.path
        #expect(path == "/home/someone/.local/state/pinfold")
        environment.stateFolder = nil
        environment.homeFolder = nil
        #expect(
            errors(of: "cache: { disk: 0 }", environment: environment) == [
                "gateway.yaml:1: cache.path: has no default, because neither XDG_STATE_HOME nor "
                    + "HOME is set; expected the directory of cache.sqlite"
            ])
        #expect(
            errors(of: "cache: { path: /var/cache/pinfold }", environment: environment).isEmpty)
    }

    @Test func `the process has a working folder and cores`() {
        let environment = ConfigurationEnvironment.ofProcess()
        #expect(environment.workingFolder == FileManager.default.currentDirectoryPath)
        #expect(environment.cores >= 1)
    }
}
