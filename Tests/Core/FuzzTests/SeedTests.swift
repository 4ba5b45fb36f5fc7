import Foundation
import FuzzTargets
import TestSupport
import Testing

/// Runs the seeds and past findings of `deploy/fuzz` as ordinary tests.
@Suite("The seeds of the fuzzer")
struct SeedTests {
    private static let folder = Checkout.root.appending(path: "Tests/Fuzz/Seeds")

    private static func seeds(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let folder = folder.appendingPathComponent(target.rawValue)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            ($0, Array(try Data(contentsOf: folder.appendingPathComponent($0))))
        }
    }

    @Test(arguments: FuzzTarget.allCases)
    func `satisfy what must hold of their parser, which reads some and refuses others`(
        target: FuzzTarget
    ) throws {
        var read = 0
        var refused = 0
        for seed in try Self.seeds(of: target) {
            do throws(FuzzCheckError) {
                if try target.check(seed.bytes) { read += 1 } else { refused += 1 }
            } catch {
                Issue.record("\(target.rawValue)/\(seed.name): \(error)")
            }
        }
        #expect(read > 0)
        #expect(refused > 0)
    }

    @Test(arguments: FuzzTarget.allCases)
    func `are few and small`(target: FuzzTarget) throws {
        let seeds = try Self.seeds(of: target)
        #expect(seeds.count <= 200)
        #expect(seeds.reduce(0) { $0 + $1.bytes.count } <= 300_000)
    }
}
