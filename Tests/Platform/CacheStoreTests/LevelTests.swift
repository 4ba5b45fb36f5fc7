import CacheStore
import CacheTestSupport
import TestSupport
import Testing

/// Which levels a store has in a test of what holds for all of them.
enum LevelSetup: String, CaseIterable, CustomTestStringConvertible {
    case memory, disk, remote, slowRemote
    case memoryOverDisk, memoryOverRemote, diskOverRemote, all

    var testDescription: String { rawValue }

    var hasMemory: Bool { [.memory, .memoryOverDisk, .memoryOverRemote, .all].contains(self) }
    var hasDisk: Bool { [.disk, .memoryOverDisk, .diskOverRemote, .all].contains(self) }
    var hasRemote: Bool { ![.memory, .disk, .memoryOverDisk].contains(self) }

    /// Stores with these levels over one folder and one server.
    func bench(_ folder: TemporaryFolder, _ server: RemoteServer) -> LevelBench {
        LevelBench(
            hasMemory: hasMemory, isPermanent: self != .memory,
            knowsItsEntries: hasMemory || hasDisk,
            bodiesApart: { bodiesApart(folder, server) },
            open: { options in
                var options = options
                if hasDisk {
                    options.diskBytes = 64 << 20
                    options.folder = folder.path
                }
                return CacheStore(
                    options: options, below: hasRemote ? [RemoteLevel(server)] : [])
            })
    }

    /// Rows of bodies in the database, finished or not, and bodies on the server.
    private func bodiesApart(_ folder: TemporaryFolder, _ server: RemoteServer) -> Int {
        let rows = ["chunk", "incomplete", "garbage"].compactMap {
            hasDisk ? query(folder.database, "SELECT count(*) FROM \($0)") : nil
        }
        return rows.reduce(server.counts.bodies) { $0 + Int($1) }
    }
}

/// The contract of `CacheLevel`, for each level alone, and for memory, the disk and a test's third
/// level together.
@Suite("The levels of the cache, alone and together")
struct LevelTests {
    private static let cases = LevelSetup.allCases.flatMap { setup in
        (setup == .memory ? LevelRule.ofMemoryAlone : LevelRule.allCases).map { (setup, $0) }
    }

    @Test(arguments: cases)
    func `keep each rule of the contract`(_ setup: LevelSetup, _ rule: LevelRule) throws {
        let server = RemoteServer(delayMicroseconds: setup == .slowRemote ? 2000 : 0)
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) { try rule.check(setup.bench(folder, server)) }
    }
}
