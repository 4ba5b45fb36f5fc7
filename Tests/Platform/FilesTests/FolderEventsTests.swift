import CLinux
import Files
import TestSupport
import Testing

@Suite("What happens in folders")
struct FolderEventsTests {
    private func names(_ events: borrowing FolderEvents) -> Set<String> {
        var found: Set<String> = []
        events.take { event in
            switch event {
            case .name(let name, _): found.insert(name)
            case .folder(let folder): found.insert(folder)
            case .lost: found.insert("lost")
            }
        }
        return found
    }

    @Test func `is told by name`() throws {
        let folder = TemporaryFolder()
        mkdir(folder.path + "/in", 0o755)
        let inside = folder.path + "/in"
        let events = try FolderEvents(watching: [inside, folder.path + "/none"])
        #expect(names(events).isEmpty)
        let descriptor = creat(inside + "/a", 0o644)
        #expect(names(events) == ["a"])
        #expect(write(descriptor, "x", 1) == 1)
        #expect(names(events) == ["a"])
        close(descriptor)
        #expect(names(events) == ["a"])
        #expect(rename(inside + "/a", inside + "/b") == 0)
        #expect(names(events) == ["a", "b"])
        #expect(symlink("b", inside + "/link") == 0)
        #expect(chmod(inside + "/b", 0o600) == 0)
        #expect(names(events) == ["b", "link"])
        #expect(unlink(inside + "/b") == 0)
        #expect(names(events) == ["b"])
        #expect(rename(inside, folder.path + "/out") == 0)
        #expect(names(events) == [inside])
    }

    @Test func `says when a folder is removed`() throws {
        let folder = TemporaryFolder()
        let inside = folder.path + "/in"
        mkdir(inside, 0o755)
        let events = try FolderEvents(watching: [inside])
        #expect(rmdir(inside) == 0)
        #expect(names(events) == [inside])
        #expect(names(events).isEmpty)
    }

    @Test func `says when more happened than is kept`() throws {
        let folder = TemporaryFolder()
        let events = try FolderEvents(watching: [folder.path])
        for round in 0..<20_000 { mkdir("\(folder.path)/\(round)", 0o755) }
        #expect(names(events).contains("lost"))
        #expect(names(events).isEmpty)
    }
}
