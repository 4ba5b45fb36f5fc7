import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Included files that others can write or that change")
struct IncludedFileTests {
    @Test(
        arguments: [
            (0o664, 0o755, "can be written by its group (mode 0664)"),
            (0o646, 0o755, "can be written by others (mode 0646)"),
            (0o666, 0o755, "can be written by others (mode 0666)"),
            (
                0o644, 0o775,
                "is in the folder \"conf.d\", which can be written by its group (mode 0775)"
            ),
            (
                0o644, 0o777,
                "is in the folder \"conf.d\", which can be written by others (mode 0777)"
            ),
            (
                0o644, 0o1777,
                "is in the folder \"conf.d\", which can be written by others (mode 01777)"
            ),
        ] as [(mode_t, mode_t, String)])
    func `that others can write are refused`(file: mode_t, inside: mode_t, expected: String) throws
    {
        try withTemporaryFolder { folder in
            try write(
                ["main.yaml": "include: ['conf.d/*']\n", "conf.d/a": "workers: 3\n"], in: folder)
            chmod(folder + "/conf.d/a", file)
            chmod(folder + "/conf.d", inside)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: \"conf.d/a\" \(expected); expected "
                        + FileOwnership.expected
                ])
            chmod(folder + "/conf.d/a", 0o640)
            chmod(folder + "/conf.d", 0o750)
            #expect(try loadFile(in: folder).snapshot.workers == .fixed(3))
        }
    }

    @Test func `are looked at behind links, too`() throws {
        try withTemporaryFolder { folder in
            try write(["main.yaml": "include: [a.yaml]\n", "real/a": "workers: 3\n"], in: folder)
            #expect(symlink("real/a", folder + "/a.yaml") == 0)
            #expect(try loadFile(in: folder).snapshot.workers == .fixed(3))
            chmod(folder + "/real", 0o777)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: \"a.yaml\" is in the folder \"real\", which can be "
                        + "written by others (mode 0777); expected \(FileOwnership.expected)"
                ])
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `of other users are refused`() throws {
        try withTemporaryFolder { folder in
            try write(
                ["main.yaml": "include: ['conf.d/*']\n", "conf.d/a": "workers: 3\n"], in: folder)
            #expect(chown(folder + "/conf.d/a", 65534, 0) == 0)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: \"conf.d/a\" belongs to the user 65534; expected "
                        + FileOwnership.expected
                ])
            #expect(chown(folder + "/conf.d/a", 0, 0) == 0)
            #expect(chown(folder + "/conf.d", 65534, 0) == 0)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: \"conf.d/a\" is in the folder \"conf.d\", which "
                        + "belongs to the user 65534; expected \(FileOwnership.expected)"
                ])
        }
    }

    // MARK: Files that change meanwhile

    @Test func `are read together once all stop changing`() throws {
        try withTemporaryFolder { folder in
            try write(
                ["main.yaml": "include: ['conf.d/*']\n", "conf.d/a": "workers: 3\n"], in: folder)
            var pauses = 0
            let sources = try SourceFiles(
                folder + "/main.yaml", environment: testEnvironment
            ) { _ in
                pauses += 1
                switch pauses {
                case 1: try? write(["conf.d/b": "via: b\n"], in: folder)
                case 2: try? FileManager.default.removeItem(atPath: folder + "/conf.d/a")
                case 3: try? write(["conf.d/b": "via: c\nworkers: 4\n"], in: folder)
                default: break
                }
            }
            #expect(pauses == 4)
            #expect(sources.root["via"]?.text == "c" && sources.root["workers"]?.text == "4")
        }
    }
}

extension ConfigNode {
    fileprivate var text: String? { if case .scalar(let text, _) = content { text } else { nil } }
}
