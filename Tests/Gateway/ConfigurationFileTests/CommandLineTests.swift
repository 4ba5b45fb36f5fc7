import Foundation
import TestSupport
import Testing

/// Runs the built program as a user would.
@Suite("The command line")
struct CommandLineTests {
    /// Runs `pinfold` in a folder, with its home there.
    private func pinfold(_ arguments: [String], in folder: String) throws -> Command.Outcome {
        let bundle = URL(fileURLWithPath: CommandLine.arguments[0])
        let program = bundle.deletingLastPathComponent().appendingPathComponent("pinfold")
        try #require(FileManager.default.isExecutableFile(atPath: program.path))
        let command = try Command(
            program.path, arguments, environment: ["HOME": folder, "PATH": "/usr/bin:/bin"],
            in: folder, keepsOutput: true)
        return command.wait()
    }

    @Test func `check prints warnings and still succeeds`() throws {
        try withTemporaryFolder { folder in
            try write("pinsets: { unused: { mode: none } }\n", to: "gateway.yaml", in: folder)
            let outcome = try pinfold(["check", "--config", "gateway.yaml"], in: folder)
            #expect(outcome.status == 0)
            #expect(
                outcome.errors.hasPrefix("Warning: gateway.yaml:1: pinsets.unused: no entry of"))
            #expect(outcome.output.contains("pinsets:\n  \"unused\":\n"))
        }
    }

    @Test func `check prints the effective configuration which checks to the same`() throws {
        try withTemporaryFolder { folder in
            let first = try pinfold(["check", "--workers", "2", "--listen", "[::1]:0"], in: folder)
            #expect(first.status == 0)
            #expect(first.errors == "")
            #expect(first.output.contains("workers: 2\n"))
            #expect(first.output.contains("address: \"[::1]:0\"\n"))
            #expect(first.output.contains("path: \"\(folder)/.local/state/pinfold\"\n"))
            try write(first.output, to: "effective.yaml", in: folder)
            let second = try pinfold(["check", "--config", "effective.yaml"], in: folder)
            #expect(second.status == 0)
            #expect(second.output == first.output)
        }
    }

    @Test(arguments: ["check", "run"])
    func `a wrong configuration exits with 1 and one line per error`(command: String) throws {
        try withTemporaryFolder { folder in
            try write("workers: 0\nlistner: []\n", to: "bad.yaml", in: folder)
            let outcome = try pinfold(
                [command, "--config", "bad.yaml", "--admin", "0.0.0.0:1"], in: folder)
            #expect(outcome.status == 1)
            #expect(outcome.output == "")
            let lines = outcome.errors.split(separator: "\n")
            #expect(lines.count == 3)
            #expect(
                lines.map { $0.split(separator: " ").prefix(2).joined(separator: " ") } == [
                    "Error: bad.yaml:1:", "Error: bad.yaml:2:", "Error: --admin:",
                ])
        }
    }

    @Test(arguments: [
        ["chekc"], ["check", "--worker", "2"], ["run", "extra"], ["check", "--config"],
    ])
    func `a wrong command line exits with 64`(arguments: [String]) throws {
        try withTemporaryFolder { folder in
            let outcome = try pinfold(arguments, in: folder)
            #expect(outcome.status == 64)
            #expect(outcome.output == "")
            #expect(outcome.errors.contains("Usage: pinfold"))
        }
    }
}
