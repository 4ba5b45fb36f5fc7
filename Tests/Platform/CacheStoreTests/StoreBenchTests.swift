import Foundation
import TestSupport
import Testing

/// `deploy/bench/store`, with few responses.
@Suite("The measurement of a large store")
struct StoreBenchTests {
    @Test(.timeLimit(.minutes(30)))
    func `finds all that was stored after the process was killed, and how much space it takes`()
        throws
    {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let folder = URL(fileURLWithPath: bundle).deletingLastPathComponent().path
        let work = TemporaryFolder()
        let measurement = try Command(
            "python3",
            [
                "\(Checkout.root.path)/deploy/bench/store.py", "\(folder)/StoreBench", "--quick",
                "--entries",
                "5000", "--folder", work.path,
            ], keepsOutput: true)
        let outcome = measurement.wait()
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("ready after kill -9"))
        #expect(outcome.output.contains("for each of 5,000 entries"))
        #expect(outcome.output.components(separatedBy: "among 5,000: acknowledged").count == 5)
        #expect(outcome.output.components(separatedBy: "bytes of the file for each").count == 4)
    }
}
