import CacheStore
import CacheTestSupport
import SharedCacheLevel
import TestSupport
import Testing

/// Which levels a store has in a test of what holds for all of them.
enum SharedSetup: String, CaseIterable, CustomTestStringConvertible {
    case shared, memoryOverShared, diskOverShared, all

    var testDescription: String { rawValue }

    var hasMemory: Bool { self == .memoryOverShared || self == .all }
    var hasDisk: Bool { self == .diskOverShared || self == .all }

    /// Stores with these levels over one folder and one engine.
    func bench(_ folder: TemporaryFolder, _ engine: EngineProcess) -> LevelBench {
        LevelBench(
            hasMemory: hasMemory, isPermanent: true, knowsItsEntries: hasMemory || hasDisk,
            bodiesApart: { engine.chunks.count },
            open: { options in
                var options = options
                if hasDisk {
                    options.diskBytes = 64 << 20
                    options.folder = folder.path
                }
                do {
                    let level = try engine.level {
                        $0.wholeBodyBytes = UInt64(options.wholeBodyBytes)
                    }
                    return CacheStore(options: options, below: [level])
                } catch {
                    Issue.record(error)
                    return CacheStore(options: options)
                }
            })
    }
}

/// The contract of `CacheLevel`, kept by a level on a real engine.
@Suite("A level on an engine", .serialized)
struct SharedLevelRuleTests {
    private static let cases = SharedSetup.allCases.flatMap { setup in
        LevelRule.allCases.map { (setup, $0) }
    }

    @Test(arguments: cases)
    func `keeps each rule of the contract`(_ setup: SharedSetup, _ rule: LevelRule) throws {
        let engine = try EngineProcess()
        let folder = TemporaryFolder()
        try withExtendedLifetime((folder, engine)) { try rule.check(setup.bench(folder, engine)) }
    }

    @Test func `keeps the rules with an engine that has no HELLO`() throws {
        let engine = try EngineProcess(["--rename-command", "HELLO", ""])
        let folder = TemporaryFolder()
        try withExtendedLifetime((folder, engine)) {
            for rule in [LevelRule.findsWholeResponses, .invalidatesKeys, .purges, .freshens] {
                try rule.check(SharedSetup.shared.bench(folder, engine))
                try engine.ask("FLUSHALL")
            }
        }
    }
}
