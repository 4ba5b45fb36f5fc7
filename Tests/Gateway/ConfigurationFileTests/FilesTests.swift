import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Files that the configuration names")
struct FilesTests {
    @Test func `anything but a regular file is refused at once`() throws {
        try withTemporaryFolder { folder in
            let pipe = folder + "/pipe"
            #expect(mkfifo(pipe, 0o600) == 0)
            func problem(_ path: String) -> String {
                do {
                    _ = try ConfigurationFiles.read(path)
                    return ""
                } catch {
                    return error.text
                }
            }
            #expect(problem(pipe) == "is a pipe, not a regular file")
            #expect(problem("/dev/zero") == "is a device, not a regular file")
            #expect(problem(folder) == "is a directory, not a regular file")
            #expect(problem(folder + "/none") == "cannot be read: No such file or directory")
        }
    }

    @Test func `a file is read once it stops changing`() throws {
        try withTemporaryFolder { folder in
            let path = folder + "/file.yaml"
            _ = FileManager.default.createFile(atPath: path, contents: Data())
            // Empty at first, as editors do it, and written in parts.
            var parts = 0
            let sources = try SourceFiles(path, environment: testEnvironment) { milliseconds in
                #expect(milliseconds == ConfigurationFiles.quietMilliseconds)
                guard parts < 6 else { return }
                append("part\(parts): 1\n", to: path)
                parts += 1
            }
            guard case .mapping(let entries) = sources.root.content else {
                return #expect(Bool(false), "\(sources.root)")
            }
            #expect(entries.map(\.key) == (0..<6).map { "part\($0)" })
        }
    }

    @Test func `a file that never stops changing is an error`() throws {
        try withTemporaryFolder { folder in
            let path = folder + "/file.yaml"
            _ = FileManager.default.createFile(atPath: path, contents: Data())
            var looks = 0
            let expected = ConfigurationErrors(errors: [
                ConfigurationError(
                    origin: .file(name: path, line: 0), key: "",
                    problem: "keeps changing while it is read",
                    expected: "a readable configuration file")
            ])
            #expect(throws: expected) {
                try SourceFiles(path, environment: testEnvironment) { _ in
                    looks += 1
                    append("#", to: path)
                }
            }
            #expect(looks == ConfigurationFiles.attempts)
        }
    }

    @Test(
        arguments: [
            (0, 0, true), (1_700_000_000, 0, true), (1_700_000_000, 50_000_000, true),
            (1_700_000_000, 50_000_001, false), (1_700_000_001, 0, false),
            // What a damaged or hostile file system may claim.
            (.min, 0, true), (.max, 999_999_999, false),
        ] as [(Int, Int, Bool)])
    func `a file is old after the quiet time`(seconds: Int, nanoseconds: Int, isOld: Bool) {
        var status = stat()
        status.st_mtim = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
        let now: Int64 = 1_700_000_000_200
        #expect(ConfigurationFiles.Version(status).isOld(atMilliseconds: now) == isOld)
    }

    private func append(_ text: String, to path: String) {
        guard let handle = FileHandle(forWritingAtPath: path) else { return }
        handle.seekToEndOfFile()
        handle.write(Data(text.utf8))
        try? handle.close()
    }
}
