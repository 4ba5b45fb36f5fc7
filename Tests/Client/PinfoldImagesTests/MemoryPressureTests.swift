import Foundation
import PinfoldImages
import Testing

@Suite("Memory pressure")
struct MemoryPressureTests {
    @Test(
        arguments: [
            ("low 1\nhigh 0\nmax 0\noom 0\noom_kill 0\n", false), ("", false),
            ("high 1\n", true), ("max 1\n", true), ("oom 1\n", true), ("oom_kill 1\n", false),
            ("high x\nmax 1 2\noom -1\nhigher 4\n", false),
        ])
    func `is read from the events of a control group`(text: String, isShort: Bool) {
        #expect(MemoryEvents(text).isShort(since: MemoryEvents()) == isShort)
        #expect(!MemoryEvents(text).isShort(since: MemoryEvents(text)))
    }

    @Test func `is reported when the events have increased`() throws {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("pinfold-events-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        func write(_ text: String) throws { try Data(text.utf8).write(to: file) }
        try write("low 0\nhigh 3\n")
        var source = try MemoryPressureSource(.events(path: file.path))
        #expect(try !source.acknowledge())
        try write("low 9\nhigh 3\n")
        #expect(try !source.acknowledge())
        try write("low 9\nhigh 4\n")
        #expect(try source.acknowledge())
        #expect(try !source.acknowledge())
    }

    @Test func `is watched by the kernel if it allows that`() throws {
        do throws(MemoryPressureError) {
            let source = try MemoryPressureSource()
            #expect(fcntl(source.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        } catch {
            // A kernel without it, or a container that hides it.
            let expected = [ENOENT, EOPNOTSUPP, EACCES, EPERM, EROFS, EINVAL]
            #expect(expected.contains(error.code))
        }
    }

    @Test func `reports why it cannot be watched`() {
        for origin in [
            MemoryPressureSource.Origin.events(path: "/nonexistent"),
            .stalls(path: "/nonexistent", stallMilliseconds: 1, windowMilliseconds: 2000),
        ] {
            do throws(MemoryPressureError) {
                _ = try MemoryPressureSource(origin)
                Issue.record("watched")
            } catch {
                #expect(error.code == ENOENT)
            }
        }
    }
}
