import Foundation
import Testing

@testable import Configuration

struct FilesTests {
    @Test func whatIsNoRegularFileIsRefusedAtOnce() throws {
        try withTemporaryFolder { folder in
            let pipe = folder + "/pipe"
            #expect(mkfifo(pipe, 0o600) == 0)
            func problem(_ path: String) -> String {
                do {
                    _ = try Files.read(path)
                    return ""
                } catch {
                    return error.text
                }
            }
            #expect(problem(pipe) == "is a pipe, not a regular file")
            #expect(problem("/dev/zero") == "is a device, not a regular file")
            #expect(problem(folder) == "is a folder, not a regular file")
            #expect(problem(folder + "/none") == "cannot be read: No such file or directory")
        }
    }

    @Test func aFileIsReadWhenItStandsStill() throws {
        try withTemporaryFolder { folder in
            let path = folder + "/file"
            _ = FileManager.default.createFile(atPath: path, contents: Data())
            // Empty for a moment, as editors leave it: longer than reading takes, and shorter than
            // a file has to stand still.
            let writer = Thread {
                for _ in 0..<6 {
                    Thread.sleep(forTimeInterval: 0.05)
                    let handle = FileHandle(forWritingAtPath: path)
                    handle?.seekToEndOfFile()
                    handle?.write(Data("part\n".utf8))
                    try? handle?.close()
                }
            }
            writer.start()
            let content = try Files.readSettled(path, limit: 1000)
            #expect(content == Array(String(repeating: "part\n", count: 6).utf8))
        }
    }

    @Test func aFileThatNeverStandsStillIsAProblem() throws {
        try withTemporaryFolder { folder in
            let path = folder + "/file"
            let stop = DispatchSemaphore(value: 0)
            let stopped = DispatchSemaphore(value: 0)
            _ = FileManager.default.createFile(atPath: path, contents: Data())
            Thread {
                var count = 0
                while stop.wait(timeout: .now() + 0.02) == .timedOut {
                    count += 1
                    try? Data(String(repeating: "a", count: count).utf8)
                        .write(to: URL(fileURLWithPath: path))
                }
                stopped.signal()
            }.start()
            defer {
                stop.signal()
                stopped.wait()
            }
            #expect(throws: Files.Problem(text: "keeps changing while it is read")) {
                try Files.readSettled(path, limit: 100_000)
            }
        }
    }
}

struct ConfigurationRemovalTests {
    private let full = """
        listeners:
          - { name: a, address: "127.0.0.1:1" }
          - { name: b, address: "127.0.0.1:2" }
        hosts:
          - { match: [x.example, y.example], pinsets: [p] }
          - { match: [z.example] }
        pinsets:
          p: { mode: publicKey, pins: ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] }
        """

    @Test func whatIsGoneIsNamed() throws {
        let old = try load(full)
        #expect(ConfigurationRemoval.all(from: old, to: old) == [])
        let new = try load("listeners: [{ name: b, address: \"127.0.0.1:3\" }]")
        let removals = ConfigurationRemoval.all(from: old, to: new)
        #expect(removals.map(\.section) == ["listeners", "pinsets", "hosts"])
        #expect(removals.map(\.names) == [["a"], ["p"], ["x.example y.example", "z.example"]])
        #expect(ConfigurationRemoval.all(from: new, to: old) == [])
    }
}
